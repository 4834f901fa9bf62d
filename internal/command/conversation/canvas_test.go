package conversation

import (
	"bytes"
	"strings"
	"testing"

	"grove"
	"grove/internal/command/terminal"
)

// ahead is a text that looks as it says.
type ahead terminal.Ahead

func (a ahead) Ahead(string) terminal.Ahead { return terminal.Ahead(a) }

// TestShow: a canvas is drawn from the cursor on, which comes back; what does not fit the terminal below what must stay is left out.
func TestShow(t *testing.T) {
	for _, c := range []struct {
		name string
		of   ahead
		want string
	}{
		{"a row", ahead{Text: "░░"}, "\x1b[J\x1b[2m░░\x1b[0m\r"},
		{"behind a text", ahead{Text: "a\n░", Column: 4}, "\x1b[J\x1b[2ma\n░\x1b[0m\r\x1b[1A\x1b[4C"},
		{"as many rows as there are", ahead{Text: "a\nb\nc\nd\ne"}, "\x1b[J\x1b[2ma\nb\nc\nd\x1b[0m\r\x1b[3A"},
		{"rows that stay", ahead{Text: "a\nb\nc", Above: 2}, "\x1b[J\x1b[2ma\nb\x1b[0m\r\x1b[1A"},
		{"no room", ahead{Text: "a\nb", Above: 3, Column: 1}, "\x1b[J\x1b[2ma\x1b[0m\r\x1b[1C"},
		{"behind a full row", ahead{Text: "a", Column: 10}, ""},
		{"nothing", ahead{}, ""},
	} {
		var b bytes.Buffer
		v := &CanvasView{out: &b, size: func() (int, int) { return 10, 4 }}
		if err := v.Show(c.of, nil); err != nil || b.String() != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, b.String(), err, c.want)
		}
		b.Reset()
		want := ""
		if c.want != "" {
			want = "\x1b[J"
		}
		for range 2 { // the second time there is nothing to erase
			if err := v.Clear(); err != nil || b.String() != want {
				t.Errorf("%s: erased by %q, %v; want %q", c.name, b.String(), err, want)
			}
		}
	}
	var none *CanvasView
	if none.Show(ahead{Text: "a"}, nil) != nil || none.Clear() != nil {
		t.Error("no view fails")
	}
}

// TestAhead: how canvases look behind plain texts and Markdown. Masks break anywhere, and nothing in a text controls the terminal.
func TestAhead(t *testing.T) {
	runs := []grove.CanvasRun{{Text: "b \x1b[2Jc"}, {Masks: 7}, {Text: "d"}}
	plain := terminal.NewDraft(func() int { return 8 })
	plain.Wrap("one two\nthree a") // the last word is not written yet
	for _, c := range []struct {
		name   string
		behind func(w *Writer) CanvasText
		want   terminal.Ahead
	}{
		{"plain", func(*Writer) CanvasText { return plain }, terminal.Ahead{Text: " ab\n␛[2Jc░░░\n░░░░d", Column: 5, Above: 1}},
		{"nothing", func(w *Writer) CanvasText { return w }, terminal.Ahead{Text: "b ␛[2Jc░\n░░░░░░d"}},
		{"Markdown", func(w *Writer) CanvasText { return written(t, w, "a\n- b ") }, terminal.Ahead{Text: " b b\n␛[2Jc░░░\n░░░░d", Column: 1, Above: 1}},
		{"a line of code", func(w *Writer) CanvasText { return written(t, w, "```\n\ta") }, terminal.Ahead{Text: "\nb ␛[2Jc░\n░░░░░░d", Column: 9}},
		{"behind a line of code", func(w *Writer) CanvasText { return written(t, w, "```\na\n") }, terminal.Ahead{Text: "b ␛[2Jc░\n░░░░░░d"}},
	} {
		w := NewWriter(&bytes.Buffer{}, func() (int, int) { return 9, 20 })
		if got := c.behind(w).Ahead(picture(runs, 100)); got != c.want {
			t.Errorf("%s: %#v, want %#v", c.name, got, c.want)
		}
	}
	if got := picture([]grove.CanvasRun{{Masks: 1 << 30}, {Text: "a"}}, 50); got != strings.Repeat("░", 50) {
		t.Errorf("a long canvas: %d bytes", len(got))
	}
}

func written(t *testing.T, w *Writer, text string) *Writer {
	t.Helper()
	if err := w.Text(text); err != nil {
		t.Fatal(err)
	}
	return w
}
