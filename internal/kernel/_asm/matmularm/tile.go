package main

import (
	"fmt"

	. "grove/internal/kernel/_asm/arm64"
)

// The tiles of quantised types take 8 of the 16 outputs of a group at a time, so that the sums of 8 rows fit 16 registers:
// first the weights of 16 inputs are unpacked to signed bytes in 8 registers, then the rows pass, and so on; so all rows share the
// work of unpacking. The chains of the outputs live in the stack frame.
//
// A unit is what accumulates in the same registers. With dot products it is a row, and a register (a column) holds 4 outputs.
// With products of matrices it is a pair of rows, and a column holds 2 outputs of the first row, then of the second.

const (
	blockRows = 8 // of the largest tile
	quads     = 4 // quads of inputs that registers hold
)

// weights are those of 4 quads of inputs by 2 times 4 outputs.
type weights [2][quads]V

// A tile is the state of a tile. Registers that point to what one half of the outputs needs move on to the other half.
type tile struct {
	n      int // rows
	fewest int // for which there is a tile
	matrix bool
	acc    [][]V // sums of a unit and column

	w, nb, x, d, sum, rows R
	xStride, stride        R // bytes between rows of x, and of d and sum
	frame                  R
	left, halves           R // of loops over sub-blocks, and halves of the outputs
	bits                   R // the weights of a half
	chain                  R // its chains
	factors                R // its scales
	at, at2, at3           R // for walks over rows
}

// Every frame begins with the chains of the outputs, [unit][half][column], then what the first 16 inputs sum to,
// [unit][column], for one half, and the activations of pairs of rows, [pair][4][2 rows][8].
const (
	chains   = 0
	parts    = chains + blockRows*wide
	pairs    = parts + blockRows*half
	frameTop = pairs + blockRows/2*wide
)

// units returns the number of units of a tile of n rows.
func (t *tile) units() int {
	if t.matrix {
		return (t.n + 1) / 2
	}
	return t.n
}

// columns returns the columns of half the outputs.
func (t *tile) columns() int {
	if t.matrix {
		return 4
	}
	return 2
}

// unitBytes returns the bytes of a unit's columns of half the outputs.
func (t *tile) unitBytes() int { return 16 * t.columns() }

// function emits the tile function of a type with a frame of so many bytes. body emits what comes between the
// clearing of the chains and the store of the outputs. It ends each path by a branch to the label store.
//
// Products of matrices serve the numbers of rows for which they take fewer instructions than dot products.
func function(name string, matrix, summed bool, blockShift, frame int, body func(t *tile)) {
	fn, params, fewest, rows := "tile"+name+"NEON", "x *int8, d *float32, ", 1, "1 to 8"
	if matrix {
		fn, fewest, rows = "tile"+name+"I8MM", blockRows, "8"
		if name == "Q8_0" || name == "Q4_0" {
			fewest, rows = 6, "6 to 8"
		}
	}
	if summed {
		params += "sum *int32, "
	}
	Begin(fn, "func(dst *float32, stride int, w *byte, nb int, "+params+"n int)", frame,
		fn+" writes the products of n rows ("+rows+") of nb > 0 blocks by a packed group of "+name,
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	t := &tile{matrix: matrix, fewest: fewest, w: Arg("w"), nb: Arg("nb"), x: Arg("x"), d: Arg("d"), rows: Arg("n"), frame: Frame()}
	if summed {
		t.sum = Arg("sum")
	}
	t.xStride, t.stride = strideOf("nb", blockShift), strideOf("nb", blockShift-3)
	for _, r := range []*R{&t.left, &t.halves, &t.bits, &t.chain, &t.factors, &t.at, &t.at2, &t.at3} {
		*r = Reg()
	}
	zero := Vec()
	ZERO(zero)
	for i := 0; i < blockRows*wide; i += 2 * 16 {
		STPQ(zero, zero, t.frame, chains+i)
	}
	Free(zero)
	body(t)
	Label("store")
	t.store()
	Return()
	FreeAll()
}

// store emits the store of the chains to the rows of dst.
func (t *tile) store() {
	dst, stride, v := Arg("dst"), strideOf("stride", 2), Vecs(4)
	row := func() {
		for h := range 2 {
			STPQ(v[2*h], v[2*h+1], dst, half*h)
		}
		Text("ADD %v, %v, %v", stride, dst, dst)
		Text("SUBS $1, %v, %v", t.rows, t.rows)
	}
	Label("storing")
	if !t.matrix {
		for h := range 2 {
			LDPQ(v[2*h], v[2*h+1], t.frame, half*h)
		}
		row()
		Text("ADD $%d, %v, %v", wide, t.frame, t.frame)
		Text("BNE storing")
		return
	}
	second, u := Vecs(4), Vecs(2)
	for i := range v {
		LDPQ(u[0], u[1], t.frame, half*i)
		UZP1(D2, v[i], u[0], u[1])
		UZP2(D2, second[i], u[0], u[1])
	}
	row()
	Text("BEQ stored")
	v = second
	row()
	Text("ADD $%d, %v, %v", 2*wide, t.frame, t.frame)
	Text("BNE storing")
	Label("stored")
}

// value emits the load of a 32-bit value of each row of unit u, to the lanes of the row. The register at walks over
// the rows, stride bytes apart.
func (t *tile) value(at, stride R, u int) V {
	v := Vec()
	LD1RPost(S4, v, at, stride)
	if t.matrix && 2*u+1 < t.n {
		second := Vec()
		LD1RPost(S4, second, at, stride)
		ZIP1(D2, v, v, second)
		Free(second)
	}
	return v
}

// start emits the start of the sums: zeros, or with less > 0 what makes up for weights that are too large by less, a
// power of two.
func (t *tile) start(less int) {
	t.acc = nil
	if less > 0 {
		Text("MOVD %v, %v", t.sum, t.at)
	}
	for u := range t.units() {
		acc := Vecs(t.columns())
		t.acc = append(t.acc, acc)
		if less == 0 {
			for _, v := range acc {
				ZERO(v)
			}
			continue
		}
		sums := t.value(t.at, t.stride, u)
		shift := 0
		for ; 1<<shift < less; shift++ {
		}
		SHL(S4, sums, sums, shift)
		for _, v := range acc {
			NEG(S4, v, sums)
		}
		Free(sums)
	}
}

// add emits the sums over inputs [16*part, 16*part+16) of a block, and frees their weights.
func (t *tile) add(w weights, part int) {
	if t.matrix {
		w = octets(w)
		t.addMatrices(w, part)
	} else {
		Text("ADD $%d, %v, %v", 16*part, t.x, t.at)
		x := Vecs(1)
		for u := range t.acc {
			LD1Post(B16, x, t.at, t.xStride)
			for j := range quads {
				for c := range w {
					SDOTElem(t.acc[u][c], w[c][j], x[0], j)
				}
			}
		}
		Free(x...)
	}
	for c := range w {
		Free(w[c][:]...)
	}
}

// octets emits the change from quads of inputs by 4 outputs to 8 inputs by 2 outputs: of each column first inputs 0 to 7, then
// inputs 8 to 15.
func octets(w weights) weights {
	for c := range w {
		for j := 0; j < quads; j += 2 {
			first := Vec()
			ZIP1(S4, first, w[c][j], w[c][j+1])
			ZIP2(S4, w[c][j+1], w[c][j], w[c][j+1])
			Free(w[c][j])
			w[c][j] = first
		}
	}
	return w
}

// pairRows emits the copy of 32 activations of each pair of rows to the frame: 8 of the first row, 8 of the second, and so on.
// A last row without a second is its own.
func (t *tile) pairRows() {
	Text("MOVD %v, %v", t.x, t.at)
	for u := range t.units() {
		a, b := Vecs(2), Vecs(2)
		LD1Post(B16, a, t.at, t.xStride)
		second := a
		if 2*u+1 < t.n {
			second = b
			LD1Post(B16, b, t.at, t.xStride)
		}
		low, high := Vec(), Vec()
		for i := range a {
			ZIP1(D2, low, a[i], second[i])
			ZIP2(D2, high, a[i], second[i])
			STPQ(low, high, t.frame, pairs+wide*u+half*i)
		}
		Free(append(append(a, b...), low, high)...)
	}
}

// addMatrices is add for pairs of rows.
func (t *tile) addMatrices(w weights, part int) {
	x := [2]V{Vec(), Vec()}
	for u := range t.acc {
		LDPQ(x[0], x[1], t.frame, pairs+wide*u+half*part)
		for i := range x {
			for c := range t.acc[u] {
				SMMLA(t.acc[u][c], x[i], w[c/2][2*i+c%2])
			}
		}
	}
	Free(x[:]...)
}

// each emits do for the sums of every unit and column, with the constants that belong to the column and the values that
// belong to the unit. constants returns those of 4 outputs, values may be nil.
func (t *tile) each(constants func(c int) []V, values func(u int) []V, do func(u, c int, k, x []V)) {
	if values == nil {
		values = func(int) []V { return nil }
	}
	if !t.matrix { // the values of one row at a time
		k := [2][]V{constants(0), constants(1)}
		for u := range t.acc {
			x := values(u)
			for c := range k {
				do(u, c, k[c], x)
			}
			Free(x...)
		}
		Free(append(k[0], k[1]...)...)
		return
	}
	x := make([][]V, len(t.acc)) // the constants of one column at a time
	for u := range x {
		x[u] = values(u)
	}
	for c := range 4 {
		k := constants(c / 2)
		for _, v := range k {
			DUP(D2, v, v, c%2)
		}
		for u := range x {
			do(u, c, k, x[u])
		}
		Free(k...)
	}
	for u := range x {
		Free(x[u]...)
	}
}

// continued emits do between the load and the store of the chain of unit u and column c.
func (t *tile) continued(u, c int, do func(chain V)) {
	chain, disp := Vec(), 2*t.unitBytes()*u+16*c
	LDRQ(chain, t.chain, disp)
	do(chain)
	STRQ(chain, t.chain, disp)
	Free(chain)
}

// part returns where the sums of the first 16 inputs are.
func (t *tile) part(u, c int) int { return parts + t.unitBytes()*u + 16*c }

// eachHalf emits the code for both halves of the outputs, in a loop. Between them the weights of a half are 32 bytes apart, its
// scales step bytes.
func (t *tile) eachHalf(step int, do func()) {
	if t.matrix {
		t.pairRows()
	}
	Text("MOVD %v, %v", t.w, t.bits)
	Text("MOVD %v, %v", t.frame, t.chain)
	Text("MOVD $2, %v", t.halves)
	Label(fmt.Sprintf("half%d", t.n))
	do()
	for _, acc := range t.acc {
		Free(acc...)
	}
	Text("ADD $%d, %v, %v", half, t.bits, t.bits)
	Text("ADD $%d, %v, %v", t.unitBytes(), t.chain, t.chain)
	Text("ADD $%d, %v, %v", step, t.factors, t.factors)
	Text("SUBS $1, %v, %v", t.halves, t.halves)
	Text("BNE half%d", t.n)
}
