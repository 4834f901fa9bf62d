package sample

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grove/internal/kernel"
	"grove/internal/stat"
	"grove/internal/text/token"
)

var inf = float32(math.Inf(1))

// five are the logits of tokens a to e of the worked numbers, whose probabilities are
// .5630, .2071, .1256, .0762 and .0280.
var five = []float32{2, 1, .5, 0, -1}

// A drawer is a chain without stages whose sample index goes with each draw.
type drawer struct{ *Chain }

func newDrawer(t testing.TB, p Params, vocab int) drawer {
	t.Helper()
	return drawer{newChain(t, Settings{Params: p}, vocab)}
}

func (d drawer) Sample(logits []float32, choice, index int) (Token, error) {
	d.SetSampleIndex(choice)
	return d.Draw(0, logits, index)
}

func newChain(t testing.TB, s Settings, vocab int) *Chain {
	t.Helper()
	c, err := NewChain(s, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func distribution(t testing.TB, p Params, logits []float32) []float32 {
	t.Helper()
	dst := make([]float32, len(logits))
	if err := newDrawer(t, p, len(logits)).Distribution(dst, logits, 0); err != nil {
		t.Fatal(err)
	}
	return dst
}

func TestWorkedNumbers(t *testing.T) {
	tests := []struct {
		name string
		p    Params
		want []float32
	}{
		{"softmax", Params{Temperature: 1}, []float32{.5630, .2071, .1256, .0762, .0280}},
		{"temperature 0", Params{}, []float32{1, 0, 0, 0, 0}},
		{"temperature 0.5", Params{Temperature: .5}, []float32{.8292, .1122, .0413, .0152, .0021}},
		{"temperature 2", Params{Temperature: 2}, []float32{.3745, .2272, .1769, .1378, .0836}},
		{"top-k 1", Params{Temperature: 1, TopK: 1}, []float32{1, 0, 0, 0, 0}},
		{"top-k 2", Params{Temperature: 1, TopK: 2}, []float32{.7311, .2689, 0, 0, 0}},
		{"top-k of more than there are", Params{Temperature: 1, TopK: 9}, []float32{.5630, .2071, .1256, .0762, .0280}},
		{"top-p 0.8", Params{Temperature: 1, TopP: .8}, []float32{.6285, .2312, .1402, 0, 0}},
		{"top-p 0.9", Params{Temperature: 1, TopP: .9}, []float32{.5793, .2131, .1293, .0784, 0}},
		{"top-p 0.95", Params{Temperature: 1, TopP: .95}, []float32{.5793, .2131, .1293, .0784, 0}},
		{"top-p 1", Params{Temperature: 1, TopP: 1}, []float32{.5630, .2071, .1256, .0762, .0280}},
		{"top-p 0 that was asked for", topP0(Params{Temperature: 1}), []float32{1, 0, 0, 0, 0}},
		{"top-p 0 beside others", topP0(Params{Temperature: 2, TopK: 4, MinP: .1, XTC: XTC{Probability: 1, Threshold: .1}, Order: TemperFirst}), []float32{1, 0, 0, 0, 0}},
		{"top-p tiny", Params{Temperature: 1, TopP: 1e-9}, []float32{1, 0, 0, 0, 0}},
		{"min-p 0.1", Params{Temperature: 1, MinP: .1}, []float32{.5793, .2131, .1293, .0784, 0}},
		{"min-p 0.2", Params{Temperature: 1, MinP: .2}, []float32{.6285, .2312, .1402, 0, 0}},
		{"min-p 0.25", Params{Temperature: 1, MinP: .25}, []float32{.7311, .2689, 0, 0, 0}},
		{"min-p 1", Params{Temperature: 1, MinP: 1}, []float32{1, 0, 0, 0, 0}},
		{"truncate, then temper: top-p", Params{Temperature: 2, TopP: .8}, []float32{.4810, .2918, .2272, 0, 0}},
		{"temper, then truncate: top-p", Params{Temperature: 2, TopP: .8, Order: TemperFirst},
			[]float32{.4087, .2479, .1931, .1504, 0}},
		{"truncate, then temper: min-p", Params{Temperature: 2, MinP: .2}, []float32{.4810, .2918, .2272, 0, 0}},
		{"temper, then truncate: min-p", Params{Temperature: 2, MinP: .2, Order: TemperFirst},
			[]float32{.3745, .2272, .1769, .1378, .0836}},
		{"top-p refers to what top-k left: a reaches 0.7", Params{Temperature: 1, TopK: 2, TopP: .7},
			[]float32{1, 0, 0, 0, 0}},
		{"top-k 3, then top-p 0.8", Params{Temperature: 1, TopK: 3, TopP: .8}, []float32{.7311, .2689, 0, 0, 0}},
		// Of a to c a holds .6285, of all tokens less than .6.
		{"top-p refers to all before min-p", Params{Temperature: 1, TopP: .6, MinP: .2}, []float32{.7311, .2689, 0, 0, 0}},
		{"top-p refers to what min-p left", Params{Temperature: 1, TopP: .6, MinP: .2, Order: TemperFirst},
			[]float32{1, 0, 0, 0, 0}},
		{"the same with top-k 4", Params{Temperature: 1, TopK: 4, TopP: .6, MinP: .2, Order: TemperFirst},
			[]float32{1, 0, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := distribution(t, tt.p, five)
			if d := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 6e-5)); d != "" {
				t.Errorf("probabilities (-want +got):\n%s", d)
			}
		})
	}
}

func TestMinPBoundary(t *testing.T) {
	// ln 0.1 + 2 = -0.302585: the threshold of the worked numbers.
	logits := []float32{2, -.30258, -.30259}
	got := distribution(t, Params{Temperature: 1, MinP: .1}, logits)
	if got[1] == 0 || got[2] != 0 {
		t.Errorf("probabilities %v, want only the first two above 0", got)
	}
}

// everyKind holds one Params for every path through truncation, in both orders.
func everyKind(temperature float32) []Params {
	var all []Params
	for _, order := range []Order{TruncateFirst, TemperFirst} {
		for _, k := range []int{0, 3} {
			for _, topP := range []float32{0, .85} {
				for _, minP := range []float32{0, .06} {
					all = append(all, Params{Temperature: temperature, TopK: k, TopP: topP, MinP: minP, Order: order})
				}
			}
		}
	}
	return all
}

func (p Params) name() string {
	return fmt.Sprintf("T=%v,k=%d,p=%v,min=%v,%v", p.Temperature, p.TopK, p.TopP, p.MinP, p.Order)
}

func TestDrawsFollowDistribution(t *testing.T) {
	const draws = 100_000
	logits := []float32{2, 1, .5, 0, -1, float32(math.Inf(-1)), .5, -3}
	for i, p := range append(everyKind(.8), everyKind(1.7)...) {
		p.Seed = uint64(i)
		t.Run(p.name(), func(t *testing.T) {
			s := newDrawer(t, p, len(logits))
			want := distribution(t, p, logits)
			counts, expected := make([]float64, len(logits)), make([]float64, len(logits))
			for i := range draws {
				c, err := s.Sample(logits, i%3, i/3)
				if err != nil {
					t.Fatal(err)
				}
				counts[c.ID]++
			}
			for id, p := range want {
				expected[id] = float64(p) * draws
			}
			if err := stat.ChiSquare(counts, expected); err != nil {
				t.Error(err)
			}
		})
	}
}

// noise fills logits of no particular shape.
func noise(n int, seed uint64) []float32 {
	x := make([]float32, n)
	key := kernel.MakeKey(seed, 0, 0, 77)
	for i := range x {
		x[i] = 2 * kernel.Noise(key, uint32(i))
	}
	return x
}

func TestKeepingAllIsGumbelMax(t *testing.T) {
	logits := noise(500, 1)
	logits[7] = -inf
	keepAll := map[string]Params{
		"top-k of all but the masked": {TopK: 499},
		"min-p":                       {MinP: 1e-30},
		"min-p, temper first":         {MinP: 1e-30, Order: TemperFirst},
		"both":                        {TopK: 499, MinP: 1e-30},
	}
	for name, p := range keepAll {
		t.Run(name, func(t *testing.T) {
			p.Temperature, p.Seed = .7, 3
			truncating := newDrawer(t, p, len(logits))
			plain := newDrawer(t, Params{Temperature: .7, Seed: 3}, len(logits))
			for index := range 500 {
				got, err1 := truncating.Sample(logits, 1, index)
				want, err2 := plain.Sample(logits, 1, index)
				if err1 != nil || err2 != nil || got != want {
					t.Fatalf("index %d: %v, %v; full vocabulary: %v, %v", index, got, err1, want, err2)
				}
			}
		})
	}
}

// TestSeedIndexAndChoiceMatter: each changes the draws, and the same three repeat them.
func TestSeedIndexAndChoiceMatter(t *testing.T) {
	logits := make([]float32, 1000)
	draw := func(p Params, choice, index int) token.ID {
		c, err := newDrawer(t, p, len(logits)).Sample(logits, choice, index)
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	for _, p := range []Params{{Temperature: 1}, {Temperature: 1, TopK: 999}} {
		other := p
		other.Seed = 1
		same := [3]int{}
		for index := range 200 {
			id := draw(p, 0, index)
			if again := draw(p, 0, index); again != id {
				t.Fatalf("index %d drew %d, then %d", index, id, again)
			}
			for i, changed := range []token.ID{draw(other, 0, index), draw(p, 1, index), draw(p, 0, index+1)} {
				if changed == id {
					same[i]++
				}
			}
		}
		for i, n := range same {
			if n > 5 {
				t.Errorf("%d of 200 draws stay the same when %s changes", n, []string{"seed", "choice", "index"}[i])
			}
		}
	}
}

func TestTiesGoToTheLowestID(t *testing.T) {
	logits := []float32{-1, 3, 0, 3, float32(math.Copysign(0, -1)), 3}
	for _, p := range []Params{{}, {Temperature: 1e-9}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 1e-3}} {
		c, err := newDrawer(t, p, len(logits)).Sample(logits, 0, 0)
		if err != nil || c.ID != 1 {
			t.Errorf("%s: drew %v, %v, want token 1", p.name(), c, err)
		}
	}
	for _, zeros := range [][]float32{
		{0, float32(math.Copysign(0, -1)), 0},
		{float32(math.Copysign(0, -1)), 0, 0},
	} {
		got := distribution(t, Params{Temperature: 1, TopK: 2}, zeros)
		if d := cmp.Diff([]float32{.5, .5, 0}, got); d != "" {
			t.Errorf("top-k 2 of zeros of either sign (-want +got):\n%s", d)
		}
	}
}

func TestLogprobIsTheModels(t *testing.T) {
	want := []float64{-.5745, -1.5745, -2.0745, -2.5745, -3.5745}
	for _, p := range append(everyKind(.8), Params{}, Params{Temperature: 3}) {
		s := newDrawer(t, p, len(five))
		for index := range 50 {
			c, err := s.Sample(five, 0, index)
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(c.Logprob); math.Abs(got-want[c.ID]) > 1e-4 {
				t.Fatalf("%s: token %d has logprob %v, want %v", p.name(), c.ID, got, want[c.ID])
			}
		}
	}
}

func TestMaskedTokens(t *testing.T) {
	one := []float32{-inf, -inf, -50, -inf}
	all := []float32{-inf, -inf, -inf, -inf}
	for _, p := range append(everyKind(.8), Params{}) {
		s := newDrawer(t, p, 4)
		if c, err := s.Sample(one, 0, 0); err != nil || c != (Token{ID: 2}) {
			t.Errorf("%s: the only token allowed: %v, %v, want token 2 with logprob 0", p.name(), c, err)
		}
		if c, err := s.Sample(all, 0, 0); !errors.Is(err, ErrAllMasked) {
			t.Errorf("%s: nothing allowed: %v, %v, want ErrAllMasked", p.name(), c, err)
		}
		if err := s.Distribution(make([]float32, 4), all, 0); !errors.Is(err, ErrAllMasked) {
			t.Errorf("%s: nothing allowed: distribution: %v, want ErrAllMasked", p.name(), err)
		}
	}
}

func TestNotFinite(t *testing.T) {
	nan := float32(math.NaN())
	for _, logits := range [][]float32{
		{nan, 1, 2, 3}, {1, 2, 3, nan}, {nan, nan, nan, nan}, {0, inf, 0, 0}, {-inf, inf, 0, 0}, {-inf, -inf, nan, -inf},
	} {
		for _, p := range append(everyKind(.8), Params{}) {
			s := newDrawer(t, p, 4)
			if c, err := s.Sample(logits, 0, 0); !errors.Is(err, ErrNotFinite) {
				t.Errorf("%s: %v: %v, %v, want ErrNotFinite", p.name(), logits, c, err)
			}
			if err := s.Distribution(make([]float32, 4), logits, 0); !errors.Is(err, ErrNotFinite) {
				t.Errorf("%s: %v: distribution: %v, want ErrNotFinite", p.name(), logits, err)
			}
		}
	}
}

func TestExtremes(t *testing.T) {
	wide := []float32{-math.MaxFloat32, math.MaxFloat32, 0, math.MaxFloat32 / 2}
	for _, temperature := range []float32{1e-45, 1e-9, 1e-5, 1, 1e30, math.MaxFloat32} {
		for _, p := range append(everyKind(temperature), Params{Temperature: temperature, TopP: .99, MinP: 1e-45}) {
			c, err := newDrawer(t, p, 4).Sample(wide, 0, 0)
			if err != nil || c.ID == 0 && temperature <= 1 {
				t.Errorf("%s: drew %v, %v", p.name(), c, err)
			}
			for id, q := range distribution(t, p, wide) {
				if !(q >= 0 && q <= 1) {
					t.Errorf("%s: probability of %d is %v", p.name(), id, q)
				}
			}
			if temperature > 1e-4 {
				continue
			}
			if c, err := newDrawer(t, p, 5).Sample(five, 0, 0); err != nil || c.ID != 0 {
				t.Errorf("%s: drew %v, %v, want token 0 as temperature 0 does", p.name(), c, err)
			}
		}
	}
}

func TestBadParams(t *testing.T) {
	nan := float32(math.NaN())
	tests := []struct {
		p    Params
		want string
	}{
		{Params{Temperature: -1}, "sample: temperature is -1; it must be a number from 0 up"},
		{Params{Temperature: nan}, "sample: temperature is NaN; it must be a number from 0 up"},
		{Params{Temperature: inf}, "sample: temperature is +Inf; it must be a number from 0 up"},
		{Params{TopK: -1}, "sample: top-k is -1; it must be 0 (off) or more"},
		{Params{TopP: 1.5}, "sample: top-p is 1.5; it must be from 0 to 1 (1: off)"},
		{Params{TopP: -.1}, "sample: top-p is -0.1; it must be from 0 to 1 (1: off)"},
		{Params{TopP: nan}, "sample: top-p is NaN; it must be from 0 to 1 (1: off)"},
		{Params{MinP: 2}, "sample: min-p is 2; it must be from 0 (off) to 1"},
		{Params{MinP: -.5}, "sample: min-p is -0.5; it must be from 0 (off) to 1"},
		{Params{MinP: nan}, "sample: min-p is NaN; it must be from 0 (off) to 1"},
		{Params{Order: 2}, "sample: order is 2; it must be 0 (truncate-first) or 1 (temper-first)"},
	}
	for _, tt := range tests {
		_, err := NewChain(Settings{Params: tt.p}, 5)
		if err == nil || err.Error() != tt.want {
			t.Errorf("NewChain(%+v): error %v, want %q", tt.p, err, tt.want)
		}
	}
	for _, p := range []Params{{}, DefaultParams()} {
		if err := p.Validate(); err != nil {
			t.Errorf("Validate(%+v) = %v", p, err)
		}
	}
	if !(Params{}).Greedy() || DefaultParams().Greedy() {
		t.Error("the zero value must be greedy and the default must not")
	}
	if _, err := NewChain(Settings{}, 0); err == nil {
		t.Error("NewChain accepts an empty vocabulary")
	}
}

func TestWrongLength(t *testing.T) {
	s := newDrawer(t, Params{}, 5)
	const want = "the row has 4 logits; the vocabulary has 5 tokens"
	if _, err := s.Sample(make([]float32, 4), 0, 0); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Sample: %v, want %q", err, want)
	}
	if err := s.Distribution(make([]float32, 4), five, 0); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Distribution: %v, want %q", err, want)
	}
}

func TestRandomSeed(t *testing.T) {
	if a, b := RandomSeed(), RandomSeed(); a == b {
		t.Errorf("the same seed twice: %d", a)
	}
}

// TestEqualScores expects the lowest id among equal scores, in whatever order tokens are kept: beside logits of a billion
// noise is nothing.
func TestEqualScores(t *testing.T) {
	logits := []float32{0, 1e9, 0, 1e9, 1e9, 0}
	for _, p := range []Params{{Temperature: 1}, {Temperature: 1, TopK: 5}, {Temperature: 1, MinKeep: 2, TopP: 0.9}} {
		for index := range 20 {
			if got, err := newDrawer(t, p, len(logits)).Sample(logits, 0, index); err != nil || got.ID != 1 {
				t.Fatalf("%+v: token %d, %v", p, got.ID, err)
			}
		}
	}
	kept := []uint64{keyOf(1e9, 4), keyOf(1e9, 1), keyOf(1e9, 3)}
	for range kept {
		kept = append(kept[1:], kept[0])
		if id := draw(kept, logits, 1, newDrawer(t, Params{Temperature: 1}, 6).sampler.key(0, purposeDraw)); id != 1 {
			t.Errorf("of keys %v token %d is drawn", kept, id)
		}
	}
}

// topP0 returns parameters with a top-p of 0, as requests ask for it.
func topP0(p Params) Params {
	p.SetTopP(0)
	return p
}
