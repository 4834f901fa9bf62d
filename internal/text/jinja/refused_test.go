package jinja_test

import (
	"errors"
	"testing"

	"grove/internal/text/jinja"
)

// TestRefused refuses the parts of Jinja that are not supported, and values of the wrong type, by name.
func TestRefused(t *testing.T) {
	const (
		statements = "; use one of break, call, continue, filter, for, generation, if, macro, raw, set, with"
		filters    = "; use one of abs, attr, batch, capitalize, center, count, d, default, dictsort, first, float, format, indent, int, items, join, last, length, list, lower, map, max, min, reject, rejectattr, replace, reverse, round, safe, select, selectattr, slice, sort, string, sum, title, tojson, trim, unique, upper"
		tests      = "; use one of !=, ==, boolean, defined, divisibleby, eq, equalto, even, false, float, ge, greaterthan, gt, in, integer, iterable, le, lessthan, lower, lt, mapping, ne, none, number, odd, sequence, string, true, undefined, upper"
	)
	for _, c := range []struct{ source, want string }{
		{"{% trans %}{% endtrans %}", `statement "trans": not supported` + statements},
		{"{% raw %}{{ x }}", "a raw block has no end; write {% endraw %}"},
		{"{% include 'x' %}", `statement "include": not supported` + statements},
		{"{% for i in x recursive %}{% endfor %}", "a recursive loop: not supported; use a macro"},
		{"{% set x | upper %}{% endset %}", "set with a filter: not supported; filter the name that is set"},
		{"{{ 'a'|nope }}", `filter "nope": not supported` + filters},
		{"{{ ['a']|map('pprint')|list }}", `filter "pprint": not supported` + filters},
		{"{{ 1 is sameas 1 }}", `test "sameas": not supported` + tests},
		{"{{ 'a'.zfill(3) }}", `attribute "zfill" of str is undefined`},
		{"{{ [].append(1) }}", `attribute "append" of list is undefined`},
		{"{{ x[] }}", "a subscript is empty; it needs an index"},
		{"{{ 6 / 0 }}", "6.0 / 0: division by zero"},
		{"{{ 2 ** 64 }}", "2 ** 64 is out of range; ints have 64 bits"},
		{"{{ 2 ** 9223372036854775807 }}", "2 ** 9223372036854775807 is out of range; ints have 64 bits"},
		{"{{ 1e308 * 10 }}", "a float is out of range"},
		{"{{ 1e999 }}", "float 1e999 is out of range"},
		{"{{ '%2000d' % 1 }}", "format: a width of 2000; it must be at most 1000"},
		{"{{ '{:2000}'.format(1) }}", "format: a width of 2000; it must be at most 1000"},
		{"{{ '{:g}'.format(1.5) }}", `format: "g" of a float: not supported; use f or e`},
		{"{{ 'a' / 1 }}", "str / int: not supported"},
		{"{{ [1] * 2 }}", "list * int: not supported"},
		{"{{ x.f + 'a' }}", "float + str: not supported"},
		{"{{ 'abc'[::2] }}", "a slice with a step other than [::-1]: not supported"},
		{"{{ f(*x) }}", `argument "*": not supported; write the arguments`},
		{`{{ '\101' }}`, `escape \1: not supported; use one of \\ \' \" \n \r \t \x \u \U`},
		{`{{ '\u12' }}`, `escape \u: it needs the hexadecimal digits of a character: 2 behind \x, 4 behind \u, 8 behind \U`},
		{"{{ {x.f: 1} }}", "float as a key of a dict: not supported; use a str, int, bool or None"},
		{"{{ 'a'.split(none, 1) }}", "split: maxsplit without a separator: not supported; give a separator"},
		{"{{ 'a'.replace('', 'b') }}", "replace: the old text is empty; it needs a character"},
		{"{{ 'a'.replace('a') }}", `replace: argument "new" is missing`},
		{"{{ 'a'.replace(1, 'a') }}", `replace: argument "old" is of type int; it needs str`},
		{"{{ [1]|join(1) }}", `join: argument "d" is of type int; it needs str`},
		{"{{ 'a'|upper(1) }}", "upper: 1 arguments without a name; it takes at most 0"},
		{"{{ '%5q'|format(1) }}", `format: "%5q": not supported, or without an argument; use %s, %d or %%`},
		{"{{ '%s %s'|format(1) }}", `format: "%s": not supported, or without an argument; use %s, %d or %%`},
		{"{{ 'a%'|format }}", `format: "%": not supported, or without an argument; use %s, %d or %%`},
		{"{{ '%d'|format('a') }}", `format: str for "%d"; it needs a number`},
		{"{{ '%s'|format(1, 2) }}", "format: 1 arguments are not used; give one for each %s and %d, without a name"},
		{"{{ 1|tojson(sort_keys=true) }}", `tojson: argument "sort_keys": not supported, or given twice; it takes ["indent" "ensure_ascii" "separators"]`},
		{"{{ strftime_now('%U') }}", `strftime_now: "%U": not supported; use one of the letters dmyYbBaAHIMSpj, or %%`},
		{"{{ 9223372036854775807 + 1 }}", "9223372036854775807 + 1 is out of range; ints have 64 bits"},
		{"{{ 9223372036854775807 * 2 }}", "9223372036854775807 * 2 is out of range; ints have 64 bits"},
		{"{{ -9223372036854775807 - 2 }}", "-9223372036854775807 - 2 is out of range; ints have 64 bits"},
		{"{{ 9223372036854775808 }}", "int 9223372036854775808 is out of range; ints have 64 bits"},
		{"{{ range(1, step=2) }}", "range: 2 arguments, 1 of them with a name; it takes 1 to 3 without a name"},
		{"{{ range(1, 2, 0) }}", "range: the step is 0; it needs another int"},
		{"{% break %}", "break outside of a loop; put it into a for block"},
		{"{% for i in [1] %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}", "break outside of a loop; put it into a for block"},
		{"{% set if = 1 %}", `"if" cannot be assigned to; it is a reserved word`},
		{"{% set x.y = 1 %}", "x.y cannot be set; x is not a namespace"},
		{"{{ 1() }}", "int cannot be called; a macro, function or method can"},
		{"{{ range|tojson }}", "tojson: function: it has no JSON; give None, bool, int, float, str, list or dict"},
	} {
		t.Run(c.source, func(t *testing.T) {
			tmpl, err := jinja.Parse(c.source)
			if err == nil {
				_, err = tmpl.Render(map[string]jinja.Value{"x": vars(t, []byte(`{"x": {"f": 2.5}}`))["x"]}, jinja.Options{})
			}
			if want := "line 1: " + c.want; err == nil || err.Error() != want || !errors.As(err, new(*jinja.Error)) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}
