package tensor

// TermLen is the weights of a [Term]: as many activations share a scale.
const TermLen = 32

// A Term is 32 consecutive weights of one output as a product reads them. With the exact integers
//
//	p = Scale[0]*sum(Q*x) + Scale[1]*sum(Q*x)    over the two halves of 16,
//	o = Offset[0]*sum(x) + Offset[1]*sum(x)      likewise,
//
// x being the quantised activations and dx their scale, it continues the sum of an output by one step, or two where
// the type has offsets:
//
//	acc = FMA32(float32(p), float32(D*dx), acc)
//	acc = FMA32(float32(o), float32(DOffset*dx), acc)
//
// A float32 holds both integers exactly. A sum is never -0, so the sign of a zero p or o does not count.
type Term struct {
	Q          [TermLen]int8
	Scale      [2]int32
	D          float32
	Offset     [2]int32
	DOffset    float32
	HasOffsets bool
}

// scales sets the scale of both halves.
func (t *Term) scales(n int32) { t.Scale = [2]int32{n, n} }

// offsets reads the scale of the weights and, behind it, that of the offsets, which are all n.
func (t *Term) offsets(b []byte, n int32) {
	t.D, t.DOffset, t.HasOffsets = half(b), half(b[2:]), true
	t.Offset = [2]int32{n, n}
}

// nibbles reads weights i and i+16 from the low and the high nibble of byte i.
func (t *Term) nibbles(b []byte) {
	for i, v := range b[:16] {
		t.Q[i], t.Q[i+16] = int8(v&15), int8(v>>4)
	}
}

// codes reads weights as nibbles does, each of which is the index of a value.
func (t *Term) codes(b []byte, values *[16]int8) {
	t.nibbles(b)
	for i, v := range t.Q {
		t.Q[i] = values[v]
	}
}

// fifth adds bit i of bits to weight i as its fifth.
func (t *Term) fifth(bits uint32) {
	for i := range t.Q {
		t.Q[i] |= int8(bits>>i&1) << 4
	}
}

// or adds to weight i the bits of byte i under a mask, after a shift right, at the place to.
func (t *Term) or(b []byte, shift int, mask byte, to int) {
	for i, v := range b[:TermLen] {
		t.Q[i] |= int8(v >> shift & mask << to)
	}
}

// less subtracts n from every weight.
func (t *Term) less(n int8) {
	for i := range t.Q {
		t.Q[i] -= n
	}
}
