package tensor

// IQ4_XS is blocks of 256 elements in 136 bytes, eight sub-blocks of 32 with nibbles as in IQ4_NL. With the scale from
// iq4XSScale, an element is (d*scale) * iq4Values[nibble].
const IQ4_XS Type = 23

const (
	iq4_XSD      = 0 // d, a half
	iq4_XSScales = 2 // 6 bytes: eight scales of 6 bits
	iq4_XSQ      = 8 // q, 128 bytes
)

// Packed: the half and the high bits of the scales, their low bits, then of every 32 inputs nibbles by quads, as Q4_0.
var iq4_XS = Codec{
	Type: IQ4_XS, Name: "IQ4_XS", Elems: 256, Bytes: 136,
	Unpack:    unpackIQ4_XS,
	Pack:      packIQ4_XS,
	Parts:     []Part{{4, 2}, {4, 4}, {128, 4}},
	Term:      termIQ4_XS,
	FullBytes: true,
	FileType:  30,
	Fallback:  IQ4_NL,
}

// iq4XSScale returns the scale, -32 to 31, of sub-block j (0 to 7) from the 6 scale bytes of an IQ4_XS
// block. Of the scale plus 32, the high 2 bits are bits 2j and 2j+1 of the first two bytes, the low 4 bits nibble j
// of the last four.
func iq4XSScale(scales []byte, j int) int8 {
	return int8(scales[2+j/2]>>(j%2*4)&15|scales[j/4]>>(j%4*2)&3<<4) - 32
}

func unpackIQ4_XS(dst []float32, b []byte) {
	d := half(b[iq4_XSD:])
	for j := range 8 {
		scale := d * float32(iq4XSScale(b[iq4_XSScales:], j))
		unpackCodes(dst[32*j:], b[iq4_XSQ+16*j:], scale, &iq4Values)
	}
}

func packIQ4_XS(b []byte, src []float32) bool {
	var scale [8]float32
	for j := range scale {
		scale[j] = fitCodes(src[32*j:][:32])
	}
	ok := putHalf(b[iq4_XSD:], peakOf(scale[:])/-32)
	d := half(b[iq4_XSD:])
	clear(b[iq4_XSScales:iq4_XSQ])
	for j := range scale {
		sc := clampRound(scale[j]*inverse(d), -32, 31)
		b[iq4_XSScales+j/4] |= byte((sc+32)>>4) << (j % 4 * 2)
		b[iq4_XSScales+2+j/2] |= byte((sc+32)&15) << (j % 2 * 4)
		packCodes(b[iq4_XSQ+16*j:], src[32*j:], d*float32(sc))
	}
	return ok
}

func termIQ4_XS(t *Term, b []byte, s int) {
	t.D = half(b[iq4_XSD:])
	t.codes(b[iq4_XSQ+16*s:], &iq4Values)
	t.scales(int32(iq4XSScale(b[iq4_XSScales:], s)))
}
