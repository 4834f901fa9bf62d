package schematest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"grove/constrain/schema/document"
)

// Instances are texts that random schemas are asked about.
var Instances = []string{`1`, `"a"`, `null`, `true`, `{}`, `[]`, `{"a": 1}`, `{"a": 1, "b": "x"}`, `{"b": 2, "c": [1, 2]}`, `[1, 2, 3]`, `["a", "a"]`, `2.5`, `""`, `"abc"`,
	`{"a": {"a": 1}}`, `[1, "a", null, {"a": 1}]`, `-3`, `[[1], [2]]`, `{"ab": 1, "x": 2}`}

// Mutate returns a text with one change, or "" where there is none to make.
func Mutate(rng *rand.Rand, text string) string {
	v, err := document.Parse([]byte(text), 1<<20, 100)
	if err != nil {
		return ""
	}
	var all []*document.Value
	var walk func(v *document.Value)
	walk = func(v *document.Value) {
		all = append(all, v)
		for _, x := range v.Items {
			walk(x)
		}
	}
	walk(v)
	change(rng, all[rng.IntN(len(all))])
	for _, x := range all {
		// Languages of numbers hold the usual spellings alone, and random numbers have others: 0e7.
		if x.Kind == '0' && strings.ContainsAny(x.Text, "eE") {
			x.Text = "7"
		}
	}
	var b strings.Builder
	write(&b, v)
	if b.Len() > 5000 {
		return ""
	}
	return b.String()
}

// change changes a value.
func change(rng *rand.Rand, v *document.Value) {
	random := func() *document.Value {
		x, _ := document.Parse([]byte(Instances[rng.IntN(len(Instances))]), 1000, 10)
		return x
	}
	switch n := len(v.Items); {
	case v.Kind == '{' && n > 0 && rng.IntN(2) == 0:
		i := rng.IntN(n)
		switch rng.IntN(3) {
		case 0:
			v.Names, v.Items = append(v.Names[:i:i], v.Names[i+1:]...), append(v.Items[:i:i], v.Items[i+1:]...)
		case 1:
			j := rng.IntN(n)
			v.Names[i], v.Names[j], v.Items[i], v.Items[j] = v.Names[j], v.Names[i], v.Items[j], v.Items[i]
		case 2:
			v.Items[i] = random()
		}
	case v.Kind == '{' && rng.IntN(2) == 0:
		name := string(rune('a' + rng.IntN(26)))
		for _, x := range v.Names {
			if x == name {
				return
			}
		}
		v.Names, v.Items = append(v.Names, name), append(v.Items, random())
	case v.Kind == '[' && rng.IntN(3) > 0:
		if n > 0 && rng.IntN(2) == 0 {
			v.Items = v.Items[:n-1]
		} else {
			v.Items = append(v.Items, random())
		}
	case v.Kind == '0' && rng.IntN(2) == 0:
		v.Text = fmt.Sprint(rng.IntN(20) - 5)
	case v.Kind == '"' && rng.IntN(2) == 0:
		if rng.IntN(2) == 0 && v.Text != "" {
			v.Text = strings.ToValidUTF8(v.Text[:len(v.Text)-1], "")
		} else {
			v.Text += string(rune('a' + rng.IntN(26)))
		}
	default:
		x := random()
		v.Kind, v.Text, v.Names, v.Items = x.Kind, x.Text, x.Names, x.Items
	}
}

// RandomSchema writes a random schema.
func RandomSchema(rng *rand.Rand, b *strings.Builder, depth int) {
	if depth == 0 || rng.IntN(12) == 0 {
		b.WriteString([]string{"true", "{}", `{"type":"integer"}`, `{"type":"string"}`, `{"type":"object"}`, `{"minimum":2}`, `{"const":1}`, `{"enum":["a",1,null]}`,
			`{"maxLength":1}`, `false`, `{"type":["array","boolean"]}`, `{"enum":[[1],{"a":1},2.5]}`}[rng.IntN(12)])
		return
	}
	sub := func() string {
		var b strings.Builder
		RandomSchema(rng, &b, depth-1)
		return b.String()
	}
	name := func() string { return []string{"a", "b", "c", "ab"}[rng.IntN(4)] }
	used := map[string]bool{}
	b.WriteString("{")
	for range 1 + rng.IntN(3) {
		var key, val string
		switch rng.IntN(26) {
		case 0:
			key, val = "type", []string{`"object"`, `"array"`, `"string"`, `"integer"`, `["object","number"]`, `["array","string","null"]`}[rng.IntN(6)]
		case 1, 2, 3:
			if n, m := name(), name(); n != m {
				key, val = "properties", fmt.Sprintf(`{%q:%s,%q:%s}`, n, sub(), m, sub())
			}
		case 4, 5:
			key, val = "required", fmt.Sprintf(`[%q]`, name())
		case 6, 7:
			key, val = "additionalProperties", sub()
		case 8:
			key, val = "patternProperties", fmt.Sprintf(`{"^a":%s,"b$":%s}`, sub(), sub())
		case 9:
			key, val = "propertyNames", []string{`{"maxLength":1}`, `{"pattern":"^[a-c]"}`, `{"enum":["a","x"]}`, `{"not":{"const":"b"}}`}[rng.IntN(4)]
		case 10:
			key, val = []string{"minProperties", "maxProperties"}[rng.IntN(2)], fmt.Sprint(rng.IntN(4))
		case 11:
			key, val = "items", sub()
		case 12:
			key, val = "prefixItems", fmt.Sprintf(`[%s,%s]`, sub(), sub())
		case 13:
			key, val = []string{"minItems", "maxItems"}[rng.IntN(2)], fmt.Sprint(rng.IntN(4))
		case 14:
			key, val = "contains", sub()
		case 15:
			key, val = []string{"minContains", "maxContains"}[rng.IntN(2)], fmt.Sprint(rng.IntN(3))
		case 16:
			key, val = "not", sub()
		case 17, 18:
			key, val = []string{"anyOf", "oneOf", "allOf"}[rng.IntN(3)], fmt.Sprintf(`[%s,%s]`, sub(), sub())
		case 19:
			key, val = "oneOf", fmt.Sprintf(`[%s,%s,%s]`, sub(), sub(), sub())
		case 20:
			key, val = []string{"if", "then", "else"}[rng.IntN(3)], sub()
		case 21:
			key, val = "dependentRequired", fmt.Sprintf(`{%q:[%q]}`, name(), name())
		case 22:
			key, val = "dependentSchemas", fmt.Sprintf(`{%q:%s}`, name(), sub())
		case 23:
			key, val = []string{"unevaluatedProperties", "unevaluatedItems"}[rng.IntN(2)], sub()
		case 24:
			key, val = []string{"minimum", "maximum", "exclusiveMinimum", "multipleOf", "minLength", "maxLength"}[rng.IntN(6)], fmt.Sprint(1+rng.IntN(3))
		case 25:
			key, val = []string{"uniqueItems", "pattern", "$ref"}[rng.IntN(3)], ""
			val = map[string]string{"uniqueItems": "true", "pattern": `"^a|b$"`, "$ref": `"#"`}[key]
			if key == "$ref" && depth == 3 {
				key = ""
			}
		}
		if key == "" || used[key] {
			continue
		}
		if len(used) > 0 {
			b.WriteString(",")
		}
		used[key] = true
		fmt.Fprintf(b, "%q:%s", key, val)
	}
	b.WriteString("}")
}
