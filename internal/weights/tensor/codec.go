package tensor

import "fmt"

// codecs are the weight types, in the order in which they are listed for users. A new weight type is a file that
// defines its codec, and a line here.
var codecs = [...]*Codec{
	&f32,
	&f16,
	&bf16,
	&q8_0,
	&q4_0,
	&q4_1,
	&q5_0,
	&q5_1,
	&q2_K,
	&q3_K,
	&q4_K,
	&q5_K,
	&q6_K,
	&iq4_NL,
	&iq4_XS,
	&mxfp4,
}

// A Codec is all that grove knows of one weight type. It is read-only. Its functions keep nothing of their
// arguments, do not allocate, and may run concurrently. Float types (F32, F16, BF16) have blocks of one
// element; the others, called quantised, have blocks of a multiple of [TermLen] elements.
type Codec struct {
	Type  Type
	Name  string // as users know it, such as Q8_0
	Elems int    // elements of a block
	Bytes int    // bytes of a block, at most [MaxBlock]

	// Unpack writes the values of the block b to dst. Of a float type, dst and b may hold any number of elements.
	// Values are computed as ggml's reference does, in float32 without fused operations. Any bytes are valid.
	Unpack func(dst []float32, b []byte)

	// Pack is the inverse of Unpack. It reports false where the block cannot hold the scale of src. The values of a
	// quantised type are finite.
	Pack func(b []byte, src []float32) bool

	// Max is the largest magnitude that a float type keeps finite; 0: every float32.
	Max float32

	// Parts cut a block, in the order of the kernels, for packed matrices: of each part these hold one unit of every
	// output in turn. Float types need none.
	Parts []Part

	// Reorder writes the block src of a file to dst in the order of the kernels, and Restore is its inverse. They are
	// nil where both orders are the same.
	Reorder, Restore func(dst, src []byte)

	// Term reads the weights TermLen*s and on of a block of a file for a product. It is called with a t whose scales
	// are 1 and whose other fields are zero. Float types have none.
	Term func(t *Term, b []byte, s int)

	// FullBytes is set where the integers of the weights take all the bits of a signed byte. The sums of two such
	// products do not fit 16 bits, so that products cost more instructions than those of smaller integers.
	FullBytes bool

	// FileType is the number under general.file_type of a file whose weights are mostly of this type.
	FileType uint32

	// Fallback is the type that quantising gives to rows that are not whole blocks of this one.
	Fallback Type
}

// MaxBlock is the bytes that a block of a weight type may have.
const MaxBlock = 256

// A Part is some bytes of a block that are interleaved by units of 1, 2 or 4 bytes.
type Part struct{ Bytes, Unit int }

// Quantised reports whether the type's weights are integers with scales.
func (c *Codec) Quantised() bool { return c.Term != nil }

// table holds every type that has a name, by its number; nil: none has it.
var table = func() (t [64]*Codec) {
	for _, c := range codecs {
		t[c.Type] = c
	}
	for i := range others {
		t[others[i].Type] = &others[i]
	}
	return t
}()

// known returns the entry of a type, nil for a type without one.
func known(t Type) *Codec {
	if int(t) < len(table) {
		return table[t]
	}
	return nil
}

// CodecOf returns the codec of a weight type; false for a type whose values grove cannot read.
func CodecOf(t Type) (*Codec, bool) {
	c := known(t)
	return c, c != nil && c.Unpack != nil
}

// Types returns the weight types in the order in which they are listed for users.
func Types() []Type {
	types := make([]Type, len(codecs))
	for i, c := range codecs {
		types[i] = c.Type
	}
	return types
}

// Unpack writes the values of src, consecutive blocks of type t, to dst.
// Len(dst) must be a whole number of blocks and src exactly their bytes. Any bytes are valid: a scale that
// is not finite gives values that are not finite. It fails on a type without a codec and on wrong
// lengths, and then leaves dst alone.
func Unpack(t Type, dst []float32, src []byte) error {
	c, elems, size, err := prepare(t, len(dst), len(src))
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		c.Unpack(dst[:elems], src[:size])
		dst, src = dst[elems:], src[size:]
	}
	return nil
}

// Pack writes src as consecutive blocks of type t to dst; lengths are as in [Unpack].
// Q8_0 and Q4_0 give the bytes of ggml's reference quantiser; the others search for the scales
// of least weighted squared error, a larger weight counting more (fit.go), and give the same bytes on every
// machine. F16 and BF16 round to nearest even and overflow to infinity; the quantised types refuse NaN,
// infinity and values whose scale is beyond what the block holds, and dst then holds the blocks before the
// refused one. Calls are independent: rows may be packed in parallel.
func Pack(t Type, dst []byte, src []float32) error {
	c, elems, size, err := prepare(t, len(src), len(dst))
	if err != nil {
		return err
	}
	for at := 0; at < len(src); at += elems {
		x := src[at : at+elems]
		if c.Quantised() {
			if i := firstNonFinite(x); i >= 0 {
				return fmt.Errorf("%v: element %d is %v; it must be finite", t, at+i, x[i])
			}
		}
		if !c.Pack(dst[:size], x) {
			return fmt.Errorf("%v: elements %d to %d are too large for the scale of a block", t, at, at+elems-1)
		}
		dst = dst[size:]
	}
	return nil
}

// prepare returns the codec of a type and the elements and bytes that it converts at a time: a block, or all of a
// float type. It checks the lengths of both sides.
func prepare(t Type, nElems, nBytes int) (c *Codec, elems, size int, err error) {
	c, ok := CodecOf(t)
	if !ok {
		return nil, 0, 0, fmt.Errorf("type %v has no codec; use a file of another type, such as Q8_0", t)
	}
	want, whole := t.RowBytes(nElems)
	if !whole {
		return nil, 0, 0, fmt.Errorf("%v: %d elements are not a multiple of %d", t, nElems, c.Elems)
	}
	if nBytes != want {
		return nil, 0, 0, fmt.Errorf("%v: %d elements take %d bytes, not %d", t, nElems, want, nBytes)
	}
	if !c.Quantised() {
		return c, nElems, nBytes, nil
	}
	return c, c.Elems, c.Bytes, nil
}

// firstNonFinite returns the index of the first NaN or infinity of x, or -1.
func firstNonFinite(x []float32) int {
	for i, v := range x {
		if v-v != 0 {
			return i
		}
	}
	return -1
}
