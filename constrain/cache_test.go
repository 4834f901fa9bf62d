package constrain

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"grove/internal/text/token"
)

// TestCache expects one constraint for equal specs, another one for others, none of what cannot be compiled, and bounds that hold.
func TestCache(t *testing.T) {
	c := NewCache(words(t, true), Limits{})
	get := func(s Spec) *Constraint {
		t.Helper()
		made, err := c.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	a, b := get(Spec{Regex: "a+"}), get(Spec{Regex: "a+", Thoughts: true})
	if a == b || a != get(Spec{Regex: "a+"}) || b != get(Spec{Regex: "a+", Thoughts: true}) {
		t.Error("equal specs have several constraints, or different ones share one")
	}
	_, err := c.Compile(Spec{Regex: "("})
	if spec := new(SpecError); !errors.As(err, &spec) || len(c.kept) != 2 {
		t.Errorf("%v, and %d constraints are kept", err, len(c.kept))
	}
	for i := range 3 * maxCached {
		get(Spec{Regex: fmt.Sprintf("a{%d}", i+1)})
		get(Spec{Regex: "a+"}) // the one in use stays
	}
	if len(c.kept) != maxCached || a != get(Spec{Regex: "a+"}) || b == get(Spec{Regex: "a+", Thoughts: true}) {
		t.Errorf("%d constraints are kept, want the %d used last", len(c.kept), maxCached)
	}
	get(Spec{Choices: []string{strings.Repeat("a", maxCachedBytes)}})
	if len(c.kept) != 1 {
		t.Errorf("%d constraints beside one of %d bytes", len(c.kept)-1, maxCachedBytes)
	}
}

// TestCacheOrder expects the constraints in the order in which they were used, the last one first.
func TestCacheOrder(t *testing.T) {
	c := NewCache(words(t, true), Limits{})
	made := map[string]*Constraint{}
	for _, s := range []string{"a", "b", "c", "d", "b", "a"} {
		var err error
		if made[s], err = c.Compile(Spec{Regex: s}); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range []string{"a", "b", "d", "c"} {
		if len(c.kept) != 4 || c.kept[i].c != made[s] {
			t.Errorf("place %d of %d is not %s", i, len(c.kept), s)
		}
	}
}

// TestShared draws from one constraint on several goroutines: the race detector sees what is not guarded.
func TestShared(t *testing.T) {
	v := words(t, true)
	c, err := Compile(Spec{Schema: []byte(`{"properties":{"abc":{"type":"string"},"order":{"enum":["ab","12"]}},"required":["abc"]}`), Thoughts: true}, v, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			stage := c.Stages(nil)[0].(*Stage)
			at := stage.Start(nil)
			logits := make([]float32, v.size)
			for _, b := range `{"abc":"12","order":"ab"}` {
				stage.Prepare(at)
				stage.Apply(at, logits)
				stage.Forced(at)
				at = stage.Next(at, firstByte+tokenOf(b))
			}
			if !stage.Ended(at) || stage.Err(at) != nil {
				t.Errorf("a legal text is not complete: %v", stage.Err(at))
			}
		})
	}
	group.Wait()
}

// TestSlow compares the parser's masks with those of an automaton that runs each token by itself.
func TestSlow(t *testing.T) {
	v := words(t, false)
	for _, text := range []string{`a+b?c*`, `(ab|abc|c")+`, `order(Id|Name)[0-9]{1,3}`, `[^a]*a`, `.{0,4}é`} {
		spec := Spec{Regex: text}
		c, err := Compile(spec, v, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		src, err := regexSource(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := newSlow(v, src)
		if err != nil {
			t.Fatal(err)
		}
		fast, _ := c.rec.start()
		slow, _ := r.start()
		seen := 0
		var walk func(fast, slow state, depth int)
		walk = func(fast, slow state, depth int) {
			got, err := c.rec.mask(fast)
			want, _ := r.mask(slow)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s: word %d of a mask is %x, want %x", text, i, got[i], want[i])
				}
			}
			if seen++; c.rec.ends(fast) != r.ends(slow) {
				t.Fatalf("%s: the end is told otherwise", text)
			}
			var legal []token.ID
			for id := firstByte; int(id) < v.size && depth < 4; id++ {
				if want.has(id) {
					legal = append(legal, id)
				}
			}
			for i := 0; i < len(legal); i += 1 + len(legal)/5 {
				next, err := c.rec.next(fast, legal[i])
				if err != nil {
					t.Fatal(err)
				}
				same, _ := r.next(slow, legal[i])
				walk(next, same, depth+1)
			}
		}
		if walk(fast, slow, 0); seen < 3 {
			t.Errorf("%s: %d states", text, seen)
		}
	}
}

// FuzzCompile compiles what a request may have and checks a text by it: nothing panics, and the two ways to read a text agree.
func FuzzCompile(f *testing.F) {
	for _, seed := range []struct{ schema, regex, grammar, trigger, text string }{
		{`{"type":"object"}`, "", "", "", "{}"}, {"", "a+", "", "aa", "aab"}, {"", "", `root ::= "a" root | "b"`, "", "aab"}, {"", "", "start: /a/ start | \"b\"", "a", "ab"},
		{`{"enum":["a",1]}`, "", "", "<tool>", "1"}, {"", "", "json", "", "[1]"},
	} {
		f.Add(seed.schema, seed.regex, seed.grammar, seed.trigger, seed.text)
	}
	v := words(f, true)
	f.Fuzz(func(t *testing.T, schema, regex, grammar, trigger, text string) {
		spec := Spec{Regex: regex, Grammar: grammar}
		if schema != "" {
			spec.Schema = []byte(schema)
		}
		if trigger != "" {
			spec.Triggers, spec.Behind = []string{trigger}, len(text)%2 == 0
		}
		c, err := Compile(spec, v, Limits{})
		if err != nil {
			return
		}
		whole := c.Check([]byte(text))
		stage := c.Stages(nil)[0].(*Stage)
		at := stage.Start([]token.ID{firstByte + 'x'})
		for i := range len(text) {
			at = stage.Next(at, firstByte+token.ID(text[i]))
			if stage.Err(at) != nil {
				break
			}
			stage.Forced(at)
		}
		if trigger == "" && whole == nil && stage.Err(at) != nil && !strings.Contains(text, "\xff") {
			t.Errorf("%q is legal, and the stage says %v", text, stage.Err(at))
		}
	})
}
