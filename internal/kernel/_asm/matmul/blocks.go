package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The tiles of types of up to 6 bits hold the weights of 16 inputs by 16 outputs as unsigned bytes in 8
// registers, while the rows pass one by one. So all rows share the work of unpacking, and what belongs to
// a row lives in the stack frame. Products are summed in 16 bits: 16 of a nibble stay within 16*15*127,
// 8 of five bits within 8*31*127.

const (
	blockRows = 8  // rows of the largest tile
	halfQuads = 4  // quads of inputs that registers hold
	wide      = 64 // bytes of 16 outputs by a quad of inputs, or by a value of 32 bits
)

type pair = [vectors]reg.VecVirtual

type weights [halfQuads]pair

// A blockTile is the state of a tile of n rows.
type blockTile struct {
	n     int
	w     reg.Register // where the weights are read
	x     matrix
	frame reg.Register // at a multiple of 32 bytes
	own   [2]pair      // the chains and the parts of a tile of one row
}

// Every frame begins with the chains of the outputs, then what the first half of a block sums to:
// [row][16 outputs] each.
const (
	chains   = 0
	parts    = chains + blockRows*wide
	frameTop = parts + blockRows*wide
)

func (t *blockTile) local(at int) Mem { return Mem{Base: t.frame, Disp: at} }

// chain and part return where these of a row are: a tile of one row has registers to spare.
func (t *blockTile) chain(r, v int) Op {
	if t.n == 1 {
		return t.own[0][v]
	}
	return t.local(chains + wide*r + 32*v)
}

func (t *blockTile) part(r, v int) Op {
	if t.n == 1 {
		return t.own[1][v]
	}
	return t.local(parts + wide*r + 32*v)
}

// suffix is the end of the names of the tile functions of 256 bits.
var suffix = "AVX2"

// blockFunction emits the tile function of a type with a frame of so many bytes. body emits the code
// for all blocks of n rows.
func blockFunction(name string, params string, frame int, body func(t *blockTile)) {
	fn := "tile" + name + suffix
	TEXT(fn, 0, "func(dst *float32, stride int, w *byte, nb int, "+params+", n int)")
	Pragma("noescape")
	Doc(fn+" writes the products of n rows (1 to 8) of nb > 0 blocks by a packed group of "+name,
		"weights to 16 elements of each of n rows of dst, stride elements apart.")
	room := AllocLocal(frame + 24)
	perRows(blockRows, func(n int) {
		t := &blockTile{n: n, w: Load(Param("w"), GP64()), frame: GP64(), own: [2]pair{vectorPair(), vectorPair()}}
		LEAQ(room.Offset(24), t.frame)
		ANDQ(I8(-32), t.frame)
		zero := YMM()
		VPXOR(zero, zero, zero)
		for r := range n {
			for v := range vectors {
				VMOVUPS(zero, t.chain(r, v))
			}
		}
		body(t)
		dst, stride := Load(Param("dst"), GP64()), strideOf("stride", 2)
		for r := range n {
			for v := range vectors {
				y := YMM()
				VMOVUPS(t.chain(r, v), y)
				VMOVUPS(y, Mem{Base: dst, Disp: 32 * v})
			}
			if r < n-1 {
				ADDQ(stride, dst)
			}
		}
	})
}

// steps are pieces of code that follow each other with other code in between. No more than two
// registers of their own stay in use from one to the next.
type steps []func()

// half emits the sums over 16 inputs of the weights u times the activations of each row, in 16 bits,
// less minus(r) where that exists, and then the steps of finish. These are spread over the sums of the next
// row: they wait for results and need other execution units.
func (t *blockTile) half(u weights, half int, minus func(r int) reg.VecVirtual, finish func(r int, acc pair) steps) {
	var late steps
	for r := range t.n {
		var less reg.VecVirtual
		if minus != nil {
			less = minus(r)
		}
		var acc pair
		for j := range u {
			x := YMM()
			VPBROADCASTD(t.x.at(r, 16*half+4*j), x)
			for v := range acc {
				p := x
				if v < len(acc)-1 {
					p = YMM()
				}
				VPMADDUBSW(x, u[j][v], p)
				switch {
				case j > 0:
					VPADDW(p, acc[v], acc[v])
				case minus != nil:
					acc[v] = YMM()
					VPSUBW(less, p, acc[v])
				default:
					acc[v] = p
				}
			}
			late = late.take(len(u) - j)
		}
		late = finish(r, acc)
	}
	late.take(1)
}

// take emits its share of the steps where n places are left for them, and returns the rest.
func (s steps) take(n int) steps {
	now := (len(s) + n - 1) / n
	for _, step := range s[:now] {
		step()
	}
	return s[now:]
}

// savePart ends the first half of a block.
func (t *blockTile) savePart(r int, acc pair) steps {
	for v := range acc {
		VMOVDQU(acc[v], t.part(r, v))
	}
	return nil
}

// nibbles emits the weights of half a block of 32 at disp.
func (t *blockTile) nibbles(disp, half int) (u weights) {
	mask := YMM()
	VMOVDQU(everywhere(0x0f), mask)
	for j := range u {
		for v := range u[j] {
			u[j][v] = YMM()
			at := Mem{Base: t.w, Disp: disp + wide*j + 32*v}
			if half == 0 {
				VPAND(at, mask, u[j][v])
				continue
			}
			VMOVDQU(at, u[j][v])
			VPSRLW(U8(4), u[j][v], u[j][v])
			VPAND(mask, u[j][v], u[j][v])
		}
	}
	return u
}

// fiveBits emits the weights of half a block of 32 at disp: nibbles, then a quad of bytes of fifth bits.
func (t *blockTile) fiveBits(disp, half int) weights {
	u := t.nibbles(disp, half)
	for v := range vectors {
		high := YMM()
		VMOVDQU(Mem{Base: t.w, Disp: disp + halfQuads*wide + 32*v}, high)
		for j := range u {
			bit, quad := YMM(), halfQuads*half+j
			if quad < 4 {
				VPSLLW(U8(4-quad), high, bit)
			} else {
				VPSRLW(U8(quad-4), high, bit)
			}
			VPAND(everywhere(0x10), bit, bit)
			VPOR(bit, u[j][v], u[j][v])
		}
	}
	return u
}

// prefetch emits the prefetch of lines of weights.
func (t *blockTile) prefetch(lines int) {
	for i := range lines {
		PREFETCHT0(Mem{Base: t.w, Disp: 64 * (ahead + i)})
	}
}

// everywhere returns a vector of one byte.
func everywhere(b uint32) Mem {
	return vector(fmt.Sprintf("bytes%02x", b), func(int) uint32 { return b * 0x01010101 })
}

// vector returns the constant vector of that name, whose lane i holds lane(i).
func vector(name string, lane func(i int) uint32) Mem {
	if _, ok := vectorNamed[name]; !ok {
		var lanes []uint32
		for i := range 8 {
			lanes = append(lanes, lane(i))
		}
		vectorNamed[name] = words(name, lanes)
	}
	return vectorNamed[name]
}

var vectorNamed = map[string]Mem{}

// words returns a constant of 32-bit words.
func words(name string, values []uint32) Mem {
	data := GLOBL(name, RODATA|NOPTR)
	for i, v := range values {
		DATA(4*i, U32(v))
	}
	return data
}
