package arm64

import (
	"fmt"
	"log"
	"slices"
	"strings"
)

// An Arr is an arrangement: how many lanes of which size a register has.
type Arr int

// The arrangements, by their number of lanes and the size of these.
const (
	B8 Arr = iota
	B16
	H4
	H8
	S2
	S4
	D1
	D2
)

func (a Arr) String() string { return a.lanes() + a.size() }

func (a Arr) lanes() string { return []string{"8", "16", "4", "8", "2", "4", "1", "2"}[a] }

// size returns the letter of the lanes' size.
func (a Arr) size() string { return "bhsd"[a/2:][:1] }

// bits returns the bits of a lane.
func (a Arr) bits() int { return 8 << (a / 2) }

// q returns the field of instructions that says that all 128 bits are used.
func (a Arr) q() uint32 { return uint32(a&1) << 30 }

// sizeAt returns the field of the lanes' size.
func (a Arr) sizeAt(bit int) uint32 { return uint32(a/2) << bit }

// wider returns the arrangement of 128 bits with lanes twice as large.
func (a Arr) wider() Arr { return a/2*2 + 3 }

// An encoder is what the test of instructions needs to know of one: a Go function that writes it.
type encoder struct {
	name string
	arrs []Arr
	emit any
}

var encoders []encoder

// known notes an encoder and returns its function.
func known[F any](name string, arrs []Arr, emit F) F {
	encoders = append(encoders, encoder{name, arrs, emit})
	return emit
}

// The types of the functions that write instructions.
type (
	// A Three has a destination and two sources; of some the destination is a source too.
	Three func(a Arr, d, n, m V)
	// A Two has a destination and a source.
	Two func(a Arr, d, n V)
	// A Dot has one arrangement: 4 lanes of 32 bits from 16 of 8.
	Dot func(d, n, m V)
	// A DotElem is a Dot whose second source is 4 bytes: element i of m.
	DotElem func(d, n, m V, i int)
	// An Elem is a Three whose second source is element i of m.
	Elem func(a Arr, d, n, m V, i int)
	// A Shift shifts by a constant.
	Shift func(a Arr, d, n V, shift int)
	// A Table looks up bytes in one or more registers that follow each other.
	Table func(d V, table []V, n V)
)

func require(name string, arrs []Arr, a Arr) {
	if !slices.Contains(arrs, a) {
		log.Panicf("arm64: no %s of %v", name, a)
	}
}

func dnm(d, n, m V) uint32 { return uint32(m)<<16 | uint32(n)<<5 | uint32(d) }
func dn(d, n V) uint32     { return dnm(d, n, 0) }

var (
	bytesOnly = []Arr{B8, B16}
	upTo32    = []Arr{B8, B16, H4, H8, S2, S4}
	integers  = []Arr{B8, B16, H4, H8, S2, S4, D2}
	floats    = []Arr{S2, S4, D2}
)

// three returns an instruction whose base has the fields of arrangement, and of registers, zero.
func three(name string, base uint32, arrs []Arr) Three {
	return known(name, arrs, func(a Arr, d, n, m V) {
		require(name, arrs, a)
		word(base|a.q()|a.sizeAt(22)|dnm(d, n, m), name+" %v.%v, %v.%v, %v.%v", d, a, n, a, m, a)
	})
}

// logical returns an instruction to which the size of lanes means nothing.
func logical(name string, base uint32) Three {
	return known(name, bytesOnly, func(a Arr, d, n, m V) {
		require(name, bytesOnly, a)
		word(base|a.q()|dnm(d, n, m), name+" %v.%v, %v.%v, %v.%v", d, a, n, a, m, a)
	})
}

// floatSize returns the field that tells 64 bits from 32.
func floatSize(a Arr) uint32 { return (a.sizeAt(22) & (1 << 22)) }

func floatThree(name string, base uint32) Three {
	return known(name, floats, func(a Arr, d, n, m V) {
		require(name, floats, a)
		word(base|a.q()|floatSize(a)|dnm(d, n, m), name+" %v.%v, %v.%v, %v.%v", d, a, n, a, m, a)
	})
}

// floatTwo returns an instruction of one source; more follows the operands, such as a comparison's zero.
func floatTwo(name string, base uint32, more string) Two {
	return known(name, floats, func(a Arr, d, n V) {
		require(name, floats, a)
		word(base|a.q()|floatSize(a)|dn(d, n), name+" %v.%v, %v.%v"+more, d, a, n, a)
	})
}

func two(name string, base uint32, arrs []Arr, more string) Two {
	return known(name, arrs, func(a Arr, d, n V) {
		require(name, arrs, a)
		word(base|a.q()|a.sizeAt(22)|dn(d, n), name+" %v.%v, %v.%v"+more, d, a, n, a)
	})
}

// second returns the name of an instruction that reads or writes the upper half of a register where a says so.
func second(name string, a Arr) string {
	if a&1 == 1 {
		return name + "2"
	}
	return name
}

// narrow returns an instruction that writes lanes of a from lanes twice as large: the lower half of d, the other
// being zero, or the upper half for an a of 128 bits.
func narrow(name string, base uint32) Two {
	return known(name, upTo32, func(a Arr, d, n V) {
		require(name, upTo32, a)
		word(base|a.q()|a.sizeAt(22)|dn(d, n), second(name, a)+" %v.%v, %v.%v", d, a, n, a.wider())
	})
}

// widen returns an instruction that reads lanes of a (the upper half of a register for an a of 128 bits) and writes
// lanes twice as large.
func widen(name string, base uint32, shifted bool) Two {
	return known(name, upTo32, func(a Arr, d, n V) {
		require(name, upTo32, a)
		more := ""
		if shifted {
			more = fmt.Sprintf(", #%d", a.bits())
		}
		word(base|a.q()|a.sizeAt(22)|dn(d, n), second(name, a)+" %v.%v, %v.%v"+more, d, a.wider(), n, a)
	})
}

// pairwise returns an instruction that adds neighbouring lanes of a to lanes twice as large.
func pairwise(name string, base uint32) Two {
	return known(name, upTo32, func(a Arr, d, n V) {
		require(name, upTo32, a)
		word(base|a.q()|a.sizeAt(22)|dn(d, n), name+" %v.%v, %v.%v", d, []Arr{H4, H8, S2, S4, D1, D2}[a], n, a)
	})
}

// widenThree returns an instruction whose sources have lanes of a and whose destination has lanes twice as large.
func widenThree(name string, base uint32) Three {
	return known(name, upTo32, func(a Arr, d, n, m V) {
		require(name, upTo32, a)
		word(base|a.q()|a.sizeAt(22)|dnm(d, n, m), second(name, a)+" %v.%v, %v.%v, %v.%v", d, a.wider(), n, a, m, a)
	})
}

// wide returns an instruction that adds lanes of a to lanes twice as large.
func wide(name string, base uint32) Three {
	return known(name, upTo32, func(a Arr, d, n, m V) {
		require(name, upTo32, a)
		word(base|a.q()|a.sizeAt(22)|dnm(d, n, m), second(name, a)+" %v.%v, %v.%v, %v.%v", d, a.wider(), n, a.wider(), m, a)
	})
}

// convert returns a conversion between floats of 16 and 32 bits, or 32 and 64; a is the narrower.
func convert(name string, base uint32, wider bool) Two {
	arrs := []Arr{H4, H8, S2, S4}
	return known(name, arrs, func(a Arr, d, n V) {
		require(name, arrs, a)
		w := base | a.q() | uint32(a/2-1)<<22 | dn(d, n)
		if wider {
			word(w, second(name, a)+" %v.%v, %v.%v", d, a.wider(), n, a)
		} else {
			word(w, second(name, a)+" %v.%v, %v.%v", d, a, n, a.wider())
		}
	})
}

// across returns an instruction that reduces all lanes to one; long if that is twice as large.
func across(name string, base uint32, long bool) Two {
	arrs := []Arr{B8, B16, H4, H8, S4}
	return known(name, arrs, func(a Arr, d, n V) {
		require(name, arrs, a)
		size := a.size()
		if long {
			size = a.wider().size()
		}
		word(base|a.q()|a.sizeAt(22)|dn(d, n), name+" "+size+strings.TrimPrefix(d.String(), "v")+", %v.%v", n, a)
		fn.checkV(d)
	})
}

func acrossFloat(name string, base uint32) Two {
	return known(name, []Arr{S4}, func(a Arr, d, n V) {
		require(name, []Arr{S4}, a)
		word(base|dn(d, n), name+" s"+strings.TrimPrefix(d.String(), "v")+", %v.%v", n, a)
		fn.checkV(d)
	})
}

// dot returns an instruction of 4 lanes of 32 bits, sums over 16 lanes of 8.
func dot(name string, base uint32) Dot {
	return known[Dot](name, nil, func(d, n, m V) {
		word(base|dnm(d, n, m), name+" %v.4s, %v.16b, %v.16b", d, n, m)
	})
}

func dotElem(name string, base uint32) DotElem {
	return known[DotElem](name, nil, func(d, n, m V, i int) {
		word(base|dnm(d, n, m)|elemS(i), name+" %v.4s, %v.16b, %v.4b[%d]", d, n, m, i)
	})
}

// elemS returns the field of an element of 32 bits.
func elemS(i int) uint32 {
	if i < 0 || i > 3 {
		log.Panicf("arm64: element %d of 4", i)
	}
	return uint32(i&1)<<21 | uint32(i>>1)<<11
}

// elem returns an instruction by an element of 32 or 64 bits.
func elem(name string, base uint32, arrs []Arr) Elem {
	return known[Elem](name, arrs, func(a Arr, d, n, m V, i int) {
		require(name, arrs, a)
		field := elemS(i)
		if a == D2 {
			field = uint32(i)<<11 | 1<<22
		}
		word(base|a.q()|field|dnm(d, n, m), name+" %v.%v, %v.%v, %v.%v[%d]", d, a, n, a, m, a.size(), i)
	})
}

// shiftField returns the field of a shift of lanes of a.
func shiftField(name string, a Arr, shift int, right bool) uint32 {
	bits := a.bits()
	if shift < 0 || shift > bits || right && shift == 0 || !right && shift == bits {
		log.Panicf("arm64: %s of %v by %d", name, a, shift)
	}
	if right {
		return uint32(2*bits-shift) << 16
	}
	return uint32(bits+shift) << 16
}

func shift(name string, base uint32, right bool) Shift {
	return known[Shift](name, integers, func(a Arr, d, n V, by int) {
		require(name, integers, a)
		word(base|a.q()|shiftField(name, a, by, right)|dn(d, n), name+" %v.%v, %v.%v, #%d", d, a, n, a, by)
	})
}

// shiftWiden reads lanes of a, shiftNarrow writes them.
func shiftWiden(name string, base uint32) Shift {
	return known[Shift](name, upTo32, func(a Arr, d, n V, by int) {
		require(name, upTo32, a)
		word(base|a.q()|shiftField(name, a, by, false)|dn(d, n), second(name, a)+" %v.%v, %v.%v, #%d", d, a.wider(), n, a, by)
	})
}

func shiftNarrow(name string, base uint32) Shift {
	return known[Shift](name, upTo32, func(a Arr, d, n V, by int) {
		require(name, upTo32, a)
		word(base|a.q()|shiftField(name, a, by, true)|dn(d, n), second(name, a)+" %v.%v, %v.%v, #%d", d, a, n, a.wider(), by)
	})
}

func table(name string, base uint32) Table {
	return known[Table](name, nil, func(d V, table []V, n V) {
		word(base|uint32(len(table)-1)<<13|dnm(d, table[0], n), name+" %v.16b, {"+list(table, B16)+"}, %v.16b", d, n)
	})
}

// list returns registers that follow each other, as Arm lists them.
func list(v []V, a Arr) string {
	for i := range v {
		fn.checkV(v[i])
		if v[i] != v[0]+V(i) {
			log.Panicf("arm64: registers %v do not follow each other", v)
		}
	}
	if len(v) > 2 {
		return fmt.Sprintf("%v.%v-%v.%v", v[0], a, v[len(v)-1], a)
	}
	var names []string
	for _, r := range v {
		names = append(names, fmt.Sprintf("%v.%v", r, a))
	}
	return strings.Join(names, ", ")
}
