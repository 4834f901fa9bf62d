package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"grove/constrain/earley"
)

// repeat joins what f makes of 0 to n-1 with commas.
func repeat(n int, f func(i int) string) string {
	var all []string
	for i := range n {
		all = append(all, f(i))
	}
	return strings.Join(all, ",")
}

// TestHostile compiles schemas that are made to cost much. Each ends in bounded time, with an error that names the place, or with
// a grammar that reads a text.
func TestHostile(t *testing.T) {
	number := func(format string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(format, i, i+1) }
	}
	for _, x := range []struct {
		name, schema string
		want         error  // of Compile; nil: none
		path         string // of the error
		text         string // that is accepted
	}{
		{"no end", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, ErrEmpty, "#", ""},
		{"no end in two steps", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"},"minItems":1},"b":{"type":"object","required":["x"],"properties":{"x":{"$ref":"#/$defs/a"}}}}}`, ErrEmpty, "#", ""},
		{"end", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, nil, "", `{"a":{"a":{}}}`},
		{"itself", `{"$ref":"#"}`, ErrReference, "#", ""},
		{"itself by anyOf", `{"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/properties/a"}]}}}`, ErrReference, "#/properties/a", ""},
		{"enum of nothing", `{"properties":{"a":{"enum":[]}},"required":["a"],"type":"object"}`, ErrEmpty, "#", ""},
		{"long enum", `{"enum":[` + repeat(100_000, number(`"value %d of %d"`)) + `]}`, nil, "", `"value 7 of 8"`},
		{"enum of objects", `{"enum":[` + repeat(5000, number(`{"a":%d,"b":%d}`)) + `]}`, ErrBudget, "#", ""},
		{"many properties", `{"type":"object","properties":{` + repeat(5000, number(`"p%d":{"type":"integer","title":"%d"}`)) + `}}`, nil, "", `{"p17":19}`},
		{"deep", strings.Repeat(`{"items":`, 5000) + "{}" + strings.Repeat("}", 5000), ErrBudget, "#/items/items", ""},
		{"many choices", `{"type":"object","allOf":[` + repeat(30, number(`{"anyOf":[{"required":["a%d"]},{"required":["b%d"]},{"minProperties":3}]}`)) + `]}`, ErrBudget, "#", ""},
		{"oneOf of many", `{"oneOf":[` + repeat(50, number(`{"type":"object","properties":{"a%d":{"type":"integer"},"b":{"minimum":%d}}}`)) + `]}`, ErrBudget, "#", ""},
		{"oneOf by name", `{"oneOf":[` + repeat(150, number(`{"type":"object","properties":{"kind":{"const":"k%d"},"b":{"minimum":%d}},"required":["kind"]}`)) + `]}`, nil, "", `{"kind":"k7","b":9}`},
		{"doubling", `{"$ref":"#/$defs/d0","$defs":{` + repeat(40, number(`"d%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/d%[2]d"},"r":{"$ref":"#/$defs/d%[2]d"}},"required":["l","r"]}`)) + `,"d40":{"type":"null"}}}`, nil, "", ""},
		{"doubling of conjunctions", `{"$ref":"#/$defs/d0","$defs":{` + repeat(40, number(`"d%[1]d":{"properties":{"l":{"$ref":"#/$defs/d%[2]d"},"r":{"allOf":[{"$ref":"#/$defs/d%[2]d"},{"properties":{"l":{"minimum":%[1]d}}}]}}}`)) + `,"d40":{}}}`, nil, "", ""},
		{"bomb", `{"pattern":"^(((a{1,1000}){1,1000}){1,1000}|b)*c{9}$"}`, nil, "", `"abccccccccc"`},
		{"bombs together", `{"allOf":[` + repeat(20, number(`{"pattern":"(a|b)*a(a|b){%[1]d}c"}`)) + `]}`, nil, "", ""},
		{"far minimum", `{"type":"array","minItems":2000000000}`, nil, "", ""},
		{"far contains", `{"type":"array","contains":{"type":"null"},"minContains":2000000000}`, ErrBudget, "", ""},
		{"far length", `{"type":"string","minLength":3,"maxLength":2000000000}`, nil, "", `"abc"`},
		{"far multiple", `{"multipleOf":1e-300}`, nil, "", `1.5`},
		{"far bound", `{"minimum":1e99999999999}`, ErrUnsupported, "#/minimum", ""},
		{"net", `{"properties":{"a":{"$ref":"http://example.com/x.json"}}}`, ErrReference, "#/properties/a/$ref", ""},
		{"file", `{"items":{"$ref":"file:///etc/passwd"}}`, ErrReference, "#/items/$ref", ""},
		{"no reference", `{"$ref":"%zz"}`, ErrReference, "#/$ref", ""},
		{"nowhere", `{"$ref":"#/definitions/x"}`, ErrReference, "#/$ref", ""},
		{"patterns", `{"patternProperties":{` + repeat(40, number(`"^a{%d}b{%d}?":{"type":"integer"},"x%[1]d$":{"minimum":%[1]d}`)) + `}}`, ErrBudget, "#", ""},
		{"type", `{"type":"text"}`, ErrInvalid, "#/type", ""},
		{"twice", `{"type":"object","type":"array"}`, ErrInvalid, "#", ""},
		{"not JSON", `{"type":`, ErrInvalid, "#", ""},
		{"schema of a number", `{"items":7}`, ErrInvalid, "#/items", ""},
		{"another draft", `{"$schema":"http://example.com/mine"}`, ErrUnsupported, "#/$schema", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			start := time.Now()
			src, err := Compile([]byte(x.schema), Options{Order: Free})
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			t.Logf("%v: %v", time.Since(start), err)
			var e *Error
			switch {
			case !errors.Is(err, x.want):
				t.Fatalf("%v, want %v", err, x.want)
			case err != nil && (!errors.As(err, &e) || !strings.HasPrefix(e.Path, x.path)):
				t.Errorf("%v, want a path from %s", err, x.path)
			case err != nil || x.text == "":
				return
			}
			engine, err := earley.New(src, bytesOnly(t), earley.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if n, ends, err := push(engine, x.text); n < len(x.text) || !ends || err != nil {
				t.Errorf("%s: read %d bytes, ends %v: %v", x.text, n, ends, err)
			}
		})
	}
}

// TestManyDistinct: an array of nearly all of many values, each once, is walked to its end in little time, and no value comes twice.
func TestManyDistinct(t *testing.T) {
	for _, n := range []int{20, 150} {
		values := make([]string, n)
		for i := range values {
			values[i] = strconv.Itoa(i)
		}
		schema := fmt.Sprintf(`{"type":"array","uniqueItems":true,"items":{"enum":[%s]},"minItems":%d}`, strings.Join(values, ","), n-10)
		start := time.Now()
		for _, c := range []struct {
			text  string
			legal bool
		}{
			{"[" + strings.Join(values, ",") + "]", true},
			{"[" + strings.Join(values[10:], ",") + "]", true},
			{"[" + strings.Join(values[11:], ",") + "]", false},
			{"[" + strings.Join(values, ",") + ",1]", false},
			{"[" + strings.Join(values[:n/2], ",") + ",3", false},
		} {
			src, err := Compile([]byte(schema), Options{Order: Free})
			if err != nil {
				t.Fatal(err)
			}
			engine, err := earley.New(src, bytesOnly(t), earley.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if read, ends, err := push(engine, c.text); err != nil || (read == len(c.text) && ends) != c.legal {
				t.Errorf("%d values: %.60q: read %d of %d bytes, ends %v: %v", n, c.text, read, len(c.text), ends, err)
			}
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%d values take %v", n, took)
		}
	}
}
