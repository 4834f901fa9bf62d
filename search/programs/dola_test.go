package programs

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/suite/searchtest"
	"grove/internal/text/token"
	"grove/search"
)

// dolaShares returns the distribution of logits, by its definition.
func dolaShares(logits []float32) (p []float64) {
	sum := 0.0
	for _, l := range logits {
		p = append(p, math.Exp(float64(l)))
		sum += p[len(p)-1]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// kl returns the Kullback-Leibler divergence.
func kl(p, q []float64) (sum float64) {
	for i := range p {
		if p[i] > 0 {
			sum += p[i] * math.Log(p[i]/q[i])
		}
	}
	return sum
}

// dolaReference returns the greedy token of the method by the logits of each number of layers, of rows that ran alone, and of the whole model.
func dolaReference(early map[int][]float32, exits []int, last []float32, alpha float64) token.ID {
	p := dolaShares(last)
	best, most := 0, -1.0
	for _, l := range exits {
		q := dolaShares(early[l])
		m := make([]float64, len(p))
		for i := range m {
			m[i] = (p[i] + q[i]) / 2
		}
		if js := (kl(p, m) + kl(q, m)) / 2; js > most+1e-12 {
			best, most = l, js
		}
	}
	q, top, id := dolaShares(early[best]), slices.Max(p), -1
	for i := range p {
		if p[i] >= alpha*top && (id < 0 || p[i]/q[i] > p[id]/q[id]*(1+1e-9)) {
			id = i
		}
	}
	return token.ID(id)
}

// dolaAlone runs a text one token at a time with rows that stop early, each in a step of its own.
type dolaAlone struct {
	*modeltest.Runner
	seq forest.Seq
}

// after returns the logits behind a token of the text by numbers of layers, and the whole model's, and appends the token.
func (a dolaAlone) after(id token.ID, layers int) (early map[int][]float32, last []float32) {
	early = map[int][]float32{}
	for l := range layers + 1 {
		row := forest.Row{Seq: a.seq, ID: id, To: l, Want: forest.Want{Logits: true}}
		if l == 0 {
			row.Skip = forest.LayerRange(0, layers)
		}
		a.Add(row)
		a.Forward()
		early[l] = slices.Clone(a.Exec.Result(0).Logits)
		a.Drop(a.seq, forest.Trunk)
	}
	n := a.Add(forest.Row{Seq: a.seq, ID: id, Want: forest.Want{Logits: true}})
	a.Forward()
	last = slices.Clone(a.Exec.Result(0).Logits)
	a.Commit(a.seq, n)
	return early, last
}

// TestDolaReference compares the search with one of separate runs of all layers.
func TestDolaReference(t *testing.T) {
	const layers, tokens = 6, 24
	for name, spec := range map[string]modeltest.Spec{"llama": {}, "gemma2": {Arch: "gemma2"}, "recurrent": {Arch: "mamba"}} {
		t.Run(name, func(t *testing.T) {
			spec.Context, spec.Layers = 300, layers
			m := searchtest.Of(t, 2, spec)
			others := 0.0
			for options, d := range map[string]dola{
				"layers=low": {exits: []int{2}, alpha: .1}, "layers=high,alpha=0.3": {exits: []int{3, 5}, alpha: .3}, "layers=0+1+2+3,alpha=0.05": {exits: []int{0, 1, 2, 3}, alpha: .05},
				"layers=4,alpha=1": {exits: []int{4}, alpha: 1},
			} {
				before := m.Engine.Load()
				r, err := m.Run(t, "dola,"+options, 0, search.Problem{MaxTokens: tokens})
				if err != nil {
					t.Fatal(err)
				}
				if now, prompt := m.Engine.Load(), len(searchtest.Prompt); now.Steps-before.Steps > 1+tokens+prompt || name != "recurrent" && now.Steps-before.Steps != 1+tokens || now.Rows-before.Rows > 2*prompt+tokens*(1+len(d.exits)) {
					t.Errorf("%s: %d steps of %d rows", options, now.Steps-before.Steps, now.Rows-before.Rows)
				}
				one := dolaAlone{Runner: modeltest.NewFor(t, m.Model, m.Pool, modeltest.Config{Context: 300})}
				one.seq = one.NewSeq("")
				var early map[int][]float32
				var last []float32
				for _, id := range searchtest.Prompt {
					early, last = one.after(id, layers)
				}
				chain, err := sample.NewChain(sample.Settings{}, len(last))
				if err != nil {
					t.Fatal(err)
				}
				for i, got := range r.Tokens {
					if want := dolaReference(early, d.exits, last, d.alpha); got.ID != want || got.Logprob != chain.Logprob(last, want) {
						t.Fatalf("%s, token %d: %+v, want %d with %v", options, i, got, want, chain.Logprob(last, want))
					}
					early, last = one.after(got.ID, layers)
				}
				others += r.Figures["other_tokens"]
				if len(r.Tokens) != tokens || d.alpha == 1 && r.Figures["other_tokens"] > 0 {
					t.Errorf("%s: %d tokens, %v", options, len(r.Tokens), r.Figures)
				}
			}
			if others == 0 {
				t.Error("the layers change no token")
			}
		})
	}
}

// TestIdentical: where the early layers are all, nothing is contrasted, and the answer is that of plain decoding, greedy or drawn.
func TestIdentical(t *testing.T) {
	m := searchtest.Of(t, 2, modeltest.Spec{Context: 300, Layers: 4})
	for _, temperature := range []float32{0, 1} {
		r, err := m.Run(t, "dola,layers=4", temperature, search.Problem{MaxTokens: 40, Seed: 7})
		if err != nil || r.Figures["contrasted_tokens"] != 0 {
			t.Fatal(r, err)
		}
		p, done := m.Problem(t, temperature, search.Problem{Seed: 7})
		for i, got := range r.Tokens {
			want, err := p.First.Next(t.Context())
			if err != nil || want.Token != got.Token {
				t.Fatalf("temperature %v, token %d: %+v, plainly %+v, %v", temperature, i, got, want, err)
			}
		}
		done()
	}
}

// TestDraws: with a temperature the tokens are drawn from the ratios of the plausible ones.
func TestDraws(t *testing.T) {
	m := searchtest.Of(t, 2, modeltest.Spec{Context: 300, Layers: 4})
	var early, last []float32
	p, done := m.Problem(t, 0, search.Problem{})
	err := p.First.Exits(t.Context(), []int{2}, func(logits [][]float32) { early, last = slices.Clone(logits[0]), slices.Clone(logits[1]) })
	if done(); err != nil {
		t.Fatal(err)
	}
	a, b := dolaShares(last), dolaShares(early)
	want, sum := make([]float64, len(a)), 0.0
	for i := range a {
		if a[i] >= .1*slices.Max(a) {
			want[i] = a[i] / b[i]
			sum += want[i]
		}
	}
	const runs = 600
	counts := make([]float64, len(a))
	for seed := range uint64(runs) {
		r, err := m.Run(t, "dola,layers=2", 1, search.Problem{MaxTokens: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		counts[r.Tokens[0].ID]++
	}
	for i := range want {
		p := want[i] / sum
		if d := math.Abs(counts[i]/runs - p); d > 4*math.Sqrt(p*(1-p)/runs)+1e-9 {
			t.Errorf("token %d is drawn with %v, want %v", i, counts[i]/runs, p)
		}
	}
}

// TestContrast has numbers by hand: of logits [2 1 .5 0 -1] and equal ones early, those within a tenth of the likeliest are plausible, and keep their order.
func TestContrast(t *testing.T) {
	inf := float32(math.Inf(-1))
	last, equal := []float32{2, 1, .5, 0, -1}, make([]float32, 5)
	row := slices.Clone(last)
	dolaContrast(row, equal, last, .1)
	for i, want := range []float64{1.0348, .0348, -.4652, -.9652} { // ln p + ln 5
		if math.Abs(float64(row[i])-want) > 1e-3 {
			t.Errorf("token %d: %v, want %v", i, row[i], want)
		}
	}
	if row[4] != inf { // .0280 is less than a tenth of .5630
		t.Errorf("an implausible token has %v", row[4])
	}
	for _, alpha := range []float64{0, .5, 1} { // the plausible are never none, whatever a constraint leaves
		for allowed := range 5 {
			processed := slices.Repeat([]float32{inf}, 5)
			processed[allowed] = last[allowed]
			row := slices.Clone(last)
			dolaContrast(row, last, processed, alpha)
			if finite := slices.IndexFunc(row, func(v float32) bool { return v > inf }); finite != allowed || row[finite] != 0 {
				t.Errorf("alpha %v: %v, where %d is allowed", alpha, row, allowed)
			}
		}
	}
	if at, differs := farthest(last, [][]float32{last, {1, 1, .5, 0, -1}, {-9, 1, .5, 0, -1}}); at != 2 || !differs {
		t.Errorf("row %d is farthest", at)
	}
	if _, differs := farthest(last, [][]float32{last, slices.Clone(last)}); differs {
		t.Error("equal rows differ")
	}
	if d := dolaDivergence([]float64{1, 0}, []float64{0, 1}); math.Abs(d-math.Ln2) > 1e-12 {
		t.Errorf("the divergence of distributions with nothing in common: %v", d)
	}
}

// TestLayers: the layers of models by their sizes.
func TestLayers(t *testing.T) {
	for _, tt := range []struct {
		part   string
		layers int
		want   string
	}{
		{"low", 32, "[2 4 6 8 10 12 14]"}, {"high", 32, "[16 18 20 22 24 26 28 30]"}, {"low", 80, "[2 4 6 8 10 12 14 16 18]"}, {"high", 80, "[60 62 64 66 68 70 72 74 76 78]"},
		{"low", 4, "[2]"}, {"high", 4, "[2]"}, {"low", 2, "[1]"}, {"high", 2, "[1]"}, {"low", 1, "[0]"}, {"high", 1, "[0]"},
	} {
		if got := fmt.Sprint(dola{part: tt.part}.of(tt.layers)); got != tt.want {
			t.Errorf("%s of %d layers: %s, want %s", tt.part, tt.layers, got, tt.want)
		}
	}
}

// TestDolaContext: the answer ends where the context is full.
func TestDolaContext(t *testing.T) {
	m := searchtest.Of(t, 1, modeltest.Spec{Context: 20})
	r, err := m.Run(t, "dola", 0, search.Problem{})
	if err != nil || len(r.Tokens) != 20-len(searchtest.Prompt) || r.Attempts[0].Ended {
		t.Errorf("%d tokens, %v", len(r.Tokens), err)
	}
}

// TestDolaOpen reads options.
func TestDolaOpen(t *testing.T) {
	p, err := search.Open("dola,layers=0+2+4,alpha=0.2")
	if err != nil || p.Samples() != 1 || fmt.Sprint(p) != "{ [0 2 4] 0.2}" || p.Check(&search.Problem{Layers: 4}) != nil || p.Check(&search.Problem{Layers: 3}) == nil {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"dola,layers=mid", "dola,layers=1+", "dola,layers=-1", "dola,alpha=2", "dola,alpha=NaN", "dola,n=2", "dola,layers=" + fmt.Sprint(slices.Repeat([]int{1}, 40))} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
