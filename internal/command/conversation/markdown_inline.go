package conversation

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
)

// cell is a character with its style.
type cell struct {
	text, style string
	columns     int
}

// cellsOf returns the characters of a text.
func cellsOf(text, style string) (cells []cell) {
	text = strings.ReplaceAll(harmless.Text(text), "\t", "    ")
	for state := -1; text != ""; {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		cells = append(cells, cell{cluster, style, terminal.Width(cluster)})
	}
	return cells
}

// width returns the columns of characters.
func width(cells []cell) (sum int) {
	for _, c := range cells {
		sum += c.columns
	}
	return sum
}

// line returns characters with the sequences of their styles.
func line(cells []cell) string {
	var b strings.Builder
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].style == cells[0].style {
			n++
		}
		var text strings.Builder
		for _, c := range cells[:n] {
			text.WriteString(c.text)
		}
		b.WriteString(styled(text.String(), cells[0].style))
		cells = cells[n:]
	}
	return b.String()
}

// styled returns a text with the sequences of its style.
func styled(text, style string) string {
	if style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// layout breaks characters into lines of at most some columns, between words. A word that is longer stays whole: the terminal
// breaks it, and a copy of it is whole.
func layout(cells []cell, columns int) (lines []string) {
	begin, at, gap := 0, 0, -1 // of the line; columns so far; where the line can break
	end := func(to, next int) {
		for to > begin && cells[to-1].text == " " {
			to--
		}
		lines = append(lines, line(cells[begin:to]))
		begin, gap = next, -1
		at = 0
	}
	for i, c := range cells {
		if c.text == "\n" {
			end(i, i+1)
			continue
		}
		if c.columns == 2 && !closes(c.text) { // East Asian text: a line can break on both sides
			gap = max(gap, i)
		}
		if at+c.columns > columns && c.text != " " && gap > begin {
			end(gap, gap)
			at = width(cells[begin:i])
		}
		at += c.columns
		if c.text == " " || c.columns == 2 && (i+1 == len(cells) || !closes(cells[i+1].text)) {
			gap = i + 1
		}
	}
	if begin < len(cells) || len(lines) == 0 {
		end(len(cells), len(cells))
	}
	return lines
}

// closes reports whether a character does not begin a line.
func closes(text string) bool { return strings.ContainsAny(text, "、。，．！？）」』") }

// inlines returns the characters inside a node, in a style and those of the nodes.
func (r *renderer) inlines(n ast.Node, style string) (cells []cell) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		cells = append(cells, r.inline(c, style)...)
	}
	if n.FirstChild() == nil && n.Type() == ast.TypeBlock && n.Lines().Len() > 0 { // of a kind that is not known
		return cellsOf(strings.TrimRight(string(n.Lines().Value(r.source)), "\n"), style)
	}
	return cells
}

// inline returns the characters of a node.
func (r *renderer) inline(n ast.Node, style string) []cell {
	switch n := n.(type) {
	case *ast.Text:
		cells := cellsOf(plain(n.Segment.Value(r.source), n.IsRaw()), style)
		if n.SoftLineBreak() || n.HardLineBreak() {
			cells = append(cells, cell{"\n", "", 0})
		}
		return cells
	case *ast.String:
		return cellsOf(plain(n.Value, n.IsRaw() || n.IsCode()), style)
	case *ast.CodeSpan:
		return r.inlines(n, with(style, cyan))
	case *ast.Emphasis:
		if n.Level > 1 {
			return r.inlines(n, with(style, bold))
		}
		return r.inlines(n, with(style, italic))
	case *east.Strikethrough:
		return r.inlines(n, with(style, struck))
	case *east.TaskCheckBox:
		return cellsOf(map[bool]string{true: "[x] ", false: "[ ] "}[n.IsChecked], style)
	case *ast.AutoLink:
		return cellsOf(string(n.Label(r.source)), with(style, underline))
	case *ast.Link:
		return r.link(r.inlines(n, with(style, underline)), n.Destination, n.Title, style)
	case *ast.Image:
		return r.link(r.inlines(n, with(style, italic)), n.Destination, n.Title, style)
	case *ast.RawHTML:
		return cellsOf(string(n.Segments.Value(r.source)), style)
	}
	return r.inlines(n, style)
}

// link returns the text of a link, and where it leads unless the text says so.
func (r *renderer) link(label []cell, to, title []byte, style string) []cell {
	target := plain(to, false)
	var b strings.Builder
	for _, c := range label {
		b.WriteString(c.text)
	}
	if len(title) > 0 {
		target += ` "` + plain(title, false) + `"`
	}
	if target == "" || b.String() == target {
		return label
	}
	if len(label) > 0 {
		target = " (" + target + ")"
	}
	return append(label, cellsOf(target, with(style, dim))...)
}

// plain returns a text without escapes and references to characters.
func plain(text []byte, raw bool) string {
	if !raw {
		text = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(text)))
	}
	if !utf8.Valid(text) {
		return strings.ToValidUTF8(string(text), string(utf8.RuneError))
	}
	return string(text)
}

// with adds a parameter to a style.
func with(style, parameter string) string {
	if style == "" {
		return parameter
	}
	return style + ";" + parameter
}
