package gguf

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	shownRunes = 80 // of a string, unless all is asked for
	shownElems = 8  // of an array

	columnWidth = 48
)

// Inspect prints the contents of the file: a line about the file, the metadata, and the tensors with their
// dimensions in file order, innermost first, and the offset of their bytes in the file. Long strings
// and arrays are cut unless full is set. All text of the file is escaped, so that it
// cannot control a terminal.
func Inspect(w io.Writer, f *File, full bool) error {
	out := bufio.NewWriter(w)
	if path := f.parts[0].path; path != "" {
		fmt.Fprintf(out, "%s: ", escape(filepath.Base(path)))
	}
	fmt.Fprintf(out, "GGUF v%d, %d keys, %d tensors, %d bytes", f.Version, len(f.Metadata), len(f.Tensors), f.Size())
	if n := len(f.parts); n > 1 {
		fmt.Fprintf(out, " in %d parts", n)
	}
	out.WriteString("\n")
	if n, bytes := predictors(f); n > 0 {
		fmt.Fprintf(out, "modules that predict further tokens: %d (the last layers), %d bytes; the method mtp drafts with the first\n", n, bytes)
	}

	table(out, []string{"key", "type", "value"}, len(f.Metadata), func(i int) []string {
		kv := f.Metadata[i]
		return []string{escape(kv.Key), kv.Value.Type(), show(kv.Value, full)}
	})
	tensors := f.Tensors
	for i, p := range f.parts {
		first := "tensor"
		if len(f.parts) > 1 {
			first = fmt.Sprintf("tensor of part %d of %d", i+1, len(f.parts))
		}
		table(out, []string{first, "type", "dimensions", "offset", "bytes"}, len(p.offsets), func(i int) []string {
			t := tensors[i]
			return []string{escape(t.Name), t.Type.String(), dims(t.Shape), strconv.FormatInt(p.offsets[i], 10), strconv.Itoa(t.Bytes())}
		})
		tensors = tensors[len(p.offsets):]
	}
	if err := out.Flush(); err != nil { // the first error of any write above
		return fmt.Errorf("gguf: %w", err)
	}
	return nil
}

// predictors counts the last layers of a model that predict further tokens, and the bytes of their tensors. Files whose writers
// left them out have none.
func predictors(f *File) (n, bytes int) {
	arch, _, _ := f.String("general.architecture")
	layers, ok1, err1 := f.Uint(arch + ".block_count")
	count, ok2, err2 := f.Uint(arch + ".nextn_predict_layers")
	if !ok1 || !ok2 || err1 != nil || err2 != nil || count >= layers {
		return 0, 0
	}
	own := map[int]bool{}
	for _, t := range f.Tensors {
		number, _, _ := strings.Cut(strings.TrimPrefix(t.Name, "blk."), ".")
		if at, err := strconv.Atoi(number); err == nil && strings.HasPrefix(t.Name, "blk.") && at >= layers-count && at < layers {
			own[at] = true
			bytes += t.Bytes()
		}
	}
	return len(own), bytes
}

// table prints n rows under a head, nothing for no rows, in columns of at most columnWidth: a longer
// cell pushes its own row only, so that one hostile name cannot pad all rows to its length.
func table(out *bufio.Writer, head []string, n int, row func(i int) []string) {
	if n == 0 {
		return
	}
	width := make([]int, len(head)-1)
	measure := func(cells []string) {
		for c := range width {
			width[c] = min(max(width[c], utf8.RuneCountInString(cells[c])), columnWidth)
		}
	}
	line := func(cells []string) {
		for c, w := range width {
			fmt.Fprintf(out, "%-*s  ", w, cells[c])
		}
		fmt.Fprintln(out, cells[len(cells)-1])
	}
	measure(head)
	for i := range n {
		measure(row(i))
	}
	out.WriteString("\n")
	line(head)
	for i := range n {
		line(row(i))
	}
}

// dims writes a shape in file order.
func dims(shape []int) string {
	text := make([]string, len(shape))
	for i, d := range shape {
		text[len(shape)-1-i] = strconv.Itoa(d)
	}
	return strings.Join(text, " x ")
}

// show writes a value on one line of printable characters.
func show(v Value, full bool) string {
	if v.kind != Array {
		return showBasic(v.Any(), full)
	}
	n := v.n
	if !full {
		v = v.head(shownElems)
	}
	elems := reflect.ValueOf(v.Any())
	items := make([]string, elems.Len())
	for i := range items {
		items[i] = showBasic(elems.Index(i).Interface(), full)
	}
	if len(items) < n {
		items = append(items, "…")
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func showBasic(x any, full bool) string {
	s, ok := x.(string)
	if !ok {
		return fmt.Sprint(x)
	}
	if full {
		return strconv.Quote(s)
	}
	n := 0
	for at := range s { // a byte that is not UTF-8 counts as a rune
		if n++; n > shownRunes {
			return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(s[:at]), len(s))
		}
	}
	return strconv.Quote(s)
}

// escape writes a name without quotes, as a Go string literal would hold it.
func escape(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
