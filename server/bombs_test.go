package server_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"grove/server"
)

// bombs are bodies whose forms cannot be had: each is answered with 400.
func bombs() (all map[string]string) {
	all = map[string]string{}
	schema := func(name, text string) { all["schema, "+name] = `"json_schema":` + text }
	schemas := map[string]string{
		"nothing":                     `{"enum":[]}`,
		"nothing required":            `{"type":"object","properties":{"a":false},"required":["a"]}`,
		"nothing in a list":           `{"type":"array","items":false,"minItems":1}`,
		"no number":                   `{"type":"integer","minimum":5,"maximum":4}`,
		"no multiple":                 `{"type":"integer","multipleOf":7,"minimum":1,"maximum":6}`,
		"no length":                   `{"type":"string","minLength":3,"maxLength":2}`,
		"no text of a pattern":        `{"type":"string","pattern":"[^\\s\\S]"}`,
		"not all":                     `{"not":{}}`,
		"both":                        `{"allOf":[{"type":"string"},{"type":"null"}]}`,
		"itself":                      `{"$ref":"#"}`,
		"itself by two":               `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"an object in itself":         `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		"lists in themselves":         `{"type":"array","items":{"$ref":"#"},"minItems":1}`,
		"a file":                      `{"$ref":"file:///etc/passwd"}`,
		"a file by path":              `{"$ref":"/etc/passwd"}`,
		"a folder above":              `{"$ref":"../../secret.json"}`,
		"another machine":             `{"$ref":"http://127.0.0.1:1/schema.json"}`,
		"another machine, safely":     `{"$ref":"https://json-schema.org/nothing#"}`,
		"another machine by name":     `{"$id":"http://a.b/","$ref":"c.json"}`,
		"nowhere":                     `{"$ref":"#/$defs/none"}`,
		"no anchor":                   `{"$ref":"#none"}`,
		"a type that is not":          `{"type":"text"}`,
		"a type that is a number":     `{"type":3}`,
		"properties that are a list":  `{"properties":[]}`,
		"items that are a number":     `{"items":3}`,
		"required that is a text":     `{"required":"a"}`,
		"an enum that is none":        `{"enum":"a"}`,
		"a length below 0":            `{"minLength":-1}`,
		"a length of a fraction":      `{"maxLength":1.5}`,
		"a bound that is a text":      `{"minimum":"1"}`,
		"a pattern that is none":      `{"type":"string","pattern":"("}`,
		"a class that is none":        `{"type":"string","pattern":"[z-a]"}`,
		"a pattern that looks back":   `{"type":"string","pattern":"(a)\\1"}`,
		"names with a bad pattern":    `{"patternProperties":{"(":{}}}`,
		"a multiple of 0":             `{"multipleOf":0}`,
		"a number for a schema":       `{"properties":{"a":3}}`,
		"a list":                      `[]`,
		"a number":                    `3`,
		"an unknown draft of nothing": `{"type":"none","$schema":"x:y"}`,
	}
	for name, text := range schemas {
		schema(name, text)
	}
	// Those that grow.
	var both strings.Builder
	for i := range 40 {
		fmt.Fprintf(&both, `,{"anyOf":[{"required":["a%d"]},{"required":["b%d"]}]}`, i, i)
	}
	schema("2^40 ways", `{"type":"object","allOf":[`+both.String()[1:]+`],"not":{"type":"object"}}`)
	var chain strings.Builder
	for i := range 60 {
		fmt.Fprintf(&chain, `,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}],"pattern":"^(a|b)*a(a|b){%d}$"}`, i, i+1, i+1, i)
	}
	schema("references that double", `{"$ref":"#/$defs/d0","$defs":{`+chain.String()[1:]+`,"d60":false}}`)
	schema("exponential patterns", `{"type":"string","allOf":[{"pattern":"^(a|b)*a(a|b){200}$"},{"pattern":"^(a|b)*b(a|b){211}$"},{"pattern":"^(a|b)*a(a|b){223}$"},{"pattern":"^c+$"}]}`)
	schema("a megabyte of nothing", `{"enum":[],"description":"`+strings.Repeat("a", 1<<20)+`"}`)
	schema("a megabyte of names", `{"type":"object","properties":{`+strings.TrimSuffix(numbered(20_000, `"p%d":{"type":"string"},`), ",")+`},"required":["p0"],"allOf":[{"properties":{"p0":false}}]}`)
	schema("a megabyte of words", `{"enum":[`+strings.TrimSuffix(numbered(60_000, `"word%d",`), ",")+`],"type":"integer"}`)
	schema("deep", strings.Repeat(`{"items":`, 100)+"{}"+strings.Repeat("}", 100))
	schema("a length without end of nothing", `{"type":"string","minLength":4000000000,"maxLength":1}`)

	grammar := func(name, text string) { all["grammar, "+name] = `"grammar":` + quoted(text) }
	for name, text := range map[string]string{
		"no root": `a ::= "b"`, "an unknown rule": `root ::= b`, "itself alone": `root ::= root`, "by two": "root ::= a\na ::= root", "in brackets": `root ::= (root)`,
		"not closed": `root ::= ("a"`, "a quote": `root ::= "a`, "a class": `root ::= [a`, "a range": `root ::= [z-a]`, "a repetition": `root ::= "a"{3,2}`,
		"a repetition of nothing": `root ::= *`, "a huge repetition": `root ::= ("a" "b"){999999999}`, "an escape": `root ::= "\xZZ"`, "words": `make it so`, "twice": "root ::= \"a\"\nroot ::= \"b\"",
		"no productive rule": "root ::= \"a\" x\nx ::= \"b\" x", "a token that is not": `root ::= <none>`, "60,000 brackets": "root ::= " + strings.Repeat("(", 60_000) + `"a"` + strings.Repeat(")", 60_000),
		"60,000 open brackets": "root ::= " + strings.Repeat("(", 60_000), "40,000 rules": numbered(40_000, "r%d ::= r0 r0\n") + "root ::= r1", "nested repetitions": "root ::= " + strings.Repeat("(", 12) + `"ab"` + strings.Repeat("){100,1000}", 12) + " none",
		"a megabyte": "root ::= \"" + strings.Repeat("a", 1<<20-40) + "\" none", "beyond the field": "root ::= \"" + strings.Repeat("a", 1<<20) + "\"",
		"Lark: no start": `a: "b"`, "Lark: an unknown rule": `start: b`, "Lark: itself": `start: start`, "Lark: a terminal in itself": "start: A\nA: A \"b\"", "Lark: not closed": `start: ("a"`,
		"Lark: a bad expression": `start: /(/`, "Lark: looks ahead": `start: /a(?=b)/`, "Lark: a file": "%import .secret.rule\nstart: rule", "Lark: a folder": "%import ..etc.passwd (root)\nstart: root",
		"Lark: a schema": `start: %json {"type":"null"}`, "Lark: brackets": "start: " + strings.Repeat("(", 60_000) + `"a"` + strings.Repeat(")", 60_000), "Lark: an empty terminal": "start: A\nA: /[^\\s\\S]/",
	} {
		grammar(name, text)
	}
	for name, text := range map[string]string{
		"brackets": strings.Repeat("(", 30_000) + "a" + strings.Repeat(")", 30_000), "open": "(", "nothing": `[^\s\S]`, "a range": "[z-a]", "back": `(a)\1`, "behind": `(?<=a)b`, "ahead": `(?=a)b`,
		"a repetition": "a{3,2}", "huge": "a{1000000000}", "nested": strings.Repeat("(", 10) + "a" + strings.Repeat("{1000}){1000}", 10), "star of nothing": "*", "an escape": `\p{None}`, "a flag": "(?Q)a",
	} {
		all["regex, "+name] = `"guided_regex":` + quoted(text)
	}
	for name, text := range map[string]string{
		"choices of none": `"guided_choice":[]`, "two forms": `"guided_choice":["a"],"guided_regex":"a"`, "two of one": `"structured_outputs":{"json":{},"regex":"a","choice":["a"]}`,
		"no JSON": `"guided_json":"{"`, "a type": `"structured_outputs":{"json":{"type":"x"}}`, "a format": `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"$ref":"http://x.y/z"}}}`,
		"a trigger that cannot be": `"grammar":"root ::= \"a\"","grammar_lazy":true,"grammar_triggers":[{"type":1,"value":"b"}]`, "many triggers": `"grammar":"root ::= \"a\"","grammar_lazy":true,"grammar_triggers":[` + strings.TrimSuffix(strings.Repeat(`{"type":1,"value":"a"},`, 65), ",") + `]`,
		"tags": `"structural_tag":{"structures":[{"begin":"<a>","schema":{"enum":[]},"end":"x"}],"triggers":["<a"]}`,
	} {
		all[name] = text
	}
	return all
}

// numbered repeats a text with numbers.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestBombs: a hundred schemas and grammars that cannot be had are answered with 400, a field and a reason, soon and in little memory, and leave no
// trace.
func TestBombs(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
	all := bombs()
	if len(all) < 100 {
		t.Errorf("%d bombs", len(all))
	}
	heap := func() int {
		runtime.GC()
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":4,"guided_choice":["a","b"]}`) // what is made once
	idle, before := heap(), runtime.NumGoroutine()
	for name, fields := range all {
		body := `{"prompt":"a","max_tokens":4,` + fields + `}`
		start := time.Now()
		var status int
		var text string
		took := peak(func() { status, text, _ = s.do(t, "POST", "/v1/completions", body) })
		if status != 400 {
			t.Errorf("%s: %d %.300s", name, status, text)
			continue
		}
		if message, _, param, _ := wantError(t, text); param == "" || len(message) > 1000 || strings.Contains(message, "goroutine") {
			t.Errorf("%s: blames %q: %.300s", name, param, message)
		}
		if d := time.Since(start); d > bombTime {
			t.Errorf("%s: took %v", name, d)
		}
		if took > most(len(body))+bombMemory {
			t.Errorf("%s: took %d MiB", name, took>>20)
		}
		if os.Getenv("GROVE_BOMBS") != "" {
			t.Logf("%-40s %8v %4d MiB %.200s", name, time.Since(start).Round(time.Millisecond), took>>20, text)
		}
	}
	s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":4}`)
	if n := runtime.NumGoroutine(); n > before+5 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	if n := heap(); n > idle+8<<20 {
		t.Errorf("%d MiB are held behind them, %d before", n>>20, idle>>20)
	}
}

// The bounds of one form that cannot be had: of its time, on a machine with other work, and of memory besides that of any request.
const (
	bombTime   = 20 * time.Second
	bombMemory = 192 << 20
)
