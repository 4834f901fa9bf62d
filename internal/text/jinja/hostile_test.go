package jinja_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"encoding/json"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/jinja"
)

// hostile are templates that run or grow without an end.
var hostile = map[string]string{
	"range":            `{% for i in range(1000000000) %}x{% endfor %}`,
	"range of ranges":  `{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}`,
	"huge range step":  `{{ range(-9223372036854775807, 9223372036854775807, 1)|length }}`,
	"batch":            `{{ [1]|batch(10000000000, 'x')|list }}`,
	"slice filter":     `{{ [1]|slice(10000000000)|list }}`,
	"center":           `{{ 'a'|center(10000000000) }}`,
	"wide formats":     `{% set x = '%1000d' * 1000 %}{% for i in range(1000000) %}{% set y = '{:1000}{:1000}{:1000}{:1000}'.format(1, 2, 3, 4) %}{% endfor %}`,
	"splitlines":       `{% set x = 'a\n' * 100000 %}{% for i in range(100000) %}{% set y = x.splitlines() %}{% endfor %}`,
	"finds":            `{% set x = 'a' * 100000 %}{% for i in range(100000) %}{% set y = x.find('b') %}{% endfor %}`,
	"string product":   `{{ 'a' * 10000000000 }}`,
	"string products":  `{{ ('a' * 100000) * 100000 }}`,
	"negative product": `{{ 'a' * 9223372036854775807 }}`,
	"doubling":         `{% set ns = namespace(s='aaaaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}`,
	"doubling lists":   `{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
	"nested lists":     `{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s|tojson }}`,
	"comparing":        `{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}`,
	"deep value":       `{% set ns = namespace(s=[1]) %}{% for i in range(60000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}`,
	"recursion":        `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
	"two recursions":   `{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(100) }}`,
	"filter of filter": `{% macro f() %}{% filter upper %}{{ f() }}{% endfilter %}{% endmacro %}{{ f() }}`,
	"caller":           `{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}{% macro g(n) %}{% if n %}{% call f() %}{{ g(n-1) }}{% endcall %}{% endif %}{% endmacro %}{{ g(100) }}`,
	"output":           `{% set x = 'a' * 100000 %}{% for i in range(10000) %}{{ x }}{% endfor %}`,
	"replace":          `{% set x = 'a' * 100000 %}{{ x.replace('a', x) }}`,
	"join":             `{% set x = 'a' * 100000 %}{{ range(100000)|join(x) }}`,
	"map":              `{% set x = range(1000)|list %}{% for i in x %}{{ x|map('string')|list|length }}{% endfor %}`,
	"path":             `{% set x = [{}] %}{% for i in range(100000) %}{% set y = x|map(attribute='a' * 10000)|list %}{% endfor %}`,
	"split":            `{% set x = 'a' * 100000 %}{% for i in range(100000) %}{% set y = x.split('a') %}{% endfor %}`,
	"find":             `{% set x = 'a' * 100000 %}{% set y = 'a' * 50000 ~ 'b' %}{% for i in range(100000) %}{% set z = y in x %}{% endfor %}`,
	"strip":            `{% set x = ' ' * 1000000 %}{% for i in range(100000) %}{% set z = x.strip() %}{% endfor %}`,
	"strip set":        `{% set x = 'ab' * 10000 %}{% for i in range(1000) %}{% set z = x.strip('cd' * 10000 ~ 'ab') %}{% endfor %}`,
	"fields":           `{% set x = 'a ' * 100000 %}{% for i in range(100000) %}{% set y = x.split() %}{% endfor %}`,
	"upper":            `{% set x = 'a' * 1000000 %}{% for i in range(100000) %}{% set y = x|title %}{% endfor %}`,
	"slice":            `{% set x = 'a' * 1000000 %}{% for i in range(100000) %}{% set y = x[::-1] %}{% endfor %}`,
	"items":            `{% set d = {'a': 1} %}{% for i in range(1000000) %}{% set y = d|dictsort %}{% endfor %}`,
	"indent":           `{% set x = 'a\n' * 100000 %}{{ x|indent(1000000, true) }}`,
	"format":           `{% set x = 'a' * 100000 %}{{ ('%s' * 1000)|format(x) }}{% for i in range(100000) %}{% set y = x|format %}{% endfor %}`,
	"json indent":      `{{ [[[[1]]]]|tojson(indent=100000000) }}`,
	"range of range":   `{% for i in range(100000) %}{% set x = range(100000) %}{% endfor %}`,
	"sort":             `{% set x = range(40000)|list %}{% for i in range(1000) %}{% set y = x|sort(reverse=true) %}{% endfor %}`,
	"unique":           `{% for i in range(1000) %}{% set y = range(10000)|unique|list %}{% endfor %}`,
	"keys":             `{% set k = 'k' * 100000 %}{% set d = {k: 1} %}{% for i in range(1000000) %}{% set v = d[k] %}{% endfor %}`,
	"long loop filter": `{% for i in range(100000) if false %}{% endfor %}{% for i in range(100000) if false %}{% endfor %}{% for i in range(100000) if false %}{% endfor %}`,
	"block of blocks":  `{% set x %}{% for i in range(1000000) %}xxxxxxxxxxxx{% endfor %}{% endset %}`,
	"defaults":         `{% macro f(a=f()) %}{{ a }}{% endmacro %}{{ f() }}`,
	"time":             `{{ strftime_now('%Y' * 1000000) }}`,
	"self":             `{% set ns = namespace() %}{% set ns.ns = [ns] %}{{ ns.ns|tojson }}`,
}

// TestHostile ends each hostile template with an error, within two seconds.
func TestHostile(t *testing.T) {
	for name, source := range hostile {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			tmpl, err := jinja.Parse(source)
			if err == nil {
				_, err = tmpl.Render(nil, jinja.Options{})
			}
			if bad := new(jinja.Error); !errors.As(err, &bad) {
				t.Errorf("got %v, want an error", err)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

// TestLimits names the limit that a template exceeds, and the line.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, source string
		options      jinja.Options
		want         string
	}{
		{"steps", "\n{% for i in range(99) %}\n{{ i }}{% endfor %}", jinja.Options{Steps: 100}, "line 2: template limit exceeded: too many steps"},
		{"output", "a\n{{ 'b' * 100 }}", jinja.Options{Output: 50}, "line 2: template limit exceeded: more than 50 characters"},
		{"depth", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"brackets", "{{ " + strings.Repeat("(", 10000) + strings.Repeat(")", 10000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"blocks", strings.Repeat("{% if 1 %}", 10000), jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"nots", "{{ " + strings.Repeat("not ", 10000) + "1 }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"signs", "{{ " + strings.Repeat("-", 10000) + "1 }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"conditions", "{{ 1" + strings.Repeat(" if 1", 100000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"ors", "{{ 0" + strings.Repeat(" or 0", 100000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"calls", "{{ x" + strings.Repeat("()", 100000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"subscripts", "{{ x" + strings.Repeat("[0]", 100000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"sums", "{{ 1" + strings.Repeat(" + 1", 100000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"filters", "{{ 1" + strings.Repeat("|string", 100000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"attributes", "{{ x" + strings.Repeat(".a", 100000) + " }}", jinja.Options{}, "line 1: template limit exceeded: nested too deeply"},
		{"size", strings.Repeat("x", 1<<20+1), jinja.Options{}, "line 1: template limit exceeded: a source of 1048577 bytes, more than 1048576"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := jinja.Parse(c.source)
			if err == nil {
				_, err = tmpl.Render(nil, c.options)
			}
			if !errors.Is(err, jinja.ErrLimit) || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestMarks follows the marks of input through the operations of templates.
func TestMarks(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"print", "a{{ x }}b", "a[ In put ]b"},
		{"strip", "<{{ x|trim }}>", "<[In put]>"},
		{"concatenate", "{{ 'a' + x ~ 'b' }}", "a[ In put ]b"},
		{"slice", "{{ ('ab' + x)[1:4] }}", "b[ I]"},
		{"split", "{{ x.split(' ')|join('-') }}", "-[In]-[put]-"},
		{"replace", "{{ x.replace('n', '#') }}", "[ I]#[ put ]"},
		{"upper", "{{ x|upper }}", "[ IN PUT ]"},
		{"reverse", "{{ x[::-1] }}", "[ tup nI ]"},
		{"json", "{{ {'k': x}|tojson }}", `{"k": "[ In put ]"}`},
		{"repr", "{{ [x] }}", "['[ In put ]']"},
		{"loop", "{% for c in x.strip() %}{{ c }}.{% endfor %}", "[I].[n].[ ].[p].[u].[t]."},
		{"block", "{% set y %}a{{ x }}{% endset %}{{ y }}", "a[ In put ]"},
		{"macro", "{% macro f(a) %}{{ a }}!{% endmacro %}{{ f(x) }}", "[ In put ]!"},
		{"compare", "{{ x == ' In put ' and 'put' in x and {x: 1}[' In put '] }}", "1"},
		{"format", "{{ '%s|'|format(x) }}", "[ In put ]|"},
		{"indent", "{{ x|indent(1, true) }}", " [ In put ]"},
		{"title", "{{ x|title }}", "[ In Put ]"},
		{"fields", "{{ x.split()|join }}", "[Input]"},
		{"filter", "{% filter trim %}a{{ x }}{% endfilter %}", "a[ In put]"},
		{"call", "{% macro f() %}a{{ caller() }}{% endmacro %}{% call f() %}{{ x }}{% endcall %}", "a[ In put ]"},
		{"multiply", "{{ x.strip()[:1] * 3 }}", "[III]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := jinja.Parse(c.source)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(map[string]jinja.Value{"x": jinja.From(3, " In put ")}, jinja.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]bool{false, false, false, strings.Contains(c.want, "["), false}, got.Sources(5)); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
			text, at, shown := got.String(), 0, ""
			for _, s := range got.Inputs() {
				shown += text[at:s.From] + "[" + text[s.From:s.To] + "]"
				at = s.To
			}
			if shown += text[at:]; shown != c.want {
				t.Errorf("got %s, want %s", shown, c.want)
			}
		})
	}
}

// TestSources tells sources apart, up to the number that have marks of their own.
func TestSources(t *testing.T) {
	inputs := &jinja.List{}
	for _, source := range []int{-1, 0, 7, 1021, 1022 + 5} {
		inputs.Items = append(inputs.Items, jinja.From(source, "\U0010ffff"))
	}
	tmpl, err := jinja.Parse("{{ x|join }}")
	if err != nil {
		t.Fatal(err)
	}
	text, err := tmpl.Render(map[string]jinja.Value{"x": inputs}, jinja.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var shown []int
	for i, is := range text.Sources(1030) {
		if is {
			shown = append(shown, i)
		}
	}
	if diff := cmp.Diff([]int{0, 5, 7, 1021, 1022, 1027, 1029}, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]jinja.Span{{From: 0, To: 20}}, text.Inputs()); diff != "" || text.String() != strings.Repeat("\U0010ffff", 5) {
		t.Errorf("%q (-want +got):\n%s", text.String(), diff)
	}
}

// FuzzFromJSON reads any JSON: no panic, no JSON that package json refuses, and what tojson writes reads back as the same.
func FuzzFromJSON(f *testing.F) {
	for _, data := range []string{`{"a": [1, 2.5, null, true, "x\u0007"], "a": {}}`, `[[[`, `1 2`, `{"a"`, `99999999999999999999`, `1e999`, strings.Repeat("[", 300)} {
		f.Add([]byte(data))
	}
	show, err := jinja.Parse("{{ x | tojson }}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := jinja.FromJSON(5, data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is read", data)
		}
		text, err := show.Render(map[string]jinja.Value{"x": v}, jinja.Options{})
		if err != nil {
			return // it is too long
		}
		again, err := jinja.FromJSON(5, []byte(text.String()))
		if err != nil {
			t.Fatalf("%q is written as %q: %v", data, text, err)
		}
		if second, err := show.Render(map[string]jinja.Value{"x": again}, jinja.Options{}); err != nil || second.String() != text.String() {
			t.Errorf("%q is written as %q, and then as %q, %v", data, text, second, err)
		}
	})
}

// FuzzTemplate parses and renders any source: no panic, and an end within the limits.
func FuzzTemplate(f *testing.F) {
	data, err := os.ReadFile("testdata/language.json")
	if err != nil {
		f.Fatal(err)
	}
	var golden struct {
		Vars  json.RawMessage
		Cases []struct{ Source string }
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		f.Fatal(err)
	}
	for _, c := range golden.Cases {
		f.Add(c.Source)
	}
	for _, source := range hostile {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := jinja.Parse(source)
		if err != nil {
			return
		}
		v, err := jinja.FromJSON(-1, golden.Vars)
		if err != nil {
			t.Fatal(err)
		}
		vars := map[string]jinja.Value{}
		keys, values := v.(*jinja.Map).Entries()
		for i, k := range keys {
			vars[k.(jinja.Text).String()] = values[i]
		}
		const steps, output = 20_000, 10_000
		start := time.Now()
		out, err := tmpl.Render(vars, jinja.Options{Steps: steps, Output: output})
		if err == nil && utf8.RuneCountInString(out.String()) > output+12*steps {
			t.Errorf("%d bytes", len(out.String()))
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("it took %v", d)
		}
		if bad, raised := new(jinja.Error), new(jinja.RaisedError); err != nil && !errors.As(err, &bad) && !errors.As(err, &raised) {
			t.Errorf("the error is %T: %v", err, err)
		}
	})
}
