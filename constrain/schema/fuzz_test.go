package schema

import (
	"testing"

	"grove/constrain/grammar"
)

// FuzzCompile compiles any bytes under small limits, and unfolds the first places of the grammar.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["b"],"additionalProperties":{"type":"integer"}}`,
		`{"oneOf":[{"required":["a"]},{"not":{"items":{"pattern":"^a+$"}}}],"unevaluatedProperties":false}`,
		`{"type":"array","prefixItems":[{"const":[1,{"a":null}]}],"contains":{"multipleOf":0.5},"uniqueItems":true,"items":{"type":"number"}}`,
		`{"$id":"http://a/b","$defs":{"x":{"$anchor":"y","patternProperties":{"^x":false}}},"$ref":"#y","enum":[{},[]]}`,
		`{"$ref":"#"}`, `false`, `{"enum":[]}`, `{"allOf":[{"$ref":"#"}]}`, `[`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(s), byte(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, how byte) {
		o := Options{Order: Order(how & 1), Whitespace: Whitespace(how >> 1 & 3),
			Limits: Limits{Bytes: 1 << 16, Alternatives: 50, Steps: 20_000, Formulas: 2000, Nodes: 50_000, Fuel: 100_000}}
		src, err := Compile(text, o)
		if err != nil {
			return
		}
		seen := map[grammar.Node]bool{}
		for queue := []grammar.Node{src.Start()}; len(queue) > 0 && len(seen) < 100; {
			n := queue[0]
			if queue = queue[1:]; seen[n] {
				continue
			}
			seen[n] = true
			edges, err := src.Edges(nil, n)
			if err != nil {
				return
			}
			if len(edges) == 0 && !src.Final(n) {
				t.Fatalf("%s: node %d leads nowhere", text, n)
			}
			for _, e := range edges {
				if src.Store().IsEmpty(e.Lexeme) && e.Call == 0 || src.Store().Nullable(e.Lexeme) {
					t.Fatalf("%s: node %d has a lexeme without texts, or with the empty one", text, n)
				}
				if e.Read == nil {
					queue = append(queue, e.To, e.Call)
				}
			}
		}
	})
}
