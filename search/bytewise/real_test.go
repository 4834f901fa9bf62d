package bytewise

import (
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// published returns the tokenizers of the embedded model and of files beside the checkout.
func published(tb testing.TB) map[string]*tokenizer.Tokenizer {
	all := map[string]*tokenizer.Tokenizer{"gopher": tokenizerOf(tb, gopher.Model())}
	files, _ := filepath.Glob("../../../shared/golden/tokenizers/*.gguf")
	more, _ := filepath.Glob("../../../shared/models/*.gguf")
	for _, path := range append(files, more...) {
		f, err := gguf.Open(path)
		if err != nil {
			tb.Fatal(err)
		}
		text, err := tokenizer.FromGGUF(f)
		if err != nil {
			tb.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".gguf")] = text
		f.Close()
	}
	if len(all) == 1 {
		tb.Log("only the embedded model's tokenizer: ../shared is not there")
	}
	return all
}

// samples are texts with words, numbers, white space of every kind, other scripts, and bytes that are not UTF-8.
func samples(tb testing.TB) []string {
	source, err := fs.ReadFile(os.DirFS("."), "view.go")
	if err != nil {
		tb.Fatal(err)
	}
	return []string{
		string(source[:3000]), "it's the dog's, they'll say; I'M, we've  2,147,483,647 or 3.14159\n\n\n\t\t}\n", "Grüße, 世界! 😀😀 на русском  \t \r\n x",
		"a\xc3b \xe4\xb8 \xf0\x9f\x98 \x80z", "fooBar_baz2(x[i]...)/*  y */ \t\t\tq := 1<<10 &^ 0xFF\n    \n        return",
	}
}

// TestFollows compares verdicts on tokens, by windows, boundaries and what is remembered, with encoding the whole text again.
func TestFollows(t *testing.T) {
	for name, text := range published(t) {
		t.Run(name, func(t *testing.T) {
			v, err := New(text, text.Size())
			if err != nil {
				t.Fatal(err)
			}
			rng, ordinary := rand.New(rand.NewPCG(1, 1)), ordinaryOf(v)
			compared, allowed := 0, 0
			for _, sample := range samples(t) {
				for range 40 {
					from := rng.IntN(len(sample))
					whole := window{text: []byte(sample[from:min(len(sample), from+1+rng.IntN(120))])}
					if whole.ids, err = v.encode(nil, whole.text); err != nil || v.Text(whole.ids) != string(whole.text) {
						continue
					}
					w := v.New(nil, whole.ids)
					for range 60 {
						id := ordinary[rng.IntN(len(ordinary))]
						if rng.IntN(2) == 0 { // one that text is likelier to have there
							if ids, err := v.encode(nil, []byte(sample[rng.IntN(len(sample)):])); err == nil {
								id = ids[0]
							}
						}
						if !v.Ordinary(id) {
							continue
						}
						got, want := w.tree.allows(w.heads[0].n, id), v.follows(whole, id)
						if got != want {
							t.Fatalf("%q and %q: valid is %v, and by the whole text %v", whole.text, v.words.Bytes(id), got, want)
						}
						if compared++; got {
							allowed++
						}
					}
				}
			}
			t.Logf("%d tokens, %d of them valid", compared, allowed)
		})
	}
}

func ordinaryOf(v *Vocabulary) (all []token.ID) {
	for id := range token.ID(v.size) {
		if v.Ordinary(id) {
			all = append(all, id)
		}
	}
	return all
}

// TestSums: with a random model, distributions sum to 1; the probabilities of a text with each symbol behind it sum to what the text keeps; and the probability of
// a whole text is at least that of its tokens.
func TestSums(t *testing.T) {
	for name, text := range published(t) {
		t.Run(name, func(t *testing.T) {
			v, err := New(text, text.Size())
			if err != nil {
				t.Fatal(err)
			}
			m := &random{size: v.size}
			sample := []byte("func (s *Set) Add(\t\t1234 né") // its bytes are checked one after the other
			w := v.New(m, nil)
			for i, b := range sample {
				before, err := w.LogProb(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if i == 10 || i%4 == 0 && v.size < 5000 {
					checkSums(t, w, before)
				}
				if err := w.Push(b); err != nil {
					t.Fatal(err)
				}
			}
			ids, err := v.encode(nil, sample)
			log, err2 := w.LogProb(t.Context())
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			tokens := 0.0
			for i, id := range ids {
				tokens += math.Log(m.row(ids[:i])[id])
			}
			if !(log >= tokens-1e-12) || log > 0 {
				t.Errorf("the text has %v, its tokens %v", log, tokens)
			}
		})
	}
}

// checkSums checks what holds of a distribution, of the probability before and of those of the text with each byte behind it.
func checkSums(t *testing.T, w *View, before float64) {
	law, err := w.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum, behind := 0.0, law.P[End]*law.Kept
	for b, p := range law.P {
		if sum += p; b == End || p == 0 {
			continue
		}
		f := w.Fork()
		if err := f.Push(byte(b)); err != nil {
			t.Fatal(err)
		}
		after, err := f.LogProb(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		behind += math.Exp(after - before)
	}
	if math.Abs(sum-1) > 1e-12 || math.Abs(behind/law.Kept-1) > 1e-9 {
		t.Errorf("behind %q: the law sums to %v, the texts behind to %v of %v", w.Text(), sum, behind, law.Kept)
	}
}
