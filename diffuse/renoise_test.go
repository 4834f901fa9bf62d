package diffuse

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/model"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// TestEntropyBound: the entropies of the toy with a bound of 0.35 accept places 0 and 3, before which the sums are 0 and 0.199; before the next it is 0.453. The first place is
// accepted by any bound.
func TestEntropyBound(t *testing.T) {
	for bound, want := range map[string]string{
		":bound=0.35": "0,3/", ":bound=0": "0/3/6/2/1/4/5/7", "": "0/3/6/2/1/", ":bound=0.2": "0,3/", ":bound=0.4535": "0,3,6/", ":bound=1000": "0,1,2,3,4,5,6,7",
	} {
		if got, _ := trace(t, &toy{}, Settings{Policy: "entropy-bound" + bound}); !strings.HasPrefix(got, want) {
			t.Errorf("bound %q: %s, want %s...", bound, got, want)
		}
	}
	for policy, want := range map[string]float64{"": 7, "entropy-bound": 7, "entropy-bound:bound=0.35": 0.35, "entropy-bound:bound=0": 0} {
		if got, err := BoundOf(policy, 7); got != want || err != nil {
			t.Errorf("the bound of %q is %g, error %v; want %g", policy, got, err, want)
		}
	}
	for policy, want := range map[string]string{
		"threshold": "policy threshold chooses masks, and the canvas has none", "entropy-bound:bound=-1": "policy entropy-bound: bound is \"-1\"", "entropy-bound:p=1": "\"p\" is not known", "x": "policy \"x\" is not known",
	} {
		if _, err := BoundOf(policy, 7); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("policy %s: error %v, want %s", policy, err, want)
		}
	}
}

// TestTrim: a text ends behind the token that ends it, or where a token or a pair goes round for the sixth time.
func TestTrim(t *testing.T) {
	const end = 9
	for text, want := range map[string]struct {
		n     int
		ended bool
	}{
		"1 2 3":                     {3, false},
		"1 9 3":                     {2, true},
		"9":                         {1, true},
		"1 5 5 5 5 5 2":             {7, false},
		"1 5 5 5 5 5 5 2 9":         {2, true},
		"5 5 5 5 5 5":               {1, true},
		"1 2 1 2 1 2 1 2 1 2 1 2":   {2, true},
		"3 1 2 1 2 1 2 1 2 1 2 1 4": {13, false},
		"7 1 7 2 7 3 7 4 7 5 7 6 7": {13, false}, // a list with commas is no loop
		"9 5 5 5 5 5 5":             {1, true},
	} {
		var ids []token.ID
		for f := range strings.FieldsSeq(text) {
			ids = append(ids, token.ID(f[0]-'0'))
		}
		if n, ended := trim(ids, func(id token.ID) bool { return id == end }); n != want.n || ended != want.ended {
			t.Errorf("%s: %d tokens, ended %v; want %d, %v", text, n, ended, want.n, want.ended)
		}
	}
}

// scripted is a model of canvases of random tokens: the likeliest token of a place of the text and a pass is known, and how sure it is.
type scripted struct {
	vocabulary int
	likely     func(place, pass int) int
	gap        func(place, pass int) float64 // between its logit and all others

	text   []token.ID
	passes [][]Row   // that were run
	heat   []float32 // the temperature of the priors of each; 0: none
	logits [][]float32
}

func (m *scripted) Read(_ context.Context, ids []token.ID) (int, error) {
	m.text = append(m.text, ids...)
	return len(ids), nil
}

func (m *scripted) Pass(_ context.Context, branches [][]Row, keep int) error {
	pass, before := len(m.passes), m.logits
	m.passes, m.logits = append(m.passes, slices.Clone(branches[0])), nil
	m.heat = append(m.heat, 0)
	for i, r := range branches[0] {
		if p := r.Prior; p != nil {
			m.heat[pass] = p.Temperature
			if &p.Logits[0] != &before[i][0] {
				panic("the prior is not what the pass before gave")
			}
		}
		logits := make([]float32, m.vocabulary)
		logits[m.likely(r.Place, pass)] = float32(m.gap(r.Place, pass))
		m.logits = append(m.logits, logits)
	}
	return nil
}

func (m *scripted) Logits(_, i int) []float32 { return m.logits[i] }
func (m *scripted) Drop(func(int) bool) error { return nil }

func (m *scripted) Reuse(context.Context, []token.ID) (int, error) { return 0, nil }
func (m *scripted) Rows() int                                      { return 1 << 10 }

// tokens returns the tokens that a pass ran.
func (m *scripted) tokens(pass int) (ids []token.ID) {
	for _, r := range m.passes[pass] {
		ids = append(ids, r.ID)
	}
	return ids
}

var renoiseSettings = RenoiseSettings{
	Renoise: model.Renoise{Canvas: 8, Steps: 6, Coldest: 0.4, Hottest: 0.8, Bound: 0.1, Stable: 1, Sure: 0.005}, Length: 20, Room: 50, Vocabulary: 40,
}

// renoise fills an answer by a model.
func renoise(t *testing.T, m *scripted, s RenoiseSettings, seed uint64) *Renoiser {
	t.Helper()
	m.vocabulary = s.Vocabulary
	sampler, err := NewShaper(Draws{Settings: sample.Settings{Params: sample.Params{Temperature: 1, Seed: seed}}, Prompt: make([]token.ID, 3), Vocabulary: s.Vocabulary})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewRenoiser([]token.ID{1, 2, 3}, s, m, sampler)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; !g.Done(); n++ {
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n > 1000 {
			t.Fatal("the answer does not end")
		}
	}
	return g
}

// settling becomes surer with each pass, and says the token of its place.
func settling() *scripted {
	return &scripted{likely: func(place, _ int) int { return place }, gap: func(_, pass int) float64 { return float64(4 * (pass%3 + 1)) }}
}

// TestRenoiser follows a model that settles in the third pass of each canvas: two canvases of 8, and one of which 4 tokens are wanted.
func TestRenoiser(t *testing.T) {
	m := settling()
	g := renoise(t, m, renoiseSettings, 1)
	var ids, passes []int
	for _, p := range g.Finished() {
		ids, passes = append(ids, int(p.ID)), append(passes, p.Pass)
		if want := 1 / (1 + 39*math.Exp(-12)); math.Abs(p.P-want) > 1e-9 { // at temperature 1
			t.Errorf("probability %g, want %g", p.P, want)
		}
	}
	if want := []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}; !cmp.Equal(ids, want) {
		t.Errorf("tokens %v", ids)
	}
	if passes[0] != 2 || passes[8] != 5 || passes[16] != 8 {
		t.Errorf("passes %v", passes)
	}
	if n, rows := g.passes, g.rows; n != 9 || rows != 9*8+3+16 {
		t.Errorf("%d passes, %d rows", n, rows)
	}
	if want := []token.ID{1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}; !cmp.Equal(m.text, want) {
		t.Errorf("the board has read %v", m.text)
	}
	for pass, rows := range m.passes {
		for i, r := range rows {
			if want := 3 + pass/3*8 + i; r.Place != want || !r.Want {
				t.Errorf("pass %d, row %d: place %d, want %d", pass, i, r.Place, want)
			}
		}
		want := 0.0
		if step := pass % 3; step > 0 {
			want = 0.4 + 0.4*float64(7-step)/6
		}
		if math.Abs(float64(m.heat[pass])-want) > 1e-6 {
			t.Errorf("pass %d: priors of temperature %g, want %g", pass, m.heat[pass], want)
		}
	}
}

// TestRenoiserSeeds: the same seed runs the same canvases, another one others; accepted places have what was drawn, and others random tokens.
func TestRenoiserSeeds(t *testing.T) {
	run := func(seed uint64, bound float64) (all [][]token.ID) {
		m, s := settling(), renoiseSettings
		s.Bound = bound
		renoise(t, m, s, seed)
		for pass := range m.passes {
			all = append(all, m.tokens(pass))
		}
		return all
	}
	one := run(1, 0.1)
	if diff := cmp.Diff(one, run(1, 0.1)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(one[0], run(2, 0.1)[0]) || cmp.Equal(one[0], one[3]) {
		t.Error("canvases of another seed, or place, begin alike")
	}
	for bound, least := range map[float64]int{0: 1, 1e6: 8} { // sure of its token but for 39 e^-15
		tokens, kept := run(1, bound)[2], 0
		for i, id := range tokens {
			if int(id) == 3+i {
				kept++
			}
		}
		if kept != least {
			t.Errorf("bound %g: the third pass runs %v; %d tokens are those that were drawn, want %d", bound, tokens, kept, least)
		}
	}
}

// TestRenoiserStops: what must hold before a canvas ends.
func TestRenoiserStops(t *testing.T) {
	sure := func(int, int) float64 { return 30 }
	for name, c := range map[string]struct {
		m      scripted
		change func(s *RenoiseSettings)
		passes int
		tokens int
	}{
		"sure at once":          {scripted{likely: func(place, _ int) int { return place }, gap: sure}, func(*RenoiseSettings) {}, 2, 8},
		"without waiting":       {scripted{likely: func(place, _ int) int { return place }, gap: sure}, func(s *RenoiseSettings) { s.Stable = 0 }, 1, 8},
		"stable for three":      {scripted{likely: func(place, _ int) int { return place }, gap: sure}, func(s *RenoiseSettings) { s.Stable = 3 }, 4, 8},
		"stable, never sure":    {scripted{likely: func(place, _ int) int { return place }, gap: func(int, int) float64 { return 1 }}, func(*RenoiseSettings) {}, 6, 8},
		"sure, never stable":    {scripted{likely: func(place, pass int) int { return (place + pass) % 40 }, gap: sure}, func(*RenoiseSettings) {}, 6, 8},
		"one step":              {scripted{likely: func(place, pass int) int { return pass }, gap: sure}, func(s *RenoiseSettings) { s.Steps = 1 }, 1, 8},
		"the text ends":         {scripted{likely: func(place, _ int) int { return place }, gap: sure}, func(s *RenoiseSettings) { s.Ends, s.Length = func(id token.ID) bool { return id == 5 }, 20 }, 2, 3},
		"a loop":                {scripted{likely: func(int, int) int { return 5 }, gap: sure}, func(s *RenoiseSettings) { s.Ends, s.Length = func(token.ID) bool { return false }, 20 }, 2, 1},
		"a loop that goes on":   {scripted{likely: func(place, _ int) int { return 5 }, gap: sure}, func(s *RenoiseSettings) { s.Length = 20 }, 6, 20},
		"no room for a second":  {scripted{likely: func(place, _ int) int { return place }, gap: sure}, func(s *RenoiseSettings) { s.Length, s.Room = 11, 11 }, 4, 11},
		"a canvas that is long": {scripted{likely: func(place, _ int) int { return place }, gap: sure}, func(s *RenoiseSettings) { s.Length, s.Room = 3, 5 }, 2, 3},
	} {
		s := renoiseSettings
		s.Length = 8
		c.change(&s)
		g := renoise(t, &c.m, s, 4)
		if n := g.passes; n != c.passes || len(g.Finished()) != c.tokens {
			t.Errorf("%s: %d passes, %d tokens; want %d, %d", name, n, len(g.Finished()), c.passes, c.tokens)
		}
		for pass, rows := range c.m.passes {
			if places := rows[len(rows)-1].Place; places >= 3+s.Room {
				t.Errorf("%s: pass %d runs place %d of a context of %d", name, pass, places, 3+s.Room)
			}
		}
	}
}

// TestRenoiserBias: a token that is forbidden is neither drawn nor the likeliest.
func TestRenoiserBias(t *testing.T) {
	m := &scripted{likely: func(place, _ int) int { return place }, gap: func(int, int) float64 { return 30 }, vocabulary: 40}
	shaper, err := NewShaper(Draws{Settings: sample.Settings{Params: sample.Params{Temperature: 1}, Penalties: sample.Penalties{Bias: []sample.Bias{{ID: 5, Add: float32(math.Inf(-1))}}}}, Prompt: make([]token.ID, 3), Vocabulary: 40})
	if err != nil {
		t.Fatal(err)
	}
	s := renoiseSettings
	s.Length = 8
	g, err := NewRenoiser([]token.ID{1, 2, 3}, s, m, shaper)
	if err != nil {
		t.Fatal(err)
	}
	for !g.Done() {
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.passes; g.Finished()[2].ID == 5 || g.Finished()[3].ID != 6 || n != s.Steps {
		t.Errorf("%v in %d passes", g.Finished(), n)
	}
}

// TestRenoiseSettings names settings that are none.
func TestRenoiseSettings(t *testing.T) {
	for want, change := range map[string]func(s *RenoiseSettings){
		"a canvas of 0 tokens":                 func(s *RenoiseSettings) { s.Canvas = 0 },
		"an answer of 51 tokens where there":   func(s *RenoiseSettings) { s.Length = 51 },
		"an answer of 0 tokens":                func(s *RenoiseSettings) { s.Length = 0 },
		"0 steps of a canvas":                  func(s *RenoiseSettings) { s.Steps = 0 },
		"temperatures from 0.3 down to 0.4":    func(s *RenoiseSettings) { s.Hottest = 0.3 },
		"temperatures from 0.8 down to 0;":     func(s *RenoiseSettings) { s.Coldest = 0 },
		"temperatures from NaN":                func(s *RenoiseSettings) { s.Hottest = math.NaN() },
		"a bound of entropies of NaN":          func(s *RenoiseSettings) { s.Bound = math.NaN() },
		"-1 stable passes":                     func(s *RenoiseSettings) { s.Stable = -1 },
		"a mean entropy of -1":                 func(s *RenoiseSettings) { s.Sure = -1 },
		"a vocabulary of 0":                    func(s *RenoiseSettings) { s.Vocabulary = 0 },
		fmt.Sprint("1 to ", MostLength, ""):    func(s *RenoiseSettings) { s.Length, s.Room = MostLength+1, MostLength+1 },
		fmt.Sprint(MostLength+1, " steps of"):  func(s *RenoiseSettings) { s.Steps = MostLength + 1 },
		fmt.Sprint("of ", MostLength+1, " to"): func(s *RenoiseSettings) { s.Canvas = MostLength + 1 },
	} {
		s := renoiseSettings
		change(&s)
		if _, err := NewRenoiser([]token.ID{1}, s, &scripted{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestRenoiserAllocates: what a pass gives is read, and the next canvas made, without allocations.
func TestRenoiserAllocates(t *testing.T) {
	m := &scripted{likely: func(place, _ int) int { return place % 40 }, gap: func(int, int) float64 { return 1 }, vocabulary: 40}
	shaper, err := NewShaper(Draws{Settings: sample.Settings{Params: sample.Params{Temperature: 1}}, Prompt: make([]token.ID, 3), Vocabulary: 40})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewRenoiser([]token.ID{1, 2, 3}, renoiseSettings, m, shaper)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		g.pass()
		if _, err := g.propose(g.temperature()); err != nil {
			t.Fatal(err)
		}
		g.settled()
		g.renoise()
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
