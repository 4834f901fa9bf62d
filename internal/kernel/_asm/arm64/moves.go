package arm64

import (
	"fmt"
	"log"
	"math"
)

// Moves between registers, constants, and memory.

// The types of the functions that write them.
type (
	lane       func(a Arr, d, n V, i int)
	fromReg    func(a Arr, d V, r R)
	laneToLane func(a Arr, d V, i int, n V, j int)
	regToLane  func(a Arr, d V, i int, r R)
	laneToReg  func(a Arr, r R, n V, i int)
	constant   func(a Arr, d V, value uint32, shift int)
	memory     func(v V, base R, disp int)
	memoryReg  func(v V, base, index R)
	memoryPair func(v, w V, base R, disp int)
	lists      func(a Arr, v []V, base R)
	listsPost  func(a Arr, v []V, base, by R)
	one        func(a Arr, v V, base R)
	onePost    func(a Arr, v V, base, by R)
	laneMemory func(a Arr, v V, i int, base R)
)

// imm5 returns the field of element i of lanes of a.
func imm5(a Arr, i int) uint32 {
	if i < 0 || i >= 128/a.bits() {
		log.Panicf("arm64: element %d of lanes %s", i, a.size())
	}
	return (uint32(i)<<1 | 1) << (a / 2) << 16
}

// Lanes.
var (
	// DUP copies element i of n to all lanes of d.
	DUP = known[lane]("dup", integers, func(a Arr, d, n V, i int) {
		require("dup", integers, a)
		word(0x0e000400|a.q()|imm5(a, i)|dn(d, n), "dup %v.%v, %v.%s[%d]", d, a, n, a.size(), i)
	})
	// DUPReg copies the low bits of r to all lanes of d.
	DUPReg = known[fromReg]("dup", integers, func(a Arr, d V, r R) {
		require("dup", integers, a)
		word(0x0e000c00|a.q()|imm5(a, 0)|dn(d, V(r)), "dup %v.%v, "+a.reg(r), d, a)
		fn.check(r)
	})
	// INS copies element j of n to element i of d.
	INS = known[laneToLane]("ins", []Arr{B16, H8, S4, D2}, func(a Arr, d V, i int, n V, j int) {
		imm5(a, j)
		word(0x6e000400|imm5(a, i)|uint32(j)<<(a/2)<<11|dn(d, n), "ins %v.%s[%d], %v.%s[%d]", d, a.size(), i, n, a.size(), j)
	})
	// INSReg copies the low bits of r to element i of d.
	INSReg = known[regToLane]("ins", []Arr{B16, H8, S4, D2}, func(a Arr, d V, i int, r R) {
		word(0x4e001c00|imm5(a, i)|dn(d, V(r)), "ins %v.%s[%d], "+a.reg(r), d, a.size(), i)
		fn.check(r)
	})
	// UMOV copies element i of n to r, the upper bits being zero.
	UMOV = known[laneToReg]("umov", []Arr{B16, H8, S4, D2}, func(a Arr, r R, n V, i int) {
		q := uint32(0)
		if a == D2 {
			q = 1 << 30
		}
		word(0x0e003c00|q|imm5(a, i)|dn(V(r), n), "umov "+a.reg(r)+", %v.%s[%d]", n, a.size(), i)
		fn.check(r)
	})
)

// reg returns the name of the part of r from which lanes of a are taken.
func (a Arr) reg(r R) string {
	if a == D2 {
		return r.x()
	}
	return r.w()
}

// EXT takes 16 bytes from byte i of the 32 bytes of n and, behind it, m.
func EXT(d, n, m V, i int) {
	if i < 0 || i > 15 {
		log.Panicf("arm64: ext from byte %d", i)
	}
	word(0x6e000000|uint32(i)<<11|dnm(d, n, m), "ext %v.16b, %v.16b, %v.16b, #%d", d, n, m, i)
}

// MOV copies a register.
func MOV(d, n V) { ORR(B16, d, n, n) }

// ZERO clears a register.
func ZERO(d V) { MOVI(S4, d, 0, 0) }

// MOVI sets all lanes of d to an 8-bit value shifted left, MVNI to the inverse of that, FMOV to a float of 32 bits that has few
// bits of fraction.
var (
	MOVI = known[constant]("movi", []Arr{B16, H8, S4}, func(a Arr, d V, value uint32, shift int) {
		base := map[Arr]uint32{B16: 0x4f00e400, H8: 0x4f008400, S4: 0x4f000400}[a]
		immediate("movi", base, a, d, value, shift)
	})
	MVNI = known[constant]("mvni", []Arr{H8, S4}, func(a Arr, d V, value uint32, shift int) {
		base := map[Arr]uint32{H8: 0x6f008400, S4: 0x6f000400}[a]
		immediate("mvni", base, a, d, value, shift)
	})
)

func immediate(name string, base uint32, a Arr, d V, value uint32, shift int) {
	if base == 0 || value > 255 || shift%8 != 0 || shift >= a.bits() {
		log.Panicf("arm64: %s of %v: %#x << %d", name, a, value, shift)
	}
	more := ""
	if a != B16 && shift > 0 {
		more = fmt.Sprintf(", lsl #%d", shift)
	}
	word(base|uint32(shift/8)<<13|value>>5<<16|value&31<<5|uint32(d), name+" %v.%v, #0x%x"+more, d, a, value)
}

// FMOV sets 4 lanes to a constant: n/16 * 2^r with n of 16 to 31 and r of -3 to 4, of either sign.
func FMOV(d V, value float32) {
	b := math.Float32bits(value)
	imm := b>>24&0x80 | b>>19&0x7f
	if e := b >> 25 & 0x3f; b&(1<<19-1) != 0 || e != 0x20 && e != 0x1f {
		log.Panicf("arm64: fmov of %v", value)
	}
	word(0x4f00f400|imm>>5<<16|imm&31<<5|uint32(d), "fmov %v.4s, #%s", d, fmt.Sprintf("%.18e", value))
}

// address returns base and disp as Arm writes them.
func address(disp int) string {
	if disp == 0 {
		return "]"
	}
	return fmt.Sprintf(", #%d]", disp)
}

// single returns a load or store of the lowest bytes of a register: those of a load's upper bits become zero.
func single(name, letter string, base uint32, bytes int) memory {
	return known[memory](name+" "+letter, nil, func(v V, r R, disp int) {
		if disp < 0 || disp%bytes != 0 || disp/bytes > 4095 {
			log.Panicf("arm64: %s %s at %d", name, letter, disp)
		}
		fn.checkV(v)
		fn.check(r)
		word(base|uint32(disp/bytes)<<10|dn(v, V(r)), "%s %s%d, [%s%s", name, letter, int(v), r.x(), address(disp))
	})
}

// unscaled returns a load or store at any distance from -256 to 255.
func unscaled(name string, base uint32) memory {
	return known[memory](name, nil, func(v V, r R, disp int) {
		if disp < -256 || disp > 255 {
			log.Panicf("arm64: %s at %d", name, disp)
		}
		fn.checkV(v)
		fn.check(r)
		word(base|uint32(disp&0x1ff)<<12|dn(v, V(r)), "%s q%d, [%s%s", name, int(v), r.x(), address(disp))
	})
}

// indexed returns a load or store at base + index.
func indexed(name, letter string, base uint32) memoryReg {
	return known[memoryReg](name+" "+letter, nil, func(v V, r, index R) {
		fn.checkV(v)
		fn.check(r)
		fn.check(index)
		word(base|dnm(v, V(r), V(index)), "%s %s%d, [%s, %s]", name, letter, int(v), r.x(), index.x())
	})
}

func pair(name string, base uint32) memoryPair {
	return known[memoryPair](name, nil, func(v, w V, r R, disp int) {
		if disp%16 != 0 || disp < -1024 || disp > 1008 {
			log.Panicf("arm64: %s at %d", name, disp)
		}
		fn.checkV(v)
		fn.checkV(w)
		fn.check(r)
		word(base|uint32(disp/16&0x7f)<<15|uint32(w)<<10|dn(v, V(r)), "%s q%d, q%d, [%s%s", name, int(v), int(w), r.x(), address(disp))
	})
}

// Loads and stores with a distance.
var (
	LDRQ = single("ldr", "q", 0x3dc00000, 16)
	LDRD = single("ldr", "d", 0xfd400000, 8)
	LDRS = single("ldr", "s", 0xbd400000, 4)
	LDRH = single("ldr", "h", 0x7d400000, 2)
	STRQ = single("str", "q", 0x3d800000, 16)
	STRD = single("str", "d", 0xfd000000, 8)
	STRS = single("str", "s", 0xbd000000, 4)
	STRH = single("str", "h", 0x7d000000, 2)

	LDURQ = unscaled("ldur", 0x3cc00000)
	STURQ = unscaled("stur", 0x3c800000)

	LDRQX = indexed("ldr", "q", 0x3ce06800)
	STRQX = indexed("str", "q", 0x3ca06800)
	LDRSX = indexed("ldr", "s", 0xbc606800)
	STRSX = indexed("str", "s", 0xbc206800)

	LDPQ = pair("ldp", 0xad400000)
	STPQ = pair("stp", 0xad000000)
)

// structures are the fields of loads and stores of registers that follow each other: of 1 to 4 that are filled one after the
// other.
var structures = []uint32{0, 0x7000, 0xa000, 0x6000, 0x2000}

// many returns a load or store of registers that follow each other; interleaved, the lanes of each alternate in memory.
func many(name string, base uint32, field func(n int) uint32) lists {
	return known[lists](name, integers, func(a Arr, v []V, r R) {
		fn.check(r)
		word(base|a.q()|field(len(v))|a.sizeAt(10)|dn(v[0], V(r)), "%s {%s}, [%s]", name, list(v, a), r.x())
	})
}

// manyPost is many and then adds a register to the base.
func manyPost(name string, base uint32, field func(n int) uint32) listsPost {
	return known[listsPost](name, integers, func(a Arr, v []V, r, by R) {
		fn.check(r)
		fn.check(by)
		word(base|a.q()|field(len(v))|a.sizeAt(10)|dnm(v[0], V(r), V(by)), "%s {%s}, [%s], %s", name, list(v, a), r.x(), by.x())
	})
}

func consecutive(n int) uint32 { return structures[n] }

// exactly returns the field of a structure of n registers.
func exactly(n int, field uint32) func(int) uint32 {
	return func(m int) uint32 {
		if m != n {
			log.Panicf("arm64: %d registers where %d are due", m, n)
		}
		return field
	}
}

// LD1 and ST1 fill 1 to 4 registers one after the other, LD2 and LD4 lane by lane in turn. LD1R fills all lanes with one element. With
// Post, the register by is added to the base afterwards.
var (
	LD1     = many("ld1", 0x0c400000, consecutive)
	ST1     = many("st1", 0x0c000000, consecutive)
	LD2     = many("ld2", 0x0c400000, exactly(2, 0x8000))
	LD4     = many("ld4", 0x0c400000, exactly(4, 0))
	ST2     = many("st2", 0x0c000000, exactly(2, 0x8000))
	ST4     = many("st4", 0x0c000000, exactly(4, 0))
	LD1Post = manyPost("ld1", 0x0cc00000, consecutive)
	ST1Post = manyPost("st1", 0x0c800000, consecutive)

	LD1R = known[one]("ld1r", integers, func(a Arr, v V, r R) {
		fn.check(r)
		word(0x0d40c000|a.q()|a.sizeAt(10)|dn(v, V(r)), "ld1r {%v.%v}, [%s]", v, a, r.x())
	})
	LD1RPost = known[onePost]("ld1r", integers, func(a Arr, v V, r, by R) {
		fn.check(r)
		fn.check(by)
		word(0x0dc0c000|a.q()|a.sizeAt(10)|dnm(v, V(r), V(by)), "ld1r {%v.%v}, [%s], %s", v, a, r.x(), by.x())
	})
	// LD1Lane loads element i and keeps the others.
	LD1Lane = known[laneMemory]("ld1", []Arr{S4, D2}, func(a Arr, v V, i int, r R) { laneAt("ld1", 0x0d400000, a, v, i, r) })
	// ST1Lane stores element i.
	ST1Lane = known[laneMemory]("st1", []Arr{S4, D2}, func(a Arr, v V, i int, r R) { laneAt("st1", 0x0d000000, a, v, i, r) })
)

func laneAt(name string, base uint32, a Arr, v V, i int, r R) {
	imm5(a, i)
	field := uint32(i>>1)<<30 | uint32(i&1)<<12 | 0x8000
	if a == D2 {
		field = uint32(i)<<30 | 0x8400
	}
	fn.check(r)
	word(base|field|dn(v, V(r)), "%s {%v.%s}[%d], [%s]", name, v, a.size(), i, r.x())
}
