package terminal

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestKeys passes keys and characters to the editor, one glyph a character, however the terminal's bytes arrive.
func TestKeys(t *testing.T) {
	const family, waving = "👨‍👩‍👧", "👋🏽"
	for _, c := range []struct{ name, typed, keys string }{ // keys: with what the glyphs stand for, each in brackets
		{"plain", "ab\r", "ab\r"},
		{"wide", "日本", "日本"},
		{"several runes", "a" + family + "e\u0301b", "a[" + family + "][e\u0301]b"},
		{"flags and tones", "🇩🇪" + waving, "[🇩🇪][" + waving + "]"},
		{"heart", "❤️", "[❤️]"},
		{"arrows and Alt", "a\x1b[Ab\x1bf\x1b[1;3D", "a\x1b[Ab\x1bf\x1b[1;3D"},
		{"control", "a\x01\x7fb", "a\x01\x7fb"},
		{"paste", "\x1b[200~one\rtwo\r\n\tx\x1b[201~\r", "one[\n]two[\n][\t]x\r"},
		{"a paste of keys", "\x1b[200~a\x03\x1b[Ab\x1b[201~c", "a[\x03][\x1b][Abc"},
		{"nested pastes", "\x1b[200~a\x1b[200~b\x1b[201~c", "a[\x1b][200~bc"},
		{"no UTF-8", "a\xffb", "a[\ufffd]b"},
		{"runes that stand for others", "\U000f0000\U00034000\U000fffe0", "[\U000f0000][\U00034000][\U000fffe0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, from := range map[string]io.Reader{"at once": strings.NewReader(c.typed), "in bytes": iotest.OneByteReader(strings.NewReader(c.typed))} {
				k := &keys{from: from, glyphs: newGlyphs()}
				typed, err := io.ReadAll(k)
				if err != nil {
					t.Fatal(err)
				}
				var line []rune // as the editor has it, which erases
				for _, r := range string(typed) {
					if r == 0x7f && name == "in bytes" && c.name != "control" {
						line = line[:len(line)-1]
						continue
					}
					line = append(line, r)
				}
				var got strings.Builder
				for _, r := range line {
					if s, ok := k.glyphs.meant[r]; ok {
						got.WriteString("[" + s + "]")
					} else {
						got.WriteRune(r)
					}
				}
				if c.keys != got.String() {
					t.Errorf("%s: got %q, want %q", name, got.String(), c.keys)
				}
			}
		})
	}
}

// TestKeysOutput shows what glyphs stand for, and nothing that controls the terminal; the question for the place of the
// cursor is answered.
func TestKeysOutput(t *testing.T) {
	var out bytes.Buffer
	k := &keys{from: strings.NewReader("x"), to: &out, glyphs: newGlyphs()}
	line := string(k.glyphs.of("a\n\x1b[2J\u009b👋🏽e\u0301\u0301"))
	if _, err := k.Write([]byte("\x1b[6n" + line + "\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a↵␛[2J\ufffd👋🏽e\u0301\u0301\r\n"; got != want {
		t.Errorf("the terminal got %q, want %q", got, want)
	}
	if got := k.glyphs.text([]rune(line)); got != "a\n\x1b[2J\u009b👋🏽e\u0301\u0301" {
		t.Errorf("the line means %q", got)
	}
	typed, err := io.ReadAll(k)
	if err != nil || string(typed) != "\x1b[1;1Rx" {
		t.Errorf("the editor got %q, %v", typed, err)
	}
}

// TestGlyphsUsedUp leaves texts whole where more characters come than there are stand-ins.
func TestGlyphsUsedUp(t *testing.T) {
	g := newGlyphs()
	g.narrow, g.wide = lastNarrow, lastWide
	const text = "e\u0301a\u0301👋🏽👍🏽"
	if got := g.text(g.of(text)); got != text {
		t.Errorf("got %q", got)
	}
}

// TestWords moves by words of any language.
func TestWords(t *testing.T) {
	w := &words{newGlyphs()}
	for _, c := range []struct {
		name, line string
		key        rune
		want       string
		at         int
	}{
		{"Cyrillic", "привет мир", 23, "привет ", 7},
		{"back", "one, two", -1, "one, two", 5},
		{"marks", "ae\u0301b c", 23, "ae\u0301b ", 4},
		{"nothing", "", 23, "", 0},
		{"spaces", "a   ", -1, "a   ", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := w.glyphs.of(c.line)
			key, _ := w.filter(c.key)
			got, at, ok := w.edit(append(line, key), len(line)+1, key)
			if !ok || w.glyphs.text(got) != c.want || at != c.at {
				t.Errorf("got %q at %d, %v, want %q at %d", w.glyphs.text(got), at, ok, c.want, c.at)
			}
		})
	}
}

// FuzzKeys types hostile bytes: the editor gets all of them in the end, and the terminal nothing that controls it beside
// what the editor writes.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x1b[A\x1b[200~b\r\x1b[201~\r"), 2)
	f.Add([]byte("\x1b[200~\x1b[200~\xf0\x9f\x91"), 1)
	f.Add([]byte("e\u0301\u200d\U000f0000\x1b"), 3)
	f.Fuzz(func(t *testing.T, typed []byte, piece int) {
		if piece < 1 || len(typed) > 1<<14 {
			t.Skip()
		}
		k := &keys{from: &pieces{bytes.NewReader(typed), piece}, to: io.Discard, glyphs: newGlyphs()}
		line, err := io.ReadAll(k)
		if err != nil {
			t.Fatal(err)
		}
		if shown := k.glyphs.show(string(line)); strings.ContainsAny(k.glyphs.text([]rune(shown)), "\x00") && !bytes.ContainsAny(typed, "\x00") {
			t.Errorf("%q shows %q", typed, shown)
		}
		if _, err := k.Write(line); err != nil {
			t.Fatal(err)
		}
	})
}

// pieces is a reader that gives so many bytes at a time.
type pieces struct {
	r *bytes.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(p.n, len(b))]) }
