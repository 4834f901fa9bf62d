package jinja_test

import (
	"testing"

	"grove/internal/text/jinja"
)

// TestPrintedSums: a sum that is printed has the text, the marks and the errors of one that is kept first.
func TestPrintedSums(t *testing.T) {
	render := func(source string) (string, []jinja.Span, bool) {
		tmpl, err := jinja.Parse(source)
		if err != nil {
			return "", nil, false
		}
		out, err := tmpl.Render(map[string]jinja.Value{"a": jinja.Input("<a>"), "n": int64(3)}, jinja.Options{})
		if err != nil {
			return "", nil, false
		}
		return out.String(), out.Inputs(), true
	}
	for _, sum := range []string{
		"'x' + a + 'y'", "a + a", "1 + 2 + n", "n + 1", "'x' + a|safe + '<'", "a + '<' + 'b'|safe", "('x' + a) + 'y'", "'x' + (a + 'y')", "'x' + a if n > 2 else a + 'z'", "[1] + [2] + [n]",
		"'x' + 1", "1 + 'x'", "a + none", "'x' + missing", "'x' + a ~ n + 'y'", "n - 1 + 2", "n + 1 - 2", "'x' + a[0] + a[1:]", "'x' + a | upper", "a + 'b', 'c' + a", "'x' * 2 + a", "-n + 1", "a + 'x' == '<a>x'", "not a + 'x'",
	} {
		text, inputs, ok := render("{{ " + sum + " }}")
		kept, marks, fine := render("{% set v = " + sum + " %}{{ v }}")
		if text != kept || ok != fine || len(inputs) != len(marks) {
			t.Errorf("%s: printed %q %v %v, kept %q %v %v", sum, text, inputs, ok, kept, marks, fine)
		}
		for i := range inputs {
			if inputs[i] != marks[i] {
				t.Errorf("%s: the marks are %v and %v", sum, inputs, marks)
			}
		}
	}
}
