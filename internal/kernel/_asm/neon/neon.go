// Package neon holds what the generators of the vector, attention and sampling kernels for arm64 share:
// constants, loops, and the functions of fmath.go in four lanes. Whatever is computed here follows its
// portable twin operation by operation.
package neon

import (
	"log"
	"math"

	. "grove/internal/kernel/_asm/arm64"
)

// constants are those of the function that is being written, by their bits.
var constants map[uint32]V

// Func starts a function whose signature is that of Go source.
func Func(name, signature string, doc ...string) {
	constants = map[uint32]V{}
	Begin(name, signature, 0, doc...)
}

// Bits returns the register that holds a word in all lanes. The function's first call loads it, which must come before
// the first label: a branch could pass over it.
func Bits(b uint32) V {
	v, ok := constants[b]
	if !ok {
		if Labels() > 0 {
			log.Panicf("neon: constant %#x is not loaded before the first label", b)
		}
		v = Temporary(b)
		constants[b] = v
	}
	return v
}

// Float is Bits of a float.
func Float(f float64) V { return Bits(math.Float32bits(float32(f))) }

// Temporary returns a new register with a word in all lanes.
func Temporary(b uint32) V {
	v := Vec()
	switch {
	case b == b&0xff<<24:
		MOVI(S4, v, b>>24, 24)
	case short(b):
		FMOV(v, math.Float32frombits(b))
	default:
		r := Reg()
		Text("MOVD $0x%08x, %v", b, r)
		DUPReg(S4, v, r)
		Free(r)
	}
	return v
}

// short reports whether b are the bits of a float that FMOV can hold.
func short(b uint32) bool {
	e := b >> 25 & 0x3f
	return b&(1<<19-1) == 0 && (e == 0x20 || e == 0x1f)
}

// Broadcast returns a vector of copies of a float parameter.
func Broadcast(param string) V {
	v := ArgFloat(param)
	DUP(S4, v, v, 0)
	return v
}

// Copies returns new registers with the same content.
func Copies(v V, n int) []V {
	c := Vecs(n)
	for _, d := range c {
		MOV(d, v)
	}
	return c
}

// Load fills registers from a place on, in pairs where it can.
func Load(v []V, base R, disp int) {
	for i := 0; i < len(v); i += 2 {
		if i+1 < len(v) {
			LDPQ(v[i], v[i+1], base, disp+16*i)
		} else {
			LDRQ(v[i], base, disp+16*i)
		}
	}
}

// Store is the inverse of Load.
func Store(v []V, base R, disp int) {
	for i := 0; i < len(v); i += 2 {
		if i+1 < len(v) {
			STPQ(v[i], v[i+1], base, disp+16*i)
		} else {
			STRQ(v[i], base, disp+16*i)
		}
	}
}

// Advance adds bytes to pointers.
func Advance(bytes int, p ...R) {
	for _, r := range p {
		Text("ADD $%d, %v", bytes, r)
	}
}

// Loop emits a body n times, n being positive. It counts n down.
func Loop(name string, n R, body func()) {
	Label(name)
	body()
	Text("SUBS $1, %v, %v", n, n)
	Text("BNE %s", name)
}

// Each emits a loop over a slice parameter in steps of eight words, the rest left out. It moves the
// pointers behind each step.
func Each(slice string, body func(), pointers ...R) {
	n := Arg(slice + "_len")
	Text("LSR $3, %v", n)
	Text("CBZ %v, done", n)
	Loop("loop", n, func() {
		body()
		Advance(32, pointers...)
	})
	Label("done")
	Free(n)
}

// Blocks emits a loop over the slice parameter x in steps of 32 words, the rest left out, and then
// over the 32 words at the pointer parameter tail, which hold the rest and values without effect.
// The body gets the place of the words.
func Blocks(body func(x R)) {
	x, n, tail := Arg("x_base"), Arg("x_len"), Arg("tail")
	Text("LSR $5, %v", n)
	Text("CBZ %v, last", n)
	Loop("block", n, func() {
		body(x)
		Advance(128, x)
	})
	Label("last")
	Text("MOVD %v, %v", tail, x)
	Text("MOVD $0, %v", tail)
	Text("MOVD $1, %v", n)
	Text("CBNZ %v, block", x)
	Free(x, n, tail)
}

// A Combine folds a later value into p.
type Combine func(later, p V)

// Add is the fold of sums.
func Add(later, p V) { FADD(S4, p, p, later) }

// Max is the fold of maxima: the later value wins only where it is greater. FMAX and FMAXNM treat NaNs and zeros
// otherwise.
func Max(later, p V) {
	greater := Vec()
	FCMGT(S4, greater, later, p)
	BIT(B16, p, later, greater)
	Free(greater)
}

// Fold combines accumulators, four to a register, as S32 does, into the lowest lane of the first one.
func Fold(acc []V, combine Combine) V {
	for half := len(acc) / 2; half > 0; half /= 2 {
		for i := range half {
			combine(acc[i+half], acc[i])
		}
	}
	t := Vec()
	EXT(t, acc[0], acc[0], 8)
	combine(t, acc[0])
	EXT(t, acc[0], acc[0], 4)
	combine(t, acc[0])
	Free(t)
	return acc[0]
}

// Accumulators returns eight registers that hold a word in all lanes.
func Accumulators(b uint32) []V {
	v := Temporary(b)
	return append([]V{v}, Copies(v, 7)...)
}
