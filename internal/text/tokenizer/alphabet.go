package tokenizer

import "unicode/utf8"

// Byte-level vocabularies write each byte as one printable character: printable bytes of Latin-1 as
// themselves, the others as U+0100 and up in their order (Radford et al. 2019, bytes_to_unicode).
const firstUnprintable = 0x100

// alphabet maps the character of each byte to that byte. Every such character is below its length.
var alphabet = func() (a [firstUnprintable + 68]int16) {
	for i := range a {
		a[i] = -1
	}
	n := firstUnprintable
	for b := range 256 {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b {
			a[b] = int16(b)
		} else {
			a[n] = int16(b)
			n++
		}
	}
	return a
}()

// fromAlphabet returns the bytes that a text of the byte alphabet spells. Characters outside the alphabet spell themselves;
// ok is false if there is one.
func fromAlphabet(text string) (raw string, ok bool) {
	ok = true
	buf := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if int(r) < len(alphabet) && alphabet[r] >= 0 {
			buf = append(buf, byte(alphabet[r]))
		} else {
			buf = append(buf, text[i:i+n]...)
			ok = false
		}
		i += n
	}
	return string(buf), ok
}
