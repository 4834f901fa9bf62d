// Package tensor names the element types of weights and describes a tensor as a view over bytes.
// It does no arithmetic: package quant says what the bytes of a type mean.
package tensor

import "fmt"

// Type is an element type by its number in GGUF files.
type Type uint32

// The types that grove can lay out. Of others it knows the names, for messages.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q8_1   Type = 9
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	Q8_K   Type = 15
	IQ4_NL Type = 20
	IQ4_XS Type = 23
	I8     Type = 24
	I16    Type = 25
	I32    Type = 26
	I64    Type = 27
	F64    Type = 28
	BF16   Type = 30
	MXFP4  Type = 39
)

// layout is what a reader must know of a type to find its bytes.
type layout struct {
	name  string
	elems int // elements of a block
	bytes int // bytes of a block
}

// refused are the names of the types that exist and have no layout here.
var refused = map[Type]string{
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S", 29: "IQ1_M",
	34: "TQ1_0", 35: "TQ2_0", 40: "NVFP4",
}

var layouts = map[Type]layout{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2}, F64: {"F64", 1, 8},
	I8: {"I8", 1, 1}, I16: {"I16", 1, 2}, I32: {"I32", 1, 4}, I64: {"I64", 1, 8},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24},
	Q8_0: {"Q8_0", 32, 34}, Q8_1: {"Q8_1", 32, 36},
	Q2_K: {"Q2_K", 256, 84}, Q3_K: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144},
	Q5_K: {"Q5_K", 256, 176}, Q6_K: {"Q6_K", 256, 210}, Q8_K: {"Q8_K", 256, 292},
	IQ4_NL: {"IQ4_NL", 32, 18}, IQ4_XS: {"IQ4_XS", 256, 136}, MXFP4: {"MXFP4", 32, 17},
}

// Block returns the elements and the bytes of one block of the type; ok is false for a type that
// grove cannot lay out.
func (t Type) Block() (elems, bytes int, ok bool) {
	l, ok := layouts[t]
	return l.elems, l.bytes, ok
}

// String returns the name users know, such as Q8_0, or type N for an unknown number.
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	if name, ok := refused[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// RowBytes returns the bytes of n consecutive elements. It returns false where n is not a whole
// number of blocks or the type has no known layout.
func (t Type) RowBytes(n int) (int, bool) {
	elems, bytes, ok := t.Block()
	if !ok || n < 0 || n%elems != 0 {
		return 0, false
	}
	return n / elems * bytes, true
}

// View is a tensor over bytes that somebody else owns, mostly a mapped file.
// Shape is outermost first: a matrix is [outputs, inputs], a stack of experts
// [experts, outputs, inputs]; Data is row-major. A View may be copied; it stays valid as long as
// the owner of Data says.
type View struct {
	Name  string
	Type  Type
	Shape []int
	Data  []byte
}

// Elems returns the number of elements, 1 for a scalar.
func (v View) Elems() int {
	n := 1
	for _, d := range v.Shape {
		n *= d
	}
	return n
}

// Bytes returns the bytes that the shape takes in the type, 0 where rows are not whole blocks.
func (v View) Bytes() int {
	if len(v.Shape) == 0 {
		return 0
	}
	row, _ := v.Type.RowBytes(v.Shape[len(v.Shape)-1])
	for _, d := range v.Shape[:len(v.Shape)-1] {
		row *= d
	}
	return row
}
