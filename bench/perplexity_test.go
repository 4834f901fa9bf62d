package bench

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/tensor"
)

func openGopher(t *testing.T, cache tensor.Type) *Model {
	t.Helper()
	m, err := OpenBytes(gopher.Name, gopher.Model(), Options{Threads: 1, CacheType: cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// source is text that gopher can predict: this file.
func source(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("perplexity_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// directly computes all rows of a chunk and turns them into probabilities by the definition.
func directly(t *testing.T, m *Model, ids []token.ID) [][]float64 {
	t.Helper()
	var p [][]float64
	err := m.engine.Logits(t.Context(), ids, 0, func(row []float32) error {
		sum := 0.0
		q := make([]float64, len(row))
		for i, x := range row {
			q[i] = math.Exp(float64(x))
			sum += q[i]
		}
		for i := range q {
			q[i] /= sum
		}
		p = append(p, q)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// spread2 returns the mean and its standard error in two passes.
func spread2(x []float64) (mean, err float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		err += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(err / float64(len(x)-1) / float64(len(x)))
}

// TestPerplexity holds the report to the definitions, computed slowly from the full distributions.
func TestPerplexity(t *testing.T) {
	m, base := openGopher(t, tensor.Q8_0), openGopher(t, tensor.F32)
	const size, chunks = 48, 3
	text := source(t)
	r, err := m.Perplexity(t.Context(), text, PerplexityOptions{Context: size, Chunks: chunks, Base: base}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(m.file)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode(nil, text, tokenizer.Options{Plain: true, Special: true}) // begins with a token of its own
	if err != nil {
		t.Fatal(err)
	}
	var nll, baseNLL, excess, kl, same []float64
	bytes := 0
	for c := range chunks {
		chunk := append([]token.ID{tok.BOS()}, ids[c*size+1:(c+1)*size]...)
		q, p := directly(t, m, chunk), directly(t, base, chunk)
		for at := size / 2; at < size-1; at++ {
			next := chunk[at+1]
			piece, err := tok.Decode([]token.ID{next}, true)
			if err != nil {
				t.Fatal(err)
			}
			bytes += len(piece)
			nll = append(nll, -math.Log(q[at][next]))
			baseNLL = append(baseNLL, -math.Log(p[at][next]))
			excess = append(excess, math.Log(p[at][next]/q[at][next]))
			sum := 0.0
			for i := range p[at] {
				sum += p[at][i] * math.Log(p[at][i]/q[at][i])
			}
			kl = append(kl, sum)
			agrees := slices.Index(p[at], slices.Max(p[at])) == slices.Index(q[at], slices.Max(q[at]))
			same = append(same, map[bool]float64{true: 1}[agrees])
		}
	}
	if r.Tokens != len(nll) || r.Tokens != chunks*(size/2-1) || r.Bytes != bytes || r.Chunks != chunks || r.Context != size {
		t.Errorf("%d tokens, %d bytes, %d chunks of %d; want %d, %d", r.Tokens, r.Bytes, r.Chunks, r.Context, len(nll), bytes)
	}
	near := func(name string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*max(1e-3, math.Abs(want))) {
			t.Errorf("%s is %.15g, want %.15g", name, got, want)
		}
	}
	mean, dev := spread2(nll)
	near("perplexity", r.Perplexity, math.Exp(mean))
	near("its error", r.PerplexityError, math.Exp(mean)*dev)
	near("bits a byte", r.BitsPerByte, mean/math.Ln2*float64(len(nll))/float64(bytes))
	near("their error", r.BitsPerByteError, dev/math.Ln2*float64(len(nll))/float64(bytes))
	mean, dev = spread2(baseNLL)
	near("base perplexity", r.Base.Perplexity, math.Exp(mean))
	near("its error", r.Base.PerplexityError, math.Exp(mean)*dev)
	mean, dev = spread2(excess)
	near("log ratio", r.Base.LogRatio, mean)
	near("its error", r.Base.LogRatioError, dev)
	mean, dev = spread2(kl)
	near("KL", r.Base.KL, mean)
	near("its error", r.Base.KLError, dev)
	near("largest KL", r.Base.KLMax, slices.Max(kl))
	mean, dev = spread2(same)
	near("agreement", r.Base.Agreement, mean)
	near("its error", r.Base.AgreementError, dev)
	if r.Base.KL <= 0 || r.Base.KLMedian <= 0 || r.Base.KLMedian > r.Base.KL99 || r.Base.KL99 > r.Base.KL999 || r.Base.KL999 > r.Base.KLMax {
		t.Errorf("the KL divergences of a coarser cache make no sense: %+v", r.Base)
	}
}

// TestPerplexityOfItself: a model is no distance from itself, exactly.
func TestPerplexityOfItself(t *testing.T) {
	m, base := openGopher(t, tensor.F16), openGopher(t, tensor.F16)
	r, err := m.Perplexity(t.Context(), source(t), PerplexityOptions{Context: 32, Chunks: 2, Base: base}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Base; b.KL > 1e-15 || b.LogRatio != 0 || b.Agreement != 1 || b.Perplexity != r.Perplexity {
		t.Errorf("a model differs from itself: %+v", b)
	}
}

// TestRowsFrom: rows asked for from an index on have the bits of those asked for from the start.
func TestRowsFrom(t *testing.T) {
	m := openGopher(t, tensor.F16)
	ids := make([]token.ID, 60)
	for i := range ids {
		ids[i] = token.ID(i * 31 % 300)
	}
	collect := func(first int) (out [][]float32) {
		for row, err := range m.rows(t.Context(), ids, first) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, slices.Clone(row))
		}
		return out
	}
	all := collect(0)
	for _, first := range []int{1, 17, 59} {
		if got := collect(first); !slices.EqualFunc(got, all[first:], slices.Equal) {
			t.Errorf("rows from %d on differ", first)
		}
	}
	for range m.rows(t.Context(), ids, 3) {
		break // must leave the sequence closed
	}
	if got := collect(59); len(got) != 1 {
		t.Errorf("%d rows, want 1", len(got))
	}
}

func TestPerplexityRefuses(t *testing.T) {
	m := openGopher(t, tensor.F16)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	long := strings.Repeat("func main() {\n", 100)
	for _, c := range []struct {
		name, text string
		ctx        context.Context
		o          PerplexityOptions
		want       string
	}{
		{"chunk", long, t.Context(), PerplexityOptions{Context: 2}, "it must have at least 3"},
		{"empty", "", t.Context(), PerplexityOptions{}, "the text has 1 tokens, less than one chunk of 256"},
		{"context", long, t.Context(), PerplexityOptions{Context: 300}, "the context is full"},
		{"cancelled", long, ended, PerplexityOptions{Context: 64}, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := m.Perplexity(c.ctx, c.text, c.o, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that holds %q", err, c.want)
			}
		})
	}
}

// TestCutText: every chunk begins with the token that begins a text where the model asks for that.
func TestCutText(t *testing.T) {
	tokens := []string{"<s>", "a", "b", "c"}
	for _, begins := range []bool{false, true} {
		v := tokenizer.Vocab{
			Model: "gpt2", Pre: "gpt-2", Tokens: tokens, Types: []int{int(tokenizer.Control), 1, 1, 1}, Merges: []string{},
			BOS: 0, EOS: token.None, EOT: token.None, EOM: token.None, UNK: token.None, AddBOS: begins,
		}
		tok, err := tokenizer.New(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cutText(tok, "abcabca", PerplexityOptions{Context: 3})
		if err != nil {
			t.Fatal(err)
		}
		want := [][]token.ID{{1, 2, 3}, {1, 2, 3}}
		if begins {
			want = [][]token.ID{{0, 1, 2}, {0, 1, 2}}
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("begins %v: chunks %v, want %v", begins, got, want)
		}
	}
}

func TestScoreFunctions(t *testing.T) {
	if got := stat.LogSumExp([]float32{1000, 1000}); math.Abs(got-1000-math.Ln2) > 1e-12 {
		t.Errorf("logSumExp is %v", got)
	}
	if kl, _ := divergence([]float32{-2000, 0}, []float32{0, 0}, stat.LogSumExp([]float32{0, 0})); math.Abs(kl-math.Ln2) > 1e-12 {
		t.Errorf("the divergence of a coin from certainty is %v, want ln 2", kl)
	}
}
