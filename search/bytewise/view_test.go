package bytewise

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// toy returns a tokenizer whose last token ends a text.
func toy(tb testing.TB, v tokenizer.Vocab) *tokenizer.Tokenizer {
	tb.Helper()
	v.BOS, v.EOT, v.EOM, v.SEP, v.FIM = token.None, token.None, token.None, token.None, tokenizer.NoFIM
	if v.UNK = token.None; v.Model == "t5" {
		v.UNK = 0
	}
	v.Tokens = append(v.Tokens, "</s>")
	v.Types = make([]int, len(v.Tokens))
	for i := range v.Types {
		v.Types[i] = int(tokenizer.Normal)
		if v.Tokens[i] == "<unk>" {
			v.Types[i] = int(tokenizer.Unknown)
		}
		if v.Model != "gpt2" {
			v.Scores = append(v.Scores, -float32(1+(i*7)%5))
		}
	}
	v.EOS = token.ID(len(v.Tokens) - 1)
	v.Types[v.EOS] = int(tokenizer.Control)
	t, err := tokenizer.New(v)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// toys are small vocabularies of each kind.
func toys(tb testing.TB) map[string]*tokenizer.Tokenizer {
	return map[string]*tokenizer.Tokenizer{
		"card":    toy(tb, tokenizer.Vocab{Model: "gpt2", Pre: "gpt-2", Tokens: []string{"a", "b", "ab"}, Merges: []string{"a b"}}),
		"gpt-2":   toy(tb, tokenizer.Vocab{Model: "gpt2", Pre: "gpt-2", Tokens: []string{"a", "b", "Ġ", "Ġa", "ab", "Ġab", "ĠĠ", "aba", "1"}, Merges: []string{"Ġ a", "a b", "Ġa b", "Ġ Ġ", "ab a"}}),
		"llama-3": toy(tb, tokenizer.Vocab{Model: "gpt2", Pre: "llama-bpe", Tokens: []string{"a", ")", "ĉ", "ĉĉ", "ĉa", "1", "11", "ĉĉĉ", "1111"}, Merges: []string{"ĉ ĉ", "ĉ a", "1 1", "ĉĉ ĉ"}}),
		"cut":     toy(tb, tokenizer.Vocab{Model: "gpt2", Pre: "llama-bpe", Tokens: []string{"a", "é", "Ã", "©", "aÃ", "a©"}, Merges: []string{"a Ã", "Ã ©"}}),
		"o200k":   toy(tb, tokenizer.Vocab{Model: "gpt2", Pre: "gpt-4o", Tokens: []string{"a", "s", "'", "'s", "as", "s'", ")"}, Merges: []string{"s '", "' s", "a s"}}),
		"crossed": toy(tb, tokenizer.Vocab{Model: "t5", Tokens: []string{"<unk>", "a", ")", "a)", ")a", "a)a", "a)a)", "))"}}),
		"pieces":  toy(tb, tokenizer.Vocab{Model: "llama", AddSpacePrefix: true, Tokens: []string{"a", "b", "▁", "▁a", "ab", "ba", "bab", "▁ab"}}),
		"unigram": toy(tb, tokenizer.Vocab{Model: "t5", AddSpacePrefix: true, Tokens: []string{"<unk>", "a", "b", "▁", "▁a", "ab", "ba", "bab", "aa"}}),
	}
}

// random is a model whose probabilities are a hash of the path.
type random struct {
	size, asked int
}

// Probs implements [Model].
func (r *random) Probs(_ context.Context, paths [][]token.ID) (all [][]float64, err error) {
	r.asked += len(paths)
	for _, path := range paths {
		all = append(all, r.row(path))
	}
	return all, nil
}

func (r *random) row(path []token.ID) []float64 {
	h := fnv.New64a()
	for _, id := range path {
		h.Write([]byte{byte(id), byte(id >> 8)})
	}
	rng, sum := rand.New(rand.NewPCG(h.Sum64(), 1)), 0.0
	p := make([]float64, r.size)
	for i := range p {
		p[i] = math.Pow(rng.Float64(), 3)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// A reference is the definition: it enumerates sequences of tokens, and tries every text of up to three bytes behind one.
type reference struct {
	t     *tokenizer.Tokenizer
	m     interface{ row([]token.ID) []float64 }
	any   bool
	alpha []byte
	known map[string]bool
}

func newReference(t *tokenizer.Tokenizer, m interface{ row([]token.ID) []float64 }) *reference {
	r := &reference{t: t, m: m, known: map[string]bool{}}
	for id := range token.ID(t.Size()) {
		piece, _ := t.AppendPiece(nil, id, false)
		for _, b := range piece {
			if !bytes.Contains(r.alpha, []byte{b}) && t.Type(id) == tokenizer.Normal {
				r.alpha = append(r.alpha, b)
			}
		}
	}
	return r
}

func (r *reference) spell(ids []token.ID) (text []byte) {
	for _, id := range ids {
		text, _ = r.t.AppendPiece(text, id, false)
	}
	return text
}

func (r *reference) encodes(text []byte, ids []token.ID, whole bool) bool {
	got, err := r.t.Encode(nil, string(text), tokenizer.Options{Inside: true, Plain: true})
	return err == nil && len(got) >= len(ids) && slices.Equal(got[:len(ids)], ids) && (!whole || len(got) == len(ids))
}

// valid reports whether tokens begin the encoding of a text.
func (r *reference) valid(ids []token.ID) bool {
	key := string(r.spell(ids)) + "|"
	for _, id := range ids {
		key += string(rune(id))
	}
	if known, ok := r.known[key]; ok {
		return known
	}
	text := r.spell(ids)
	found := r.encodes(text, ids, true)
	var try func(behind []byte)
	try = func(behind []byte) {
		found = found || len(behind) > 0 && r.encodes(append(text[:len(text):len(text)], behind...), ids, false)
		for i := 0; len(behind) < 3 && i < len(r.alpha) && !found; i++ {
			try(append(behind[:len(behind):len(behind)], r.alpha[i]))
		}
	}
	try(nil)
	r.known[key] = found
	return found
}

// p returns the probability of the covers of a text, and of the sequences that are the text's encoding and end there.
func (r *reference) p(text []byte) (covers, ends float64) {
	var walk func(ids []token.ID, n int, p float64)
	walk = func(ids []token.ID, n int, p float64) {
		row := r.m.row(ids)
		if n == len(text) {
			covers += p
			if r.any || r.encodes(text, ids, true) {
				ends += p * row[r.t.EOS()]
			}
			return
		}
		for id := range token.ID(r.t.Size()) {
			piece, _ := r.t.AppendPiece(nil, id, false)
			next := append(ids[:len(ids):len(ids)], id)
			rest := text[n:]
			switch {
			case len(piece) == 0 || r.t.Type(id) != tokenizer.Normal:
			case bytes.HasPrefix(piece, rest) && len(piece) > len(rest) && (r.any || r.valid(next)):
				covers += p * row[id]
			case bytes.HasPrefix(rest, piece) && (r.any || r.valid(next)):
				walk(next, n+len(piece), p*row[id])
			}
		}
	}
	walk(nil, 0, 1)
	return covers, ends
}

// distribution is the distribution behind a text.
func (r *reference) law(text []byte) (l Distribution) {
	all, ends := r.p(text)
	l.P[End] = ends
	for _, b := range r.alpha {
		l.P[b], _ = r.p(append(text[:len(text):len(text)], b))
	}
	_ = l.scale(all)
	return l
}

func differ(a, b Distribution) (most float64) {
	for i := range a.P {
		most = max(most, math.Abs(a.P[i]-b.P[i]))
	}
	return max(most, math.Abs(a.Kept-b.Kept))
}

// TestBruteForce compares distributions and probabilities with the definition, on every text of some bytes in vocabularies of every kind.
func TestBruteForce(t *testing.T) {
	for name, text := range toys(t) {
		t.Run(name, func(t *testing.T) {
			m := &random{size: text.Size()}
			v, err := New(text, text.Size())
			if err != nil {
				t.Fatal(err)
			}
			ref, compared := newReference(text, m), 0
			var walk func(w *View)
			walk = func(w *View) {
				all, _ := ref.p(w.Text())
				log, err := w.LogProb(t.Context())
				if err != nil || math.Abs(math.Exp(log)/all-1) > 1e-12 {
					t.Fatalf("%q has probability %v, want %v (%v)", w.Text(), math.Exp(log), all, err)
				}
				law, err := w.Next(t.Context())
				if want := ref.law(w.Text()); err != nil || differ(law, want) > 1e-12 {
					t.Fatalf("behind %q: %v (%v)\ngot  %v\nwant %v", w.Text(), differ(law, want), err, law, want)
				}
				compared++
				for _, b := range ref.alpha {
					f := w.Fork()
					if err := f.Push(b); (err == nil) != (law.P[b] > 0) || err != nil && !errors.Is(err, ErrByte) {
						t.Fatalf("0x%02X behind %q: %v, and the law gives it %v", b, w.Text(), err, law.P[b])
					} else if err == nil && len(f.Text()) < 6 {
						walk(f)
					}
				}
			}
			walk(v.New(m, nil))
			t.Logf("%d texts", compared)
		})
	}
}

// card is the model of the worked example.
type card struct{}

func (c card) row(path []token.ID) []float64 {
	if len(path) == 0 {
		return []float64{.3, .2, .5, 0} // a, b, ab, end
	}
	return []float64{.4, 0, .5, .1}
}

// Probs implements [Model].
func (c card) Probs(_ context.Context, paths [][]token.ID) (all [][]float64, err error) {
	for _, p := range paths {
		all = append(all, c.row(p))
	}
	return all, nil
}

// TestCard has the numbers of the worked example: behind a, the byte b has .6250, where the token a gives it 0.
func TestCard(t *testing.T) {
	text := toys(t)["card"]
	v, err := New(text, text.Size())
	if err != nil {
		t.Fatal(err)
	}
	w := v.New(card{}, nil)
	if err := w.Push('a'); err != nil {
		t.Fatal(err)
	}
	log, err := w.LogProb(t.Context())
	law, err2 := w.Next(t.Context())
	if err := errors.Join(err, err2); err != nil || math.Abs(math.Exp(log)-.8) > 1e-15 {
		t.Fatalf("P(a) = %v (%v)", math.Exp(log), err)
	}
	for symbol, want := range map[int]float64{'b': .6250, 'a': .3375, End: .0375} {
		if math.Abs(law.P[symbol]-want) > 1e-15 {
			t.Errorf("symbol %d: %v, want %v", symbol, law.P[symbol], want)
		}
	}
}

// TestRefused expects tokenizers that change texts to be refused, and bytes that no token holds.
func TestRefused(t *testing.T) {
	words := toy(t, tokenizer.Vocab{Model: "bert", Lowercase: true, Tokens: []string{"▁a", "b", "▁ab", "ba"}})
	folds := toy(t, tokenizer.Vocab{Model: "t5", AddSpacePrefix: true, MergeSpaces: true, Tokens: []string{"<unk>", "a", "b", "▁", "▁a"}})
	for name, text := range map[string]*tokenizer.Tokenizer{"WordPiece": words, "white space": folds} {
		if _, err := New(text, text.Size()); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	text := toys(t)["card"]
	v, err := New(text, text.Size())
	if err != nil {
		t.Fatal(err)
	}
	w := v.New(card{}, nil)
	if err := errors.Join(w.Push('a'), w.Push('b')); err != nil {
		t.Fatal(err)
	}
	if err := w.Push('x'); !errors.Is(err, ErrByte) || string(w.Text()) != "ab" {
		t.Errorf("%v behind %q", err, w.Text())
	}
	if err := w.Push('a'); err != nil {
		t.Errorf("behind a refused byte: %v", err)
	}
}

// TestBeamBruteForce compares a beam that drops nothing with the sum over all sequences of tokens.
func TestBeamBruteForce(t *testing.T) {
	for name, text := range toys(t) {
		t.Run(name, func(t *testing.T) {
			m := &random{size: text.Size()}
			v, err := New(text, text.Size())
			if err != nil {
				t.Fatal(err)
			}
			ref := newReference(text, m)
			ref.any = true
			for i := range 40 {
				rng := rand.New(rand.NewPCG(uint64(i), 2))
				wide, narrow := v.Beam(m, Beam{Width: MaxHeads}), v.Beam(m, Beam{Width: 2, Threshold: .2})
				for range 5 {
					b := ref.alpha[rng.IntN(len(ref.alpha))]
					if err := errors.Join(wide.Push(b), narrow.Push(b)); err != nil {
						t.Fatal(err)
					}
					law, err := wide.Next(t.Context())
					if want := ref.law(wide.Text()); err != nil || differ(law, want) > 1e-12 {
						t.Fatalf("behind %q: %v (%v)", wide.Text(), differ(law, want), err)
					}
					if _, err := narrow.Next(t.Context()); err != nil || len(narrow.heads) > 2 {
						t.Fatalf("behind %q: %d heads (%v)", narrow.Text(), len(narrow.heads), err)
					}
				}
			}
		})
	}
}

// tokenizerOf returns the tokenizer of a model's file.
func tokenizerOf(tb testing.TB, data []byte) *tokenizer.Tokenizer {
	tb.Helper()
	f, err := gguf.Parse(data)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := tokenizer.FromGGUF(f)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}
