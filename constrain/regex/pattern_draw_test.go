package regex

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// draw writes a text of a language: bytes at random among those that can follow, and more of ASCII.
func draw(s *Store, id ID, r *rand.Rand) (string, bool) {
	var out []byte
	for len(out) < 400 {
		if s.Nullable(id) && (r.IntN(6) == 0 || len(out) > 100) {
			return string(out), true
		}
		first := s.First(id)
		var can []byte
		for b := range 255 {
			if first.Has(byte(b)) && (b < 128 || r.IntN(40) == 0) {
				can = append(can, byte(b))
			}
		}
		for b := 254; b >= 128 && len(can) == 0; b-- {
			if first.Has(byte(b)) {
				can = append(can, byte(b))
			}
		}
		if len(can) == 0 {
			return string(out), s.Nullable(id)
		}
		b := can[r.IntN(len(can))]
		out = append(out, b)
		id = s.Derive(id, b)
	}
	return "", false
}

// change writes a text a little differently.
func change(text string, r *rand.Rand) string {
	runes := []rune(text)
	at := r.IntN(len(runes) + 1)
	letter := rune("aZ09_- ./:\n"[r.IntN(11)])
	switch r.IntN(3) {
	case 0:
		runes = append(runes[:at:at], append([]rune{letter}, runes[at:]...)...)
	case 1:
		if at < len(runes) {
			runes = append(runes[:at:at], runes[at+1:]...)
		}
	default:
		if at < len(runes) {
			runes[at] = letter
		}
	}
	return string(runes)
}

// TestDrawn draws texts of the languages of real expressions, changes them, and asks another engine. Its dot and its \s differ
// on some characters; texts with those are left out.
func TestDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	compared, matched := 0, 0
	every := 3
	if os.Getenv("GROVE_LONG") != "" {
		every = 1
	}
	for i, source := range real(t) {
		if i%every != 0 {
			continue
		}
		s := New(Limits{})
		id, err := ECMA(s, source)
		if err != nil {
			continue
		}
		other, err := regexp2.Compile(source, regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			t.Logf("%.60s: %v", source, err)
			continue
		}
		other.MatchTimeout = 20 * time.Millisecond
		for range 5 {
			text, ok := draw(s, id, r)
			for range 3 {
				if ok && utf8.ValidString(text) && !strings.ContainsAny(text, "\r\v\f\u0085\u2028\u2029\u00a0\ufeff\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000") {
					want, err := other.MatchString(text)
					if err != nil {
						break
					}
					if got := s.Matches(id, text); got != want {
						t.Errorf("%s on %q: %v, want %v", source, text, got, want)
					}
					compared++
					if want {
						matched++
					}
				}
				text = change(text, r)
			}
		}
	}
	t.Logf("%d texts, %d match", compared, matched)
	if compared < 1500 {
		t.Errorf("only %d texts were compared", compared)
	}
}
