package grow

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/method"
)

// scribe is a draft model that knows a text: behind a beginning of it, its likeliest token is the next one.
func scribe(t *tokenizer.Tokenizer, text string, context int) *growtest.Model {
	return &growtest.Model{
		Dims: method.Size{Vocabulary: t.Size(), Layers: 4, Width: 8, Context: context, Rows: 16},
		Next: func(path []token.ID, _ forest.Row) []float32 {
			logits := make([]float32, t.Size())
			logits[next(t, text, path)] = 9
			return logits
		},
	}
}

// next is the token that a scribe writes behind a path.
func next(t *tokenizer.Tokenizer, text string, path []token.ID) token.ID {
	if len(path) > 0 && path[0] == t.BOS() {
		path = path[1:]
	}
	said, err := t.Decode(path, true)
	rest, ok := strings.CutPrefix(text, said)
	if err != nil || !ok {
		return 0
	}
	ids, err := t.Encode(nil, rest, tokenizer.Options{Inside: said != ""})
	if err != nil || len(ids) == 0 {
		return t.EOS()
	}
	return ids[0]
}

func openRetokenize(t testing.TB, target, draft *tokenizer.Tokenizer, text string, context int) (*drafter, *growtest.Text, *growtest.Model) {
	t.Helper()
	words, err := method.NewVocabMap(target, draft)
	if err != nil {
		t.Fatal(err)
	}
	if words.Mapping() != method.ThroughText {
		t.Fatal(words)
	}
	s := scribe(draft, text, context)
	b := NewBranch(method.Env{Draft: s, Vocabulary: target.Size(), VocabMap: words}, nil)
	d := NewRetokenize(b)
	return d.(*drafter), &growtest.Text{Drafter: d}, s
}

// rounds decodes ids behind a prompt, with every draft verified, and returns the steps taken and the drafts that were
// rejected.
func rounds(t testing.TB, x *growtest.Text, vocabulary int, ids []token.ID, prompt int) (steps, rejected int) {
	t.Helper()
	x.Begin(t, ids[:prompt]...)
	tree := method.NewTree(64, vocabulary)
	for at := prompt; at < len(ids); steps++ {
		tree.Reset(64, method.NewRates(1))
		if err := x.Drafter.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		node, from := method.Root, at
		for at < len(ids) {
			child, ok := tree.Child(node, ids[at])
			at++
			if !ok {
				break
			}
			node = child
		}
		rejected += max(0, tree.Len()-(at-from))
		x.Add(ids[from:at]...)
	}
	return steps, rejected
}

const tale = "Once upon a time, the little dog said: \"Grüße, 世界!\" 😀😀\n\n\tfunc the()  {\n\treturn 12345 }\n  The dog   was happy. "

// TestThroughText drafts by a model that knows the answer: its drafts are nearly always accepted, in whatever tokens,
// and take far fewer steps than there are tokens.
func TestThroughText(t *testing.T) {
	common := []string{" the", " little", " dog", " time", "Once", " upon", " was", "return", "世", " 😀"}
	finer := []string{" th", " li", "tt", " do", "On", "ce", "up", " re"}
	for _, c := range []struct {
		name          string
		target, draft *tokenizer.Tokenizer
	}{
		{"pieces for bytes", growtest.Vocabulary(t, "gpt2", append(growtest.Filler("x"), common...)...), growtest.Vocabulary(t, "llama", append(growtest.Filler("y"), common...)...)},
		{"bytes for pieces", growtest.Vocabulary(t, "llama", append(growtest.Filler("x"), common...)...), growtest.Vocabulary(t, "gpt2", append(growtest.Filler("y"), common...)...)},
		{"coarse for fine", growtest.Vocabulary(t, "gpt2", append(growtest.Filler("x"), finer...)...), growtest.Vocabulary(t, "gpt2", append(growtest.Filler("y"), common...)...)},
		{"fine for coarse", growtest.Vocabulary(t, "llama", append(growtest.Filler("x"), common...)...), growtest.Vocabulary(t, "llama", append(growtest.Filler("y"), finer...)...)},
		{"only bytes", growtest.Vocabulary(t, "llama", growtest.Filler("x")...), growtest.Vocabulary(t, "gpt2", growtest.Filler("y")...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, text := range []string{tale, strings.Repeat(tale, 5), "世界世界世界世界世界世界世界世界世界世界世界世界", strings.Repeat("thethe the", 20), "   \n\n  \n "} {
				ids, err := c.target.Encode(nil, text, tokenizer.Options{Special: true})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, c.target.EOS())
				_, x, s := openRetokenize(t, c.target, c.draft, text, 4096)
				written, err := c.draft.Encode(nil, text, tokenizer.Options{Special: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, prompt := range []int{1, 7, len(ids) / 2} {
					s.Ran = nil
					prompt = min(prompt, len(ids)-1)
					steps, rejected := rounds(t, x, c.target.Size(), ids, prompt)
					most := max(3, (len(ids)-prompt)/2)
					if steps > most || rejected > len(ids)/8 {
						t.Errorf("%.20q, %d tokens of %d: %d steps, %d drafts rejected", text, len(ids)-prompt, len(ids), steps, rejected)
					}
					if most := 3*len(written) + 2*steps + 8; len(s.Ran) > most {
						t.Errorf("%.20q: %d rows for %d tokens", text, len(s.Ran), len(written))
					}
				}
			}
		})
	}
}

// TestThroughTextRandom extends texts by random tokens of the target, which no one would write so: nothing fails, and
// the branch's text is the same in the draft model's tokens.
func TestThroughTextRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	bytes, pieces := growtest.Vocabulary(t, "gpt2", append(growtest.Filler("x"), " the", "世")...), growtest.Vocabulary(t, "llama", append(growtest.Filler("y"), " the", "世")...)
	for _, pair := range [][2]*tokenizer.Tokenizer{{bytes, pieces}, {pieces, bytes}} {
		target := pair[0]
		for range 20 {
			d, x, s := openRetokenize(t, target, pair[1], "", 200)
			s.Window = 1 + rng.IntN(30)
			tree := method.NewTree(64, target.Size())
			x.Begin(t)
			for range 30 {
				tree.Reset(64, method.NewRates(1))
				if err := x.Drafter.Draft(t.Context(), tree); err != nil {
					t.Fatal(err)
				}
				var more []token.ID
				for range rng.IntN(4) {
					more = append(more, token.ID(rng.IntN(target.Size()+2))) // some of them padding
				}
				x.Add(more...)
				ids := x.IDs()
				if got := d.own.ids; len(d.own.ends) != len(got) || len(got) > d.own.lead && int(d.own.ends[len(got)-1]) != len(d.bytes) {
					t.Fatalf("%v: %v end at %v of %d", ids, got, d.own.ends, len(d.bytes))
				}
				text, err := pair[1].Decode(d.own.ids[d.own.lead:], true)
				if err != nil || text != string(d.bytes) {
					t.Fatalf("%v: the draft model reads %q, %v, of %q", ids, text, err, d.bytes)
				}
			}
		}
	}
}

// TestNoDrafts: a text that the draft model cannot write or has no room for ends drafting, and another one goes on.
func TestNoDrafts(t *testing.T) {
	target := growtest.Vocabulary(t, "gpt2", growtest.Filler("x")...)
	encode := func(text string) []token.ID {
		ids, err := target.Encode(nil, text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	_, x, _ := openRetokenize(t, target, growtest.Vocabulary(t, "ascii", append(growtest.Filler("y"), "the end ")...), "the end the end é the end", 20)
	tree := method.NewTree(64, target.Size())
	expect := func(what string, some bool) {
		t.Helper()
		tree.Reset(64, method.NewRates(1))
		if err := x.Drafter.Draft(t.Context(), tree); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if tree.Len() > 0 != some {
			t.Errorf("%s: %d drafts", what, tree.Len())
		}
	}
	begin := func(text string) { x.Begin(t, encode(text)...) }
	begin("the end ")
	expect("a text", true)
	expect("nothing was added", true)
	x.Add(encode("the end \xc3")...)
	expect("it cannot be written", false)
	x.Add(encode("\xa9 th")...)
	expect("nor can this", false)
	begin("the end ")
	expect("another text", true)
	x.Add(encode(strings.Repeat("the end ", 30))...)
	expect("behind the context", false)
	begin("")
	expect("an empty text, and nothing that begins it", false)
}

// TestRoundsAllocate bounds the allocations of a round: they do not grow with the text.
func TestRoundsAllocate(t *testing.T) {
	target, draft := growtest.Vocabulary(t, "gpt2", append(growtest.Filler("x"), " the")...), growtest.Vocabulary(t, "llama", append(growtest.Filler("y"), " the")...)
	per := func(repeats int) float64 {
		text := strings.Repeat(tale, repeats)
		ids, err := target.Encode(nil, text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, x, _ := openRetokenize(t, target, draft, "", 1<<20)
		x.Begin(t, ids...)
		d.bytes, d.own.ids, d.own.ends = slices.Grow(d.bytes, 1000), slices.Grow(d.own.ids, 1000), slices.Grow(d.own.ends, 1000)
		d.target.ids, d.target.ends = slices.Grow(d.target.ids, 1000), slices.Grow(d.target.ends, 1000)
		i := 0
		return testing.AllocsPerRun(50, func() { d.extend(ids[i : i+1]); i++ })
	}
	if short, long := per(1), per(100); short > 24 || long > short+2 {
		t.Errorf("%v allocations a token, %v in a long text", short, long)
	}
}
