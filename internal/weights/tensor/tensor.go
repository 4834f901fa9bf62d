// Package tensor describes the weights of model files: their types, how the bytes of each type encode values, and
// tensors as views over bytes.
//
// A weight type is one file, which holds its number, its name and its [Codec], and one line in the list of codecs. The code
// that reads, packs, multiplies or quantises weights takes its knowledge of a type from the codec. The formats are
// those of ggml; all numbers are little endian.
package tensor

import (
	"fmt"
	"strings"
)

// Type is an element type by its number in GGUF files. The file of its codec has its constant.
type Type uint32

// Block returns the elements and the bytes of one block of the type; ok is false for a type that
// grove cannot lay out.
func (t Type) Block() (elems, bytes int, ok bool) {
	if c := known(t); c != nil && c.Elems > 0 {
		return c.Elems, c.Bytes, true
	}
	return 0, 0, false
}

// String returns the name of the type, such as Q8_0, or type N for an unknown number.
func (t Type) String() string {
	if c := known(t); c != nil {
		return c.Name
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

// View is a tensor over bytes that the view does not own, mostly those of a mapped file.
// Shape is outermost first: a matrix is [outputs, inputs], a stack of experts
// [experts, outputs, inputs]; Data is row-major. A View may be copied; it is valid as long as
// the owner of Data says.
type View struct {
	Name  string
	Type  Type
	Shape []int
	Data  []byte
}

// Label returns the name of a tensor for a message: as it is if it is short and has only letters, digits and the signs . _ - of
// ASCII, else cut and quoted, so that the names in a file cannot pass for other text.
func Label(name string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, special) {
		return fmt.Sprintf("%.100q", name)
	}
	return name
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
