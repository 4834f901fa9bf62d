// markdown_render.go shows Markdown at a terminal while it arrives. goldmark reads it; nothing of the text is left out, and
// nothing in it controls the terminal.

package conversation

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
)

// Bounds of what is rendered; other texts stay as they are.
const (
	maxBlock = 16 << 10 // bytes
	maxDepth = 32       // nested quotes and lists
)

// Styles, as parameters of the sequence that chooses them.
const (
	bold      = "1"
	dim       = "2"
	italic    = "3"
	underline = "4"
	struck    = "9"
	cyan      = "36"
)

// markdown reads Markdown with tables, struck text and boxes of tasks. Definitions of links stay text, as the links that use
// them may be in another block.
var markdown = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewStrikethroughParser(), 500), util.Prioritized(extension.NewTaskCheckBoxParser(), 0))...),
	parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
)

// Render returns the lines that show a block of Markdown on a terminal of some columns. ok is false for a text beyond the
// bounds, which is to be shown as it is.
func Render(source string, columns int) (lines []string, ok bool) {
	if len(source) > maxBlock || depth(source) > maxDepth {
		return nil, false
	}
	defer func() {
		if recover() != nil { // a fault of the library
			lines, ok = nil, false
		}
	}()
	r := &renderer{[]byte(source)}
	document := markdown.Parse(text.NewReader(r.source))
	return r.children(document, max(1, columns)), true
}

// depth returns a bound on the nesting of blocks.
func depth(source string) (most int) {
	for line := range strings.Lines(source) {
		n := 0
		for _, c := range line {
			if strings.ContainsRune(">-*+.)", c) {
				n++
			} else if !strings.ContainsRune(" \t0123456789", c) {
				break
			}
		}
		if trimmed := strings.Trim(line, " \t\r\n"); strings.Trim(trimmed, "-* ") == "" {
			n = 0 // a rule
		}
		most = max(most, n, (len(line)-len(strings.TrimLeft(line, " \t")))/2)
	}
	return most
}

// renderer renders the blocks of a text.
type renderer struct{ source []byte }

// children renders the blocks inside a block.
func (r *renderer) children(n ast.Node, columns int) (lines []string) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c != n.FirstChild() && c.HasBlankPreviousLines() {
			lines = append(lines, "")
		}
		lines = append(lines, r.block(c, columns)...)
	}
	return lines
}

// block renders a block.
func (r *renderer) block(n ast.Node, columns int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		style := bold
		if n.Level == 1 {
			style += ";" + underline
		}
		return layout(r.inlines(n, style), columns)
	case *ast.List:
		return r.list(n, columns)
	case *ast.Blockquote:
		return prefixed(styled("│ ", dim), styled("│ ", dim), r.children(n, columns-2))
	case *ast.ThematicBreak:
		return []string{styled(strings.Repeat("─", min(columns, 40)), dim)}
	case *ast.FencedCodeBlock:
		info := ""
		if n.Info != nil {
			info = string(n.Info.Segment.Value(r.source))
		}
		return append(append([]string{fence(info)}, r.verbatim(n, cyan)...), fence(""))
	case *ast.CodeBlock:
		return prefixed("    ", "    ", r.verbatim(n, cyan))
	case *ast.HTMLBlock:
		lines := r.verbatim(n, "")
		if n.HasClosure() {
			lines = append(lines, strings.TrimRight(harmless.Text(string(n.ClosureLine.Value(r.source))), "\n"))
		}
		return lines
	case *east.Table:
		return r.table(n, columns)
	}
	return layout(r.inlines(n, ""), columns)
}

// fence returns the line that begins or ends a block of code.
func fence(info string) string { return styled("```"+harmless.Text(info), dim) }

// verbatim renders the lines of a block as they are.
func (r *renderer) verbatim(n ast.Node, style string) (lines []string) {
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		lines = append(lines, styled(harmless.Text(strings.TrimRight(string(line.Value(r.source)), "\r\n")), style))
	}
	return lines
}

// list renders a list.
func (r *renderer) list(n *ast.List, columns int) (lines []string) {
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		marker := "• "
		if n.IsOrdered() {
			marker = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}
		if c != n.FirstChild() && !n.IsTight {
			lines = append(lines, "")
		}
		width := terminal.Width(marker)
		item := r.children(c, max(1, columns-width))
		if len(item) == 0 {
			item = []string{""}
		}
		lines = append(lines, prefixed(marker, strings.Repeat(" ", width), item)...)
	}
	return lines
}

// prefixed returns lines with a prefix before the first, and another before those behind it.
func prefixed(first, other string, lines []string) []string {
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else if lines[i] != "" || strings.TrimSpace(other) != "" {
			lines[i] = other + lines[i]
		}
	}
	return lines
}

// table renders a table in columns, or row by row where they do not fit.
func (r *renderer) table(n *east.Table, columns int) (lines []string) {
	var rows [][][]cell
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		style := ""
		if row.Kind() == east.KindTableHeader {
			style = bold
		}
		var cells [][]cell
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, r.inlines(c, style))
			if len(cells) > len(widths) {
				widths = append(widths, 0)
			}
			i := len(cells) - 1
			widths[i] = max(widths[i], width(cells[i]))
		}
		rows = append(rows, cells)
	}
	total := 3 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for i, cells := range rows {
		if total > columns {
			var row []cell
			for j, c := range cells {
				if j > 0 {
					row = append(row, cellsOf(" | ", dim)...)
				}
				row = append(row, c...)
			}
			lines = append(lines, layout(row, columns)...)
			continue
		}
		var row []string
		for j, c := range cells {
			row = append(row, align(c, widths[j], n.Alignments[min(j, len(n.Alignments)-1)]))
		}
		lines = append(lines, strings.TrimRight(strings.Join(row, styled(" │ ", dim)), " "))
		if i == 0 {
			var rule []string
			for _, w := range widths {
				rule = append(rule, strings.Repeat("─", w))
			}
			lines = append(lines, styled(strings.Join(rule, "─┼─"), dim))
		}
	}
	return lines
}

// align returns a cell of a table in its width.
func align(c []cell, columns int, a east.Alignment) string {
	left, right := 0, columns-width(c)
	switch a {
	case east.AlignRight:
		left, right = right, 0
	case east.AlignCenter:
		left = right / 2
		right -= left
	}
	return strings.Repeat(" ", left) + line(c) + strings.Repeat(" ", right)
}
