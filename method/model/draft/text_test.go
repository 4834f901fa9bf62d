package draft

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/forest"
	"grove/method"
	"grove/text/token"
	"grove/text/tokenizer"
)

// scribe is a draft model that knows a text by heart: behind what its text begins with, it says what it would write
// there.
type scribe struct {
	t       *tokenizer.Tokenizer
	text    string // behind it the answer ends
	context int
	rows    int // that were run
	passed  int // tokens that no window holds any more
}

func (s *scribe) Vocabulary() int { return s.t.Size() }
func (s *scribe) Context() int    { return s.context }
func (s *scribe) Chunk() int      { return 16 }
func (s *scribe) Branch() (method.Branch, error) {
	return &scroll{scribe: s, live: map[forest.Node]inked{}}, nil
}

// scroll is a branch of a scribe.
type scroll struct {
	*scribe
	trunk []token.ID
	live  map[forest.Node]inked
	last  forest.Node
}

type inked struct {
	id     token.ID
	parent forest.Node
}

func (b *scroll) path(n forest.Node) []token.ID {
	if n == forest.Trunk {
		return slices.Clone(b.trunk)
	}
	return append(b.path(b.live[n].parent), b.live[n].id)
}

func (b *scroll) Len() int { return len(b.trunk) }

func (b *scroll) Run(_ context.Context, rows []method.BranchRow) (nodes []forest.Node, logits [][]float32, err error) {
	for _, r := range rows {
		if r.After > 0 {
			r.Parent = nodes[r.After-1]
		}
		if _, ok := b.live[r.Parent]; !ok && r.Parent != forest.Trunk || int(r.ID) >= b.t.Size() || r.ID < 0 {
			return nil, nil, errors.New("a row makes no sense")
		}
		b.rows++
		b.last++
		b.live[b.last] = inked{r.ID, r.Parent}
		nodes = append(nodes, b.last)
		path := b.path(b.last)
		if len(path) > b.context {
			return nil, nil, errors.New("behind the context")
		}
		l := make([]float32, b.t.Size())
		l[b.next(path)] = 9
		logits = append(logits, l)
	}
	return nodes, logits, nil
}

// next is what the scribe writes behind a path.
func (b *scroll) next(path []token.ID) token.ID {
	if len(path) > 0 && path[0] == b.t.BOS() {
		path = path[1:]
	}
	said, err := b.t.Decode(path, true)
	rest, ok := strings.CutPrefix(b.text, said)
	if err != nil || !ok {
		return 0
	}
	ids, err := b.t.Encode(nil, rest, tokenizer.Options{Inside: said != ""})
	if err != nil || len(ids) == 0 {
		return b.t.EOS()
	}
	return ids[0]
}

func (b *scroll) Commit(n forest.Node) error {
	if _, ok := b.live[n]; !ok {
		return errors.New("no such node")
	}
	b.trunk = b.path(n)
	clear(b.live) // nothing hangs from what a drafter commits
	return nil
}

func (b *scroll) Drop() error { clear(b.live); return nil }

func (b *scroll) Truncate(n int) error {
	if n > len(b.trunk) || n < 0 {
		return errors.New("the trunk is shorter")
	}
	if n > 0 && n < len(b.trunk)-b.passed {
		return errors.New("a window has passed")
	}
	clear(b.live)
	b.trunk = b.trunk[:n]
	return nil
}

func (b *scroll) Close() error { return nil }

// vocabulary builds a tokenizer whose merges make the words: "llama" is a SentencePiece one, "gpt2" a byte-level one,
// "ascii" one that lacks bytes.
func vocabulary(t testing.TB, model string, words ...string) *tokenizer.Tokenizer {
	t.Helper()
	v := tokenizer.Vocab{
		Model: model, Pre: "gpt-2", BOS: token.None, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM,
	}
	add := func(text string, ty tokenizer.Type) token.ID {
		if i := slices.Index(v.Tokens, text); i >= 0 {
			return token.ID(i)
		}
		v.Tokens, v.Types, v.Scores = append(v.Tokens, text), append(v.Types, int(ty)), append(v.Scores, -float32(len(v.Tokens)))
		return token.ID(len(v.Tokens) - 1)
	}
	if model == "llama" {
		v.UNK, v.BOS, v.EOS = add("<unk>", tokenizer.Unknown), add("<s>", tokenizer.Control), add("</s>", tokenizer.Control)
		v.AddBOS, v.AddSpacePrefix = true, true
		for b := range 256 {
			add(fmt.Sprintf("<0x%02X>", b), tokenizer.Byte)
		}
	} else {
		v.EOS = add("<|endoftext|>", tokenizer.Control)
		for b := range 256 {
			if model == "gpt2" || b < 128 {
				add(letter(byte(b)), tokenizer.Normal)
			}
		}
		v.Model = "gpt2"
	}
	for _, w := range words {
		whole := ""
		for _, c := range []byte(w) {
			if model == "llama" {
				break
			}
			if l := letter(c); whole == "" {
				whole = l
			} else {
				v.Merges = append(v.Merges, whole+" "+l)
				whole += l
				add(whole, tokenizer.Normal)
			}
		}
		if model == "llama" {
			for _, c := range strings.ReplaceAll(w, " ", "▁") {
				whole += string(c)
				add(whole, tokenizer.Normal)
				add(string(c), tokenizer.Normal)
			}
		}
	}
	k, err := tokenizer.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// letter is how byte-level vocabularies write a byte.
func letter(c byte) string {
	n := rune(0x100)
	for o := range int(c) + 1 {
		printed := o >= 33 && o <= 126 || o >= 161 && o <= 255 && o != 173
		if o == int(c) && printed {
			return string(rune(c))
		}
		if !printed && o < int(c) {
			n++
		}
	}
	return string(n)
}

// filler makes vocabularies differ by more than half.
func filler(name string) (words []string) {
	for i := range 300 {
		words = append(words, fmt.Sprintf("%s%c%c", name, 'A'+i/26, 'a'+i%26))
	}
	return words
}

func textModel(t testing.TB, target, draft *tokenizer.Tokenizer, text string, context int) (*textDrafter, *scribe) {
	t.Helper()
	words, err := method.NewVocabMap(target, draft)
	if err != nil {
		t.Fatal(err)
	}
	if words.Way() != method.ThroughText {
		t.Fatal(words)
	}
	s := &scribe{t: draft, text: text, context: context, passed: 1 << 30}
	d, err := newTrees(shapes[0], method.Env{Draft: s, Vocabulary: target.Size(), Words: words}).NewDrafter()
	if err != nil {
		t.Fatal(err)
	}
	return d.(*textDrafter), s
}

// rounds decodes ids behind a prompt, with every guess judged, and returns the steps taken and the guesses that were
// wrong.
func rounds(t testing.TB, d *textDrafter, vocabulary int, ids []token.ID, prompt int) (steps, wrong int) {
	t.Helper()
	if err := d.Begin(method.Text{Prompt: ids[:prompt]}); err != nil {
		t.Fatal(err)
	}
	tree := method.NewTree(64, vocabulary)
	for at := prompt; at < len(ids); steps++ {
		tree.Reset(64, method.NewRates(1))
		if err := d.Draft(t.Context(), tree); err != nil {
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
		wrong += max(0, tree.Len()-(at-from))
		d.Extend(ids[from:at])
	}
	return steps, wrong
}

const tale = "Once upon a time, the little dog said: \"Grüße, 世界!\" 😀😀\n\n\tfunc the()  {\n\treturn 12345 }\n  The dog   was happy. "

// TestThroughText drafts by a model that knows the answer: what it guesses is nearly always right, in whatever
// tokens, and takes far fewer steps than there are tokens.
func TestThroughText(t *testing.T) {
	common := []string{" the", " little", " dog", " time", "Once", " upon", " was", "return", "世", " 😀"}
	finer := []string{" th", " li", "tt", " do", "On", "ce", "up", " re"}
	for _, c := range []struct {
		name          string
		target, draft *tokenizer.Tokenizer
	}{
		{"pieces for bytes", vocabulary(t, "gpt2", append(filler("x"), common...)...), vocabulary(t, "llama", append(filler("y"), common...)...)},
		{"bytes for pieces", vocabulary(t, "llama", append(filler("x"), common...)...), vocabulary(t, "gpt2", append(filler("y"), common...)...)},
		{"coarse for fine", vocabulary(t, "gpt2", append(filler("x"), finer...)...), vocabulary(t, "gpt2", append(filler("y"), common...)...)},
		{"fine for coarse", vocabulary(t, "llama", append(filler("x"), common...)...), vocabulary(t, "llama", append(filler("y"), finer...)...)},
		{"only bytes", vocabulary(t, "llama", filler("x")...), vocabulary(t, "gpt2", filler("y")...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, text := range []string{tale, strings.Repeat(tale, 5), "世界世界世界世界世界世界世界世界世界世界世界世界", strings.Repeat("thethe the", 20), "   \n\n  \n "} {
				ids, err := c.target.Encode(nil, text, tokenizer.Options{Special: true})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, c.target.EOS())
				d, s := textModel(t, c.target, c.draft, text, 4096)
				written, err := c.draft.Encode(nil, text, tokenizer.Options{Special: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, prompt := range []int{1, 7, len(ids) / 2} {
					s.rows = 0
					prompt = min(prompt, len(ids)-1)
					steps, wrong := rounds(t, d, c.target.Size(), ids, prompt)
					most := max(3, (len(ids)-prompt)/2)
					if steps > most || wrong > len(ids)/8 {
						t.Errorf("%.20q, %d tokens of %d: %d steps, %d guesses wrong", text, len(ids)-prompt, len(ids), steps, wrong)
					}
					if most := 3*len(written) + 2*steps + 8; s.rows > most {
						t.Errorf("%.20q: %d rows for %d tokens", text, s.rows, len(written))
					}
				}
			}
		})
	}
}

// TestThroughTextRandom extends texts by random tokens of the target, which no one would write so: nothing fails, and
// the branch holds what the draft model would write.
func TestThroughTextRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	bytes, pieces := vocabulary(t, "gpt2", append(filler("x"), " the", "世")...), vocabulary(t, "llama", append(filler("y"), " the", "世")...)
	for _, pair := range [][2]*tokenizer.Tokenizer{{bytes, pieces}, {pieces, bytes}} {
		target := pair[0]
		for range 20 {
			d, s := textModel(t, target, pair[1], "", 200)
			s.passed = rng.IntN(30)
			var ids []token.ID
			tree := method.NewTree(64, target.Size())
			if err := d.Begin(method.Text{}); err != nil {
				t.Fatal(err)
			}
			for range 30 {
				tree.Reset(64, method.NewRates(1))
				if err := d.Draft(t.Context(), tree); err != nil {
					t.Fatal(err)
				}
				var more []token.ID
				for range rng.IntN(4) {
					more = append(more, token.ID(rng.IntN(target.Size()+2))) // some of them padding
				}
				ids = append(ids, more...)
				d.Extend(more)
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

// TestNoGuesses: a text that the draft model cannot write or has no room for ends drafting, and another one goes on.
func TestNoGuesses(t *testing.T) {
	target := vocabulary(t, "gpt2", filler("x")...)
	encode := func(text string) []token.ID {
		ids, err := target.Encode(nil, text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	d, _ := textModel(t, target, vocabulary(t, "ascii", append(filler("y"), "the end ")...), "the end the end é the end", 20)
	tree := method.NewTree(64, target.Size())
	expect := func(what string, some bool) {
		t.Helper()
		tree.Reset(64, method.NewRates(1))
		if err := d.Draft(t.Context(), tree); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if tree.Len() > 0 != some {
			t.Errorf("%s: %d guesses", what, tree.Len())
		}
	}
	begin := func(text string) {
		if err := d.Begin(method.Text{Prompt: encode(text)}); err != nil {
			t.Fatal(err)
		}
	}
	begin("the end ")
	expect("a text", true)
	expect("nothing was added", true)
	d.Extend(encode("the end \xc3"))
	expect("it cannot be written", false)
	d.Extend(encode("\xa9 th"))
	expect("nor can this", false)
	begin("the end ")
	expect("another text", true)
	d.Extend(encode(strings.Repeat("the end ", 30)))
	expect("behind the context", false)
	begin("")
	expect("an empty text, and nothing that begins it", false)
}

// TestRoundsAllocate bounds the allocations of a round: they do not grow with the text.
func TestRoundsAllocate(t *testing.T) {
	target, draft := vocabulary(t, "gpt2", append(filler("x"), " the")...), vocabulary(t, "llama", append(filler("y"), " the")...)
	per := func(repeats int) float64 {
		text := strings.Repeat(tale, repeats)
		ids, err := target.Encode(nil, text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, _ := textModel(t, target, draft, "", 1<<20)
		if err := d.Begin(method.Text{Prompt: ids}); err != nil {
			t.Fatal(err)
		}
		d.bytes, d.own.ids, d.own.ends = slices.Grow(d.bytes, 1000), slices.Grow(d.own.ids, 1000), slices.Grow(d.own.ends, 1000)
		d.target.ids, d.target.ends = slices.Grow(d.target.ids, 1000), slices.Grow(d.target.ends, 1000)
		i := 0
		return testing.AllocsPerRun(50, func() { d.Extend(ids[i : i+1]); i++ })
	}
	if short, long := per(1), per(100); short > 24 || long > short+2 {
		t.Errorf("%v allocations a token, %v in a long text", short, long)
	}
}
