package jinja

import (
	"slices"
	"strings"
)

// Output is the text that a render makes, and the sources of its stretches. The zero value is empty.
type Output struct {
	text  strings.Builder
	runs  []run
	chars int
	short int // bytes that [Output.Cut] left out
}

// run is a stretch of characters with one mark. It ends where the next one begins.
type run struct {
	mark rune
	from int // bytes before it
}

// add appends text.
func (o *Output) add(t Text) {
	o.text.Grow(len(t))
	for _, r := range t {
		if mark := r / (point + 1); len(o.runs) == 0 || o.runs[len(o.runs)-1].mark != mark {
			o.runs = append(o.runs, run{mark, o.text.Len()})
		}
		o.text.WriteRune(r & point)
	}
	o.chars += len(t)
}

// String returns the text without its marks.
func (o *Output) String() string { return o.text.String()[:o.text.Len()-o.short] }

// Sources tells of each of n sources whether the text has a character of it. Sources whose numbers differ by a multiple of 1,022 count as one.
func (o *Output) Sources(n int) (shown []bool) {
	var found [numbers]bool
	for _, r := range o.runs {
		if r.mark > 1 {
			found[r.mark-2] = true
		}
	}
	for i := range n {
		shown = append(shown, found[i%numbers])
	}
	return shown
}

// Cut removes what stands behind the last character of a numbered source, and reports whether there is one.
func (o *Output) Cut(source int) bool {
	end := o.text.Len()
	for i, r := range slices.Backward(o.runs) {
		if r.mark == rune(2+source%numbers) {
			o.runs, o.short = o.runs[:i+1], o.text.Len()-end
			return true
		}
		end = r.from
	}
	return false
}

// Span is a range of bytes of a string: From to To-1.
type Span struct{ From, To int }

// Inputs returns the spans of the text that came from outside the template, in order.
func (o *Output) Inputs() []Span {
	var spans []Span
	for i, r := range o.runs {
		end := len(o.String())
		if i+1 < len(o.runs) {
			end = o.runs[i+1].from
		}
		switch last := len(spans) - 1; {
		case r.mark == 0:
		case last >= 0 && spans[last].To == r.from:
			spans[last].To = end
		default:
			spans = append(spans, Span{r.from, end})
		}
	}
	return spans
}
