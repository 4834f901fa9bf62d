package pretoken

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Charsmap is SentencePiece's precompiled map from one or more characters to their replacement: the size of a double array in
// bytes, the double array of the bytes of the characters, and replacements that end in NUL.
type Charsmap struct {
	units        []uint32
	replacements []byte
}

// NewCharsmap reads a map. An empty map changes nothing. Errors: sizes that do not fit the bytes.
func NewCharsmap(b []byte) (Charsmap, error) {
	if len(b) == 0 {
		return Charsmap{}, nil
	}
	var size uint32
	if len(b) >= 4 {
		size = binary.LittleEndian.Uint32(b)
	}
	if size == 0 || size%4 != 0 || int64(size)+4 >= int64(len(b)) {
		return Charsmap{}, fmt.Errorf("tokenizer: a map of characters of %d bytes names %d for its double array", len(b), size)
	}
	m := Charsmap{units: make([]uint32, size/4), replacements: b[4+size:]}
	_, _ = binary.Decode(b[4:], binary.LittleEndian, m.units) // there are enough bytes
	if m.replacements[len(m.replacements)-1] != 0 {
		return Charsmap{}, fmt.Errorf("tokenizer: the last replacement of a map of characters does not end")
	}
	return m, nil
}

// Normalize replaces the longest text of the map at each index. (Hugging Face's tokenizers look up whole grapheme clusters
// first.)
func (m *Charsmap) Normalize(text string) string {
	if m.units == nil {
		return text
	}
	var b strings.Builder
	kept := 0 // text before is in b
	for i := 0; i < len(text); {
		n, to := m.longest(text[i:])
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
			i += n
			continue
		}
		b.WriteString(text[kept:i])
		b.Write(to)
		i += n
		kept = i
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// longest returns the length of the longest text of the map at the start of text, 0 if there is none, and its replacement. A unit of
// the double array holds a label in bits 0 to 7, the end of a text in bit 8, and an offset to its children in bits 10 to 30,
// times 256 if bit 9 is set. The unit of an end holds the start of its replacement. Units out of range are not children.
func (m *Charsmap) longest(text string) (n int, to []byte) {
	at := offset(m.units[0])
	for i := 0; i < len(text) && text[i] != 0; i++ {
		at ^= uint32(text[i])
		if at >= uint32(len(m.units)) {
			break
		}
		unit := m.units[at]
		if unit&(1<<31|0xFF) != uint32(text[i]) {
			break
		}
		at ^= offset(unit)
		if unit>>8&1 == 0 || at >= uint32(len(m.units)) {
			continue
		}
		if begin := m.units[at] &^ (1 << 31); begin < uint32(len(m.replacements)) {
			to = m.replacements[begin:]
			n, to = i+1, to[:bytes.IndexByte(to, 0)]
		}
	}
	return n, to
}

func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
