package constrain

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"grove/constrain/earley"
	"grove/constrain/grammar"
	"grove/constrain/lark"
	"grove/constrain/regex"
	"grove/constrain/schema"
	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// pairs returns the vocabulary of all bytes, and of all pairs and many triples of letters, digits and marks.
func pairs(t *testing.T) *vocab.Vocabulary {
	t.Helper()
	var all []vocab.Token
	add := func(text string) {
		all = append(all, vocab.Token{ID: token.ID(len(all)), Bytes: []byte(text), Kind: vocab.Ordinary})
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	const letters = "etaoinshr \n{}[]\":,_0123456789pwdx"
	for _, x := range letters {
		for _, y := range letters {
			add(string([]rune{x, y}))
			for _, z := range letters[:16] {
				add(string([]rune{x, y, z}))
			}
		}
	}
	v, err := vocab.New(all, len(all))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// times repeats a text with numbers, with commas between.
func times(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ","+format, i)
	}
	return b.String()[1:]
}

// heavyCase is a grammar that takes much memory, and a text of it.
type heavyCase struct {
	name, text string
	source     func() (grammar.Source, error)
}

// heavy are grammars that take much memory.
func heavy(t *testing.T) (all []heavyCase) {
	t.Helper()
	bySchema := func(name, text, of string, o schema.Options) {
		all = append(all, heavyCase{name, of, func() (grammar.Source, error) { return schema.Compile([]byte(text), o) }})
	}
	bySchema("words", `{"enum":[`+times(20_000, `"word%d"`)+`]}`, `"word1234"`, schema.Options{})
	bySchema("names", `{"type":"object","properties":{`+times(3000, `"p%d":{"type":"string","maxLength":40}`)+`}}`,
		`{`+times(60, `"p%d":"the text of a property"`)+`}`, schema.Options{})
	bySchema("names in any order", `{"type":"object","properties":{`+times(200, `"p%d":{"type":["integer","null"],"minimum":-5}`)+`},"additionalProperties":{"type":"string"}}`,
		`{`+times(60, `"p%d":12`)+`,"else":"a"}`, schema.Options{Order: schema.Free})
	bySchema("lists in lists", `{"$defs":{"a":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"number"},{"type":"object"}]}}},"$ref":"#/$defs/a"}`,
		strings.Repeat("[", 400)+`{"a":{"b":[1,2]},"c":1.5e3}`+strings.Repeat("]", 400), schema.Options{})
	bySchema("unique", `{"type":"array","uniqueItems":true,"items":{"enum":[`+times(120, `"item%d"`)+`]}}`, `[`+times(110, `"item%d"`)+`]`, schema.Options{})
	all = append(all,
		heavyCase{"an expression", strings.Repeat("ab", 50) + strings.Repeat("ba", 50), func() (grammar.Source, error) {
			s := regex.New(regex.Limits{})
			id, err := regex.Whole(s, "(a|b)*a(a|b){13}(ab|ba)*|[a-z]{1,400}[0-9a-f]{30,300}")
			if err != nil {
				return nil, err
			}
			return grammar.Lexeme(s, id)
		}},
		heavyCase{"python", "def f(a, b=1):\n    for i in range(10):\n        if a[i] == {1: 'x', 2: [3, 4]}:\n            return lambda x: x + 1\n    return f(a, b=2)\n", func() (grammar.Source, error) {
			text, err := lark.Shipped("python")
			if err != nil {
				return nil, err
			}
			return lark.Parse(text, lark.Options{})
		}})
	return all
}

// few is how far small parsers may be off, in bytes.
const few = 256 << 10

// heap returns the memory in use in bytes.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestHeld compares what parsers say of their memory with what the runtime says.
func TestHeld(t *testing.T) {
	v := pairs(t)
	for _, tt := range heavy(t) {
		t.Run(tt.name, func(t *testing.T) {
			before := heap()
			src, err := tt.source()
			if err != nil {
				t.Fatal(err)
			}
			e, err := earley.New(src, v, earley.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			check := func(when string) {
				t.Helper()
				told, took := e.Held(), heap()-before
				t.Logf("%s: %.2f MiB, told %.2f", when, float64(took)/(1<<20), float64(told)/(1<<20))
				if told > took*3/2+few || told < took*2/3-few {
					t.Errorf("%s: it takes %d KiB, and says %d", when, took>>10, told>>10)
				}
			}
			check("compiled")
			at, err := e.Start()
			for i := 0; i < len(tt.text) && err == nil; i++ {
				if _, err = e.Mask(at); err == nil {
					at, _, err = e.Push(at, []byte{tt.text[i]})
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			check("used")
			runtime.KeepAlive(e)
		})
	}
}

// TestCacheHeld fills a cache with heavy constraints, whose texts grow them: what it keeps stays within its bound, and so does the process; texts
// that are being written go on with what was dropped.
func TestCacheHeld(t *testing.T) {
	c := NewCache(words(t, true), Limits{})
	c.most = 16 << 20
	before, seen := heap(), map[*Constraint]bool{}
	var stage *Stage
	var at sample.StageState
	for i := range 12 {
		made, err := c.Compile(Spec{Schema: fmt.Appendf(nil, `{"enum":[%s,%d]}`, times(15_000, `"word%d"`), i)})
		if err != nil {
			t.Fatal(err)
		}
		if seen[made] {
			t.Fatal("two schemas have one constraint")
		}
		seen[made] = true
		if i == 0 {
			stage = made.Stages(nil)[0].(*Stage)
			at = stage.Next(stage.Start(nil), stage.c.v.id(t, `"`))
		}
	}
	first := stage.c
	held := 0
	for _, k := range c.kept {
		if held += k.c.Held(); k.c == first {
			t.Error("the first constraint is kept")
		}
	}
	if n := len(c.kept); held > c.most || n < 2 || n > 8 {
		t.Errorf("%d constraints of %d KiB are kept", n, held>>10)
	}
	if stage.Allows(at, firstByte+'x') || !stage.Allows(at, firstByte+'w') || stage.Err(at) != nil {
		t.Error("a text does not go on with a constraint that was dropped")
	}
	seen = nil
	if took := heap() - before; took > c.most+first.Held()+8<<20 {
		t.Errorf("%d KiB are in use", took>>10)
	}
	c.most = 8 << 20
	if one, err := c.Compile(Spec{Schema: fmt.Appendf(nil, `{"enum":[%s]}`, times(80_000, `"word%d"`))}); err != nil || one.Held() <= c.most || c.kept[0].c == one {
		t.Errorf("a constraint of %d KiB is kept: %v", one.Held()>>10, err)
	}
	if len(c.kept) < 1 {
		t.Error("a constraint beyond the bound drops the others")
	}
	runtime.KeepAlive(stage)
}

// TestCacheTrims grows a constraint by a text: the cache drops it without a further compilation.
func TestCacheTrims(t *testing.T) {
	c := NewCache(words(t, true), Limits{})
	made, err := c.Compile(Spec{Schema: []byte(`{"type":"array"}`)})
	if err != nil {
		t.Fatal(err)
	}
	c.most = made.Held() + 10<<10
	stage := made.Stages(nil)[0].(*Stage)
	at := stage.Keep(stage.Next(stage.Start(nil), firstByte+'['))
	for i := range 4 * trimEvery {
		if stage.Prepare(at); len(c.kept) == 0 {
			t.Logf("dropped behind %d tokens", i)
			return
		}
		at = stage.Keep(stage.Next(at, firstByte+'['))
	}
	t.Errorf("a constraint of %d KiB is kept, of %d KiB at most", made.Held()>>10, c.most>>10)
}

// TestHeldMost reads texts that grow parsers, within the limits of a model's: none takes more than 48 MiB, and what grows without end runs into a
// named bound.
func TestHeldMost(t *testing.T) {
	v := pairs(t)
	for n, ends := range map[int]bool{60: true, 400: false} {
		src, err := (&Spec{}).schema(fmt.Appendf(nil, `{"type":"array","uniqueItems":true,"items":{"enum":[%s]}}`, times(n, `"item%d"`)), newStore())
		if err != nil {
			t.Fatal(err)
		}
		e, err := earley.New(src, v, earley.Limits{Bytes: 20 << 20, MaskBytes: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		most, text := 0, `[`+times(n, `"item%d"`)+`]`
		at, err := e.Start()
		for i := 0; i < len(text) && err == nil; i++ {
			if _, err = e.Mask(at); err == nil {
				at, _, err = e.Push(at, []byte{text[i]})
			}
			most = max(most, e.Held())
		}
		t.Logf("%d items: at most %d MiB; %v", n, most>>20, err)
		if (err == nil) != ends || most > 48<<20 {
			t.Errorf("%d items: at most %d MiB; %v", n, most>>20, err)
		}
	}
}
