package schema

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// punycode returns how many characters RFC 3492 writes a label in.
func punycode(label string) int {
	const base, low, high, skew, damp = 36, 1, 26, 38, 700
	text := []rune(label)
	n, delta, bias, done, length := rune(0x80), 0, 72, 0, 0
	for _, r := range text {
		if r < 0x80 {
			done, length = done+1, length+1
		}
	}
	if length > 0 {
		length++
	}
	plain := done
	for done < len(text) {
		next := rune(utf8.MaxRune)
		for _, r := range text {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range text {
			switch {
			case r < n:
				delta++
			case r == n:
				q := delta
				for k := base; ; k += base {
					t := min(max(k-bias, low), high)
					length++
					if q < t {
						break
					}
					q = (q - t) / (base - t)
				}
				if delta /= 2; done == plain {
					delta /= damp / 2
				}
				delta += delta / (done + 1)
				k := 0
				for ; delta > (base-low)*high/2; k += base {
					delta /= base - low
				}
				bias = k + (base-low+1)*delta/(delta+skew)
				delta, done = 0, done+1
			}
		}
		delta++
		n++
	}
	return length
}

// TestInternationalNames draws names and asks for the bounds of their forms in Punycode, and for normal forms.
func TestInternationalNames(t *testing.T) {
	for label, want := range map[string]int{"bücher": 9, "παράδειγμα": 14, "실례": 7, "테스트": 10} {
		if got := punycode(label); got != want {
			t.Fatalf("%s: %d, want %d", label, got, want)
		}
	}
	s, id := language(t, "idn-hostname")
	r := rand.New(rand.NewPCG(9, 10))
	wide := 0
	for range 2000 {
		name, ok := walk(s, id, r, 40)
		if !ok {
			continue
		}
		total := -1
		for label := range strings.SplitSeq(name, ".") {
			n := len(label)
			if n != utf8.RuneCountInString(label) {
				n = 4 + punycode(label)
				wide++
			}
			if total += n + 1; n > 63 {
				t.Errorf("%s has %d characters in Punycode", label, n)
			}
		}
		if total > maxName || !norm.NFC.IsNormalString(name) {
			t.Errorf("%s: %d characters, normal form %v", name, total, norm.NFC.IsNormalString(name))
		}
	}
	if wide < 200 {
		t.Errorf("only %d labels beyond ASCII were drawn", wide)
	}
}

// TestStable compares with the folding of golang.org/x/text, which programs need not link.
func TestStable(t *testing.T) {
	fold := cases.Fold()
	for r := rune(0x80); r < 0x3100; r++ {
		text := string(r)
		want := norm.NFKC.String(fold.String(norm.NFKC.String(text))) == text
		in := r < 0x530 || r >= 0x1e00 // the blocks of letters
		if in && unicode.In(r, unicode.Ll, unicode.Lo) && stable(r) != want {
			t.Errorf("%c (%U) is stable: %v, want %v", r, r, !want, want)
		}
	}
}
