package sample

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"grove/internal/stat"
	"grove/internal/text/token"
)

func TestTruncationWorkedNumbers(t *testing.T) {
	xtc := func(threshold float32) XTC { return XTC{Probability: 1, Threshold: threshold} }
	both := []Order{TruncateFirst, TemperFirst}
	for _, tt := range []struct {
		name   string
		p      Params
		orders []Order
		want   []float32
	}{
		{"typical 0.2", Params{TypicalP: .2}, both, []float32{0, 1, 0, 0, 0}},
		{"typical 0.5", Params{TypicalP: .5}, both, []float32{.7311, .2689, 0, 0, 0}},
		{"typical 0.8", Params{TypicalP: .8}, both, []float32{.6285, .2312, .1402, 0, 0}},
		{"typical 1", Params{TypicalP: 1}, both, []float32{.5630, .2071, .1256, .0762, .0280}},
		{"typical, at least 3", Params{TypicalP: .2, MinKeep: 3}, both, []float32{.6285, .2312, .1402, 0, 0}},
		{"top-0.5-sigma", Params{TopNSigma: .5}, both, []float32{1, 0, 0, 0, 0}},
		{"top-1-sigma", Params{TopNSigma: 1}, both, []float32{.7311, .2689, 0, 0, 0}},
		{"top-2-sigma", Params{TopNSigma: 2}, both, []float32{.5793, .2131, .1293, .0784, 0}},
		{"XTC 0.1", Params{XTC: xtc(.1)}, both, []float32{0, 0, .5465, .3315, .1220}},
		{"XTC 0.2", Params{XTC: xtc(.2)}, both, []float32{0, .4740, .2875, .1744, .0641}},
		{"XTC 0.3", Params{XTC: xtc(.3)}, both, []float32{.5630, .2071, .1256, .0762, .0280}},
		{"XTC 0.51", Params{XTC: xtc(.51)}, both, []float32{.5630, .2071, .1256, .0762, .0280}},
		{"XTC would leave 3 of 4", Params{XTC: xtc(.1), MinKeep: 4}, both, []float32{.5630, .2071, .1256, .0762, .0280}},
		{"XTC behind top-k 2 leaves the second", Params{XTC: xtc(.1), TopK: 2}, both, []float32{0, 1, 0, 0, 0}},
		{"dynamic temperature", Params{DynamicTemperature: DynamicTemperature{Range: .5, Exponent: 1}}, both, []float32{.4895, .2199, .1474, .0988, .0444}},
		{"the exponent is 1", Params{DynamicTemperature: DynamicTemperature{Range: .5}}, both, []float32{.4895, .2199, .1474, .0988, .0444}},
		{"dynamic temperature of one token", Params{TopK: 1, DynamicTemperature: DynamicTemperature{Range: .5}}, both, []float32{1, 0, 0, 0, 0}},
		{"top-p 0.8, at least 4", Params{TopP: .8, MinKeep: 4}, both, []float32{.5793, .2131, .1293, .0784, 0}},
		{"min-p 0.25, at least 3", Params{MinP: .25, MinKeep: 3}, both, []float32{.6285, .2312, .1402, 0, 0}},
		// Behind temperature 2 c holds 0.1769, and nothing but a reaches 0.3.
		{"XTC sees the model's probabilities", Params{Temperature: 2, XTC: xtc(.15)}, both[:1], []float32{0, .3632, .2829, .2203, .1336}},
		{"XTC sees tempered probabilities", Params{Temperature: 2, XTC: xtc(.15)}, both[1:], []float32{0, 0, .4442, .3459, .2098}},
		{"top-n-sigma does not see the temperature", Params{Temperature: 2, TopNSigma: 1}, both, []float32{.6225, .3775, 0, 0, 0}},
	} {
		for _, tt.p.Order = range tt.orders {
			if tt.p.Temperature == 0 {
				tt.p.Temperature = 1
			}
			near(t, fmt.Sprintf("%s, %v", tt.name, tt.p.Order), distribution(t, tt.p, five), tt.want, 6e-5)
		}
	}
}

// TestSigmaOfMaskedTokens: masked tokens count for nothing.
func TestSigmaOfMaskedTokens(t *testing.T) {
	masked := append(slices.Clone(five), -inf, -inf, -inf)
	near(t, "top-1-sigma", distribution(t, Params{Temperature: 1, TopNSigma: 1}, masked), []float32{.7311, .2689, 0, 0, 0, 0, 0, 0}, 6e-5)
}

// TestGeneralIsFused runs what the fused path can do through the stages.
func TestGeneralIsFused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.OneOf(rapid.Float32Range(-8, 8), rapid.SampledFrom([]float32{-inf, 0, 1})), 1, 60).Draw(t, "logits")
		if slices.Max(logits) == -inf {
			t.Skip("all masked")
		}
		p := Params{
			Temperature: rapid.Float32Range(.2, 4).Draw(t, "temperature"),
			TopK:        rapid.SampledFrom([]int{0, 1, 2, 5, 30}).Draw(t, "top-k"),
			TopP:        rapid.SampledFrom([]float32{0, .1, .5, .9, .99, 1}).Draw(t, "top-p"),
			MinP:        rapid.SampledFrom([]float32{0, .01, .1, .5, 1}).Draw(t, "min-p"),
			Order:       rapid.SampledFrom([]Order{TruncateFirst, TemperFirst}).Draw(t, "order"),
			Seed:        rapid.Uint64().Draw(t, "seed"),
		}
		fused, err1 := newSampler(p, len(logits))
		staged, err2 := newSampler(p, len(logits))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		staged.general, staged.keys = true, make([]uint64, 0, len(logits))
		top := slices.Max(logits)
		kept, scale := staged.truncate(row{logits: logits}, top, lseOf(logits))
		n := len(kept)
		if scale != fused.invT {
			t.Fatalf("scale %v, the fused path's is %v", scale, fused.invT)
		}
		want := len(naive(Params{}, logits))
		if fused.truncates() {
			kept, _ := fused.truncate(row{logits: logits}, top, lseOf(logits))
			want = len(kept)
		}
		if n != want {
			if borderline(p, logits, n) && borderline(p, logits, want) {
				return
			}
			t.Fatalf("%d tokens kept, the fused path keeps %d", n, want)
		}
		for index := range 5 {
			a, err1 := fused.sample(row{logits: logits, index: index})
			b, err2 := staged.sample(row{logits: logits, index: index})
			if a.ID != b.ID || err1 != nil || err2 != nil {
				t.Fatalf("index %d: %v, %v; the fused path draws %v, %v", index, b, err2, a, err1)
			}
		}
	})
}

// everyStage is settings for each stage of the general path and some together.
func everyStage() []Params {
	return []Params{
		{TypicalP: .7}, {TopNSigma: 1.2}, {XTC: XTC{1, .1}}, {XTC: XTC{.4, .1}}, {DynamicTemperature: DynamicTemperature{.9, 2}},
		{TopK: 6, TypicalP: .9, TopP: .95, MinP: .01, XTC: XTC{.5, .2}, DynamicTemperature: DynamicTemperature{.3, 1}, MinKeep: 2},
		{Mirostat: Mirostat{1, 2, .1}}, {Mirostat: Mirostat{2, 2, .1}}, {Mirostat: Mirostat{2, 1, .1}, DynamicTemperature: DynamicTemperature{1.5, 1}},
	}
}

// TestStagedDrawsFollowProbs draws at many indices and compares with the mean of the distributions there, which differ
// by XTC's number.
func TestStagedDrawsFollowProbs(t *testing.T) {
	const draws = 20_000
	logits := []float32{2, 1, .5, 0, -1, -inf, .5, -3}
	for i, p := range everyStage() {
		for _, p.Order = range []Order{TruncateFirst, TemperFirst} {
			p.Temperature, p.Seed = .8, uint64(i)
			c := newChain(t, Settings{Params: p}, len(logits))
			counts, want, dist := make([]float64, len(logits)), make([]float64, len(logits)), make([]float64, len(logits))
			for index := range draws {
				got, err := c.Draw(0, logits, index)
				if err2 := c.Probs(dist, 0, logits, index); err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				if dist[got.ID] == 0 {
					t.Fatalf("%+v: token %d has probability 0 and was drawn", p, got.ID)
				}
				counts[got.ID]++
				for id, q := range dist {
					want[id] += q
				}
			}
			if err := stat.ChiSquare(counts, want); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
	}
}

// TestXTCHappensAsOften counts the rows where the likeliest token is excluded.
func TestXTCHappensAsOften(t *testing.T) {
	const rows, probability = 10_000, .3
	c := newChain(t, Settings{Params: Params{Temperature: 1, XTC: XTC{probability, .1}}}, 5)
	dist, n := make([]float64, 5), 0.0
	for index := range rows {
		if err := c.Probs(dist, 0, five, index); err != nil {
			t.Fatal(err)
		}
		if dist[0] == 0 {
			n++
		}
	}
	if sigma := math.Sqrt(rows * probability * (1 - probability)); math.Abs(n-rows*probability) > 4*sigma {
		t.Errorf("the likeliest token is excluded in %v of %d rows, want %v of them", n, rows, probability)
	}
}

// TestXTCLeavesAnEnd: the tokens that end the text are not all excluded.
func TestXTCLeavesAnEnd(t *testing.T) {
	for _, tt := range []struct {
		ends []token.ID
		want []float32
	}{
		{nil, []float32{0, 0, .5465, .3315, .1220}},
		{[]token.ID{0}, []float32{.7101, 0, .1584, .0961, .0354}},
		{[]token.ID{1}, []float32{0, .4740, .2875, .1744, .0641}},
		{[]token.ID{0, 1}, []float32{.7101, 0, .1584, .0961, .0354}},
		{[]token.ID{0, 4}, []float32{0, 0, .5465, .3315, .1220}},
	} {
		c := newChain(t, Settings{Params: Params{Temperature: 1, XTC: XTC{1, .1}}, Penalties: Penalties{Ends: tt.ends}}, 5)
		near(t, fmt.Sprintf("ends %v", tt.ends), probsOf(t, c, 0, five), tt.want, 6e-5)
	}
}

// TestXTCBorders expects tokens that are exactly as likely as the threshold to count, and the tokens that must be left to
// be left.
func TestXTCBorders(t *testing.T) {
	four := []float32{0, 0, 0, 0}
	for _, c := range []struct {
		name string
		p    Params
		want int // tokens that are kept
	}{
		{"as likely as the threshold", Params{XTC: XTC{1, 0.25}}, 1},
		{"less likely", Params{XTC: XTC{1, math.Nextafter32(0.25, 1)}}, 4},
		{"one is left", Params{XTC: XTC{1, 0.25}, MinKeep: 1}, 1},
		{"two must be left", Params{XTC: XTC{1, 0.25}, MinKeep: 2}, 4},
	} {
		c.p.Temperature = 1
		kept := 0
		for _, q := range distribution(t, c.p, four) {
			if q > 0 {
				kept++
			}
		}
		if kept != c.want {
			t.Errorf("%s: %d tokens are kept, want %d", c.name, kept, c.want)
		}
	}
}

// TestMirostatBorder expects tokens whose surprise is exactly the limit to be kept: the first limit is twice tau.
func TestMirostatBorder(t *testing.T) {
	for _, c := range []struct {
		tau  float32
		want int // of four equal tokens, with a surprise of 2 bits each
	}{{1, 4}, {0.99, 1}} {
		kept := 0
		for _, q := range distribution(t, Params{Temperature: 1, Mirostat: Mirostat{2, c.tau, 0.1}}, []float32{0, 0, 0, 0}) {
			if q > 0 {
				kept++
			}
		}
		if kept != c.want {
			t.Errorf("tau %v: %d tokens are kept, want %d", c.tau, kept, c.want)
		}
	}
}

// TestForkLeavesAnEnd expects a fork to leave a token that ends the text as its origin does.
func TestForkLeavesAnEnd(t *testing.T) {
	c := newChain(t, Settings{Params: Params{Temperature: 1, XTC: XTC{1, .1}}, Penalties: Penalties{Ends: []token.ID{0}}}, 5)
	if want, got := probsOf(t, c, 0, five), probsOf(t, c.Fork(), 0, five); !slices.Equal(got, want) || got[0] == 0 {
		t.Errorf("a fork draws by %v, its origin by %v", got, want)
	}
}

// TestStagesKeepATokenAndResurrectNone: some token stays whatever the settings, never a masked one.
func TestStagesKeepATokenAndResurrectNone(t *testing.T) {
	unit := rapid.Float32Range(0, 1)
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.OneOf(rapid.Float32Range(-8, 8), rapid.SampledFrom([]float32{-inf, 0, 300, -300, math.MaxFloat32, -math.MaxFloat32})), 1, 40).Draw(t, "logits")
		p := Params{
			Temperature: rapid.SampledFrom([]float32{0, 1e-9, .5, 1, 3, 1e30}).Draw(t, "temperature"), TopK: rapid.IntRange(0, 9).Draw(t, "top-k"),
			TopP: unit.Draw(t, "top-p"), MinP: unit.Draw(t, "min-p"), MinKeep: rapid.IntRange(0, 4).Draw(t, "min-keep"),
			DynamicTemperature: DynamicTemperature{rapid.Float32Range(0, 2).Draw(t, "range"), rapid.Float32Range(0, 3).Draw(t, "exponent")},
			Order:              rapid.SampledFrom([]Order{TruncateFirst, TemperFirst}).Draw(t, "order"),
		}
		if v := rapid.IntRange(0, 2).Draw(t, "mirostat"); v > 0 {
			p.Mirostat, p.MinKeep = Mirostat{v, rapid.Float32Range(.01, 32).Draw(t, "tau"), unit.Draw(t, "eta")}, 0
		} else {
			p.TypicalP, p.TopNSigma = unit.Draw(t, "typical"), rapid.Float32Range(0, 3).Draw(t, "sigma")
			p.XTC = XTC{unit.Draw(t, "XTC"), unit.Draw(t, "threshold")}
		}
		c, err := NewChain(Settings{Params: p}, len(logits))
		if err != nil {
			t.Fatal(err)
		}
		dist, s := make([]float64, len(logits)), State(0)
		for index := range 3 {
			got, err := c.Draw(s, logits, index)
			if slices.Max(logits) == -inf {
				if err == nil {
					t.Fatalf("drew %v of masked tokens", got)
				}
				return
			}
			if err := c.Probs(dist, s, logits, index); err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for id, q := range dist {
				if sum += q; !(q >= 0) || q > 0 && logits[id] == -inf {
					t.Fatalf("token %d of %v has probability %v", id, logits, q)
				}
			}
			if err != nil || logits[got.ID] == -inf || math.Abs(sum-1) > 1e-6 {
				t.Fatalf("drew %v, %v; probabilities sum to %v", got, err, sum)
			}
			s = c.Next(s, got.ID)
			if mu := c.mu(s); math.IsNaN(mu) || math.IsInf(mu, 0) {
				t.Fatalf("mirostat's limit is %v", mu)
			}
		}
	})
}

func TestMirostatWorkedNumbers(t *testing.T) {
	at := func(version int, mu float64) *Chain {
		c := newChain(t, Settings{Params: Params{Temperature: 1, Mirostat: Mirostat{version, 3, .1}}}, 5)
		if c.nodes[0].mu != 6 {
			t.Fatalf("the limit begins at %v, want twice tau", c.nodes[0].mu)
		}
		c.nodes[0].mu = mu
		return c
	}
	c := at(2, 3.1)
	before := c.Next(0, 1) // a draft, which has no limit of its own yet
	near(t, "version 2", probsOf(t, c, 0, five), []float32{.6285, .2312, .1402, 0, 0}, 6e-5)
	for id, want := range []float64{3.3330, 3.1887, 3.1166, 3.1, 3.1} {
		if got := c.mu(c.Next(0, token.ID(id))); math.Abs(got-want) > 1e-4 {
			t.Errorf("the limit behind token %d is %v, want %v", id, got, want)
		}
	}
	if got := c.mu(before); math.Abs(got-3.1887) > 1e-4 {
		t.Errorf("the limit behind a draft that was there before is %v", got)
	}
	fork := c.Fork()
	if got := fork.mu(fork.Next(0, 0)); math.Abs(got-3.3330) > 1e-4 {
		t.Errorf("the limit behind token 0 is %v in a fork", got)
	}
	if c.Keep(before); math.Abs(c.mu(0)-3.1887) > 1e-4 {
		t.Errorf("the limit is %v behind Keep", c.mu(0))
	}
	if c.Append([]token.ID{1}, false); math.Abs(c.mu(0)-3.1887) > 1e-4 {
		t.Errorf("the limit is %v behind a token that was not drawn", c.mu(0))
	}
	if c.Append(nil, true); c.mu(0) != 6 {
		t.Errorf("the limit is %v behind a further prompt", c.mu(0))
	}
	for mu, want := range map[float64]int{2: 2, 4: 5, 1: 1} {
		n := 0
		for _, q := range probsOf(t, at(1, mu), 0, five) {
			if q > 0 {
				n++
			}
		}
		if n != want {
			t.Errorf("version 1 keeps %d tokens at %v bits, want %d", n, mu, want)
		}
	}
}

// TestDraftsChangeNothing generates a text by a toy model plainly, and with trees of drafts that are verified by the
// match rule: the rows of all nodes are drawn from, in any order of the tree's, and the text walks to the child drawn.
func TestDraftsChangeNothing(t *testing.T) {
	const vocab, n = 12, 200
	model := func(text []token.ID) []float32 { // of the last two tokens
		seed := uint64(0)
		for _, id := range text[max(0, len(text)-2):] {
			seed = seed*vocab + uint64(id) + 1
		}
		return noise(vocab, seed)
	}
	prompt := []token.ID{1, 2, 3, 1, 2}
	pen := Penalties{Repeat: 1.2, RepeatWindow: 9, Presence: .1, MinTokens: 30, Ends: []token.ID{7}, Window: -1,
		DRY: DRY{Multiplier: .8, Base: 1.75, AllowedLength: 2, Window: -1}}
	think := Thinking{Budget: 5, Begin: []token.ID{4}, End: []token.ID{5, 6}}
	for i, p := range everyStage() {
		p.Temperature, p.Seed = .9, uint64(i)
		s := Settings{Params: p, Penalties: pen, Thinking: think, SampleIndex: 3}
		plain := newChain(t, s, vocab)
		plain.Begin(prompt)
		text := slices.Clone(prompt)
		var want []Token
		for len(want) < n {
			got, err := plain.Draw(0, model(text), len(text))
			if err != nil {
				t.Fatal(err)
			}
			want, text = append(want, got), append(text, got.ID)
			plain.Keep(plain.Next(0, got.ID))
		}
		c := newChain(t, s, vocab)
		c.Begin(prompt)
		at := 0
		for round := uint64(0); at < n; round++ {
			// A tree: the next tokens of the text, with others beside each.
			states, texts := []State{0}, [][]token.ID{text[:len(prompt)+at]}
			for i, d := range noise(6, round+1000) {
				parent := i * int(round%3) / 2
				parent = min(parent, len(states)-1)
				id := token.ID(int(math.Abs(float64(d))*1000) % vocab)
				if next := len(texts[parent]); d > 0 && next < len(text) {
					id = text[next]
				}
				states = append(states, c.Next(states[parent], id))
				texts = append(texts, append(slices.Clone(texts[parent]), id))
			}
			for i := range states { // what others ask of the nodes leaves no trace
				c.Process(states[len(states)-1-i], model(texts[len(states)-1-i]))
			}
			for node := 0; ; {
				got, err := c.Draw(states[node], model(texts[node]), len(texts[node]))
				if err != nil || got != want[at] {
					t.Fatalf("%+v: token %d is %v, %v, want %v", p, at, got, err, want[at])
				}
				at++
				child := c.Next(states[node], got.ID)
				if node = slices.Index(states, child); node < 0 || at == n {
					c.Keep(child)
					break
				}
			}
		}
	}
}

func BenchmarkStages(b *testing.B) {
	logits := noise(128<<10, 5)
	for _, tt := range []struct {
		name string
		p    Params
	}{
		{"typical", Params{TypicalP: .9}}, {"min-p,xtc", Params{MinP: .05, XTC: XTC{.5, .1}}}, {"top-k=40,typical,xtc", Params{TopK: 40, TypicalP: .9, XTC: XTC{.5, .1}}},
		{"mirostat=1", Params{Mirostat: Mirostat{1, 5, .1}}}, {"mirostat=2", Params{Mirostat: Mirostat{2, 5, .1}}},
	} {
		b.Run("vocab=128k/params="+tt.name, func(b *testing.B) {
			tt.p.Temperature = 1
			c := newChain(b, Settings{Params: tt.p}, len(logits))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Draw(0, logits, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
