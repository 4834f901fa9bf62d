//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/command/conversation"
)

// TestMarkdownShown shows Markdown on a terminal: whatever the pieces in which a text arrives, the screen is that of all at once,
// and it is what it should be.
func TestMarkdownShown(t *testing.T) {
	const family = "👨‍👩‍👧"
	for _, c := range []struct {
		name          string
		columns, rows int
		text, want    string
	}{
		{"paragraphs", 20, 24, "One **bold** word and *more* of `them`.\n\nTwo\nlines\n", "One bold word and\nmore of them.\n\nTwo\nlines"},
		{"headings", 20, 24, "# A *title*\ntext\n## Next\n\nmore", "A title\ntext\nNext\n\nmore"},
		{"list", 20, 24, "Items:\n- one two three four five\n- two\n  - inner\n* three\n\ntext", "Items:\n• one two three four\n  five\n• two\n  • inner\n• three\n\ntext"},
		{"numbers", 20, 24, "3. three\n4) four\n10. ten eleven twelve\n", "3. three\n4) four\n10. ten eleven\n    twelve"},
		{"loose list", 30, 24, "1. one\n\n   more of it\n\n2. two\n\n\nend", "1. one\n\n   more of it\n\n2. two\n\nend"},
		{"code in an item", 30, 24, "- run\n  ```sh\n  ls *.go\n\n  - x\n  ```\n- next\n", "• run\n  ```sh\n  ls *.go\n\n  - x\n  ```\n• next"},
		{"year", 40, 24, "It was in\n1999. It was good.\n", "It was in\n1999. It was good."},
		{"code", 20, 24, "So:\n```go\nfunc f() { // *not* emphasis, and a long line\n\n\treturn\n```\nend", "So:\n```go\nfunc f() { // *not*\nemphasis, and a long\n line\n\n        return\n```\nend"},
		{"unclosed code", 20, 24, "```\nx", "```\nx"},
		{"quote", 20, 24, "> a quote that is long\n> enough\n", "│ a quote that is\n│ long\n│ enough"},
		{"table", 30, 24, "| a | b |\n|---|--:|\n| one | 2 |\n| 日本 | 10 |\n\nend", "a    │  b\n─────┼───\none  │  2\n日本 │ 10\n\nend"},
		{"wide table", 10, 24, "| one | two |\n|---|---|\n| three | four |\n", "one | two\nthree |\nfour"},
		{"tags are text", 40, 24, "vector<int> <b>x</b> &lt; a&amp;b\n<div>\nx\n</div>\n", "vector<int> <b>x</b> < a&b\n<div>\nx\n</div>"},
		{"links", 60, 24, "[text](http://a/b \"t\"), <http://c>, ![alt](d.png), [x][1]\n\n[1]: http://e\n", "text (http://a/b \"t\"), http://c, alt (d.png), [x][1]\n\n[1]: http://e"},
		{"rule and tasks", 40, 24, "a\n\n***\n\n- [x] done ~~not~~\n- [ ] open\n", "a\n\n────────────────────────────────────────\n\n• [x] done not\n• [ ] open"},
		{"setext", 20, 24, "Title\n=====\ntext", "Title\ntext"},
		{"wide characters", 10, 24, "日本語のテキストです\n\na" + family + "b " + family + "c\n", "日本語のテ\nキストです\n\na" + family + "b\n" + family + "c"},
		{"words longer than the terminal", 5, 24, "ab abcdefghij **cd**\n", "ab\nabcde\nfghij\ncd"},
		{"one column", 1, 24, "ab c\n", "a\nb\nc"},
		{"hostile", 40, 24, "a\x1b[2J &#27;[31m \u009b **\x07**`\x1b]0;x\x07`\n\n```\x1bx\n\x1b[H\n```\n", "a␛[2J ␛[31m \ufffd ␇␛]0;x␇\n\n```␛x\n␛[H\n```"},
		{"line ends of Windows", 20, 24, "# a\r\n\r\nb\rc\r\n```\r\nd\r\n```\r\n", "a\n\nb␍c\n```\nd\n```"},
		{"blank lines first", 20, 24, "\n\na  \n", "\n\na"},
		{"nothing", 20, 24, "", ""},
		{"longer than the screen", 10, 4, "**aa** bb cc dd ee ff gg hh ii jj\n\n**b**\n", "**aa** bb\ncc dd ee\nff gg hh\nii jj\n\nb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{len(c.text), 1, 3, 7} {
				s := newScreen(c.columns, c.rows)
				w := conversation.NewWriter(cooked{s}, func() (int, int) { return s.columns, s.rows })
				runes := []rune(c.text)
				for n > 0 && len(runes) > 0 {
					k := min(n, len(runes))
					if err := w.Text(string(runes[:k])); err != nil {
						t.Fatal(err)
					}
					runes = runes[k:]
				}
				if err := w.End(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.Split(c.want, "\n"), append(s.lines(), blank(c.want)...)); diff != "" {
					t.Errorf("in pieces of %d (-want, +got):\n%s", n, diff)
				}
				if len(s.strange) > 0 || s.x != 0 {
					t.Errorf("in pieces of %d the terminal got %q, and the cursor is at column %d", n, s.strange, s.x)
				}
			}
		})
	}
}

// blank returns the line that an empty screen does not have.
func blank(want string) []string {
	if want == "" {
		return []string{""}
	}
	return nil
}

// cooked is a terminal that begins a row at a line end.
type cooked struct{ s *screen }

// Write implements [io.Writer].
func (c cooked) Write(b []byte) (int, error) {
	_, err := c.s.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	return len(b), err
}

// TestMarkdownResized leaves what cannot be erased when the width changes in the middle, and goes on.
func TestMarkdownResized(t *testing.T) {
	s := newScreen(40, 24)
	w := conversation.NewWriter(cooked{s}, func() (int, int) { return s.columns, s.rows })
	write := func(text string) {
		t.Helper()
		if err := w.Text(text); err != nil {
			t.Fatal(err)
		}
	}
	write("**one** two three fo")
	s.resize(12)
	write("ur five\n\n**six** seven eight ")
	s.resize(30)
	write("nine\n- **ten**\n- **el")
	s.resize(20)
	write("even**\n- **twelve**\n")
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	want := []string{"**one** two", "four five", "", "**six**", "seven eight nine", "- **ten**", "- **eleven**", "• twelve"}
	if diff := cmp.Diff(want, s.lines()); diff != "" {
		t.Error(diff)
	}
}

// FuzzMarkdown shows any text without harm: no sequence but those that erase and style, and no letter is lost.
func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n- b\n```\n\x1b[2J", 10, 3)
	f.Add("| a | b |\n|--|\n| &#27;[5m | <c> |\n> 1. x", 5, 1)
	f.Fuzz(func(t *testing.T, text string, columns, piece int) {
		if columns < 1 || columns > 200 || piece < 1 || len(text) > 4096 {
			t.Skip()
		}
		s := newScreen(columns, 10)
		w := conversation.NewWriter(cooked{s}, func() (int, int) { return s.columns, s.rows })
		for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
			if err := w.Text(rest[:min(piece, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		if len(s.strange) > 0 {
			t.Errorf("the terminal got %q", s.strange)
		}
		for _, r := range "xyzXYZ" {
			if strings.Count(strings.Join(s.lines(), ""), string(r)) < strings.Count(text, string(r)) && !strings.ContainsAny(text, "&\\#[") {
				t.Errorf("%q is lost: %q", r, s.lines())
			}
		}
	})
}
