package hmm

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// words is a vocabulary of texts; with end, the last token ends.
func words(t testing.TB, end bool, texts ...string) *vocab.Vocabulary {
	var tokens []vocab.Token
	for i, text := range texts {
		tokens = append(tokens, vocab.Token{ID: token.ID(i), Bytes: []byte(text), Kind: vocab.Ordinary})
	}
	if end {
		tokens = append(tokens, vocab.Token{ID: token.ID(len(texts)), Kind: vocab.End})
	}
	v, err := vocab.New(tokens, len(tokens))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// contains takes the texts that have a b.
type contains struct{}

func (contains) Step(state int, b byte) (int, bool) { return max(state, int(b-'a')&1), true }
func (contains) Final(state int) bool               { return state == 1 }

// all takes every text.
type all struct{}

func (all) Step(int, byte) (int, bool) { return 0, true }
func (all) Final(int) bool             { return true }

// list takes the texts of a list, byte by byte.
type list struct{ texts string } // with blanks between

func (l list) find(state int) (beginning string) {
	for i, text := range strings.Fields(l.texts) {
		if n := state % 100; state/100 == i && n <= len(text) {
			return text[:n]
		}
	}
	return ""
}

func (l list) Step(state int, b byte) (int, bool) {
	longer := l.find(state) + string(b)
	for i, text := range strings.Fields(l.texts) {
		if strings.HasPrefix(text, longer) {
			return 100*i + len(longer), true
		}
	}
	return 0, false
}

func (l list) Final(state int) bool {
	return slices.Contains(strings.Fields(l.texts), l.find(state))
}

// worked is the model of the worked numbers.
func worked(t testing.TB) *Model {
	m, err := New([]float32{.6, .4}, []float32{.7, .3, .4, .6}, []float32{.9, .2, .1, .8})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWorked has the numbers of the card: two hidden states, tokens a and b, texts of three tokens that contain b.
func TestWorked(t *testing.T) {
	a, err := Compile(words(t, false, "a", "b"), contains{}, worked(t), 3)
	if err != nil {
		t.Fatal(err)
	}
	for left, want := range [][]float64{{.1, .8}, {.379, .904}, {.58285, .9388}} {
		c, scale := a.complete(a.level(left), 0)
		for z := range c {
			if got := c[z] * math.Exp(scale); math.Abs(got-want[z]) > 1e-6 {
				t.Errorf("C[%d][%d] is %.6f, want %v", left+1, z, got, want[z])
			}
		}
	}
	if p := math.Exp(a.LogProbability()); math.Abs(p-.72523) > 1e-6 {
		t.Errorf("the probability is %.6f, want .72523", p)
	}
	s := NewStage(a)
	logits := []float32{float32(math.Log(.8)), float32(math.Log(.2))}
	s.Apply(0, logits)
	pa, pb := math.Exp(float64(logits[0]))/.8, math.Exp(float64(logits[1]))/.2
	if math.Abs(pa-.5568226) > 1e-6 || math.Abs(pb-1) > 1e-6 {
		t.Errorf("behind a and b the text is legal with %.7f and %.7f, want .5568226 and 1", pa, pb)
	}
	sum := pa*.8 + pb*.2
	if law := pa * .8 / sum; math.Abs(law-.6901425) > 1e-6 {
		t.Errorf("a is drawn with %.7f, want .6901425", law)
	}
}

// TestEnumeration compares estimates with sums over all texts, behind every beginning, for random models.
func TestEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const horizon = 4
	for range 20 {
		v := words(t, true, "a", "b", "ab", "c")
		m := randomModel(rng, 3, v.Size())
		machine := list{"ab b cab aab abab"}
		a, err := Compile(v, machine, m, horizon)
		if err != nil {
			t.Fatal(err)
		}
		// chance returns the sums over the texts behind one: of all, and of the legal ones.
		var chance func(ahead []float64, text string, left int) float64
		chance = func(ahead []float64, text string, left int) (legal float64) {
			whole := slices.Contains(strings.Fields(machine.texts), text)
			if left == 0 {
				if whole {
					return sum64(ahead)
				}
				return 0
			}
			for id := range token.ID(v.Size()) {
				emitted := make([]float64, 3)
				for z := range emitted {
					emitted[z] = ahead[z] * float64(m.emit[int(id)*3+z])
				}
				if v.Kind(id) == vocab.End {
					if whole {
						legal += sum64(emitted)
					}
					continue
				}
				legal += chance(m.next(emitted), text+string(v.Bytes(id)), left-1)
			}
			return legal
		}
		if got, want := math.Exp(a.LogProbability()), chance(wide(m.start), "", horizon); math.Abs(got-want) > 1e-6 {
			t.Fatalf("probability %v, want %v", got, want)
		}
		var walk func(s *Stage, at sample.StageState, text string, ahead []float64, left int)
		walk = func(s *Stage, at sample.StageState, text string, ahead []float64, left int) {
			logits := make([]float32, v.Size())
			s.Apply(at, logits)
			some := slices.ContainsFunc(logits, func(l float32) bool { return !math.IsInf(float64(l), -1) })
			for id := range token.ID(v.Size() - 1) {
				emitted := make([]float64, 3)
				for z := range emitted {
					emitted[z] = ahead[z] * float64(m.emit[int(id)*3+z])
				}
				longer := text + string(v.Bytes(id))
				want := 0.0
				if left > 0 {
					want = chance(m.next(emitted), longer, left-1) / sum64(emitted)
				}
				got := math.Exp(float64(logits[id]))
				if left > 0 && want > 0 && math.Abs(got-want) > 1e-5 || want == 0 && got > 0 && left > 0 && some && s.level0(at) {
					t.Fatalf("behind %q with %d left: %v for %q, want %v", text, left, got, v.Bytes(id), want)
				}
				if (got > 0) != s.Allows(at, id) {
					t.Fatalf("behind %q: token %q has %v, and Allows says %v", text, v.Bytes(id), got, s.Allows(at, id))
				}
				if got > 0 && left > 1 {
					walk(s, s.Next(at, id), longer, m.next(emitted), left-1)
				}
			}
			end := token.ID(v.Size() - 1)
			if ends := !math.IsInf(float64(logits[end]), -1); ends != slices.Contains(strings.Fields(machine.texts), text) {
				t.Fatalf("%q may end: %v", text, ends)
			}
		}
		s := NewStage(a)
		walk(s, s.Start(nil), "", wide(m.start), horizon)
	}
}

// level0 reports whether some token can still lead to a legal end within the horizon.
func (s *Stage) level0(at sample.StageState) bool {
	_, ok := s.level(&s.nodes[at])
	return ok
}

func (m *Model) next(emitted []float64) []float64 {
	next := make([]float64, m.states)
	for z, p := range emitted {
		for y := range next {
			next[y] += p * float64(m.move[z*m.states+y])
		}
	}
	return next
}

func wide(p []float32) (w []float64) {
	for _, v := range p {
		w = append(w, float64(v))
	}
	return w
}

func sum64(p []float64) (s float64) {
	for _, v := range p {
		s += v
	}
	return s
}

func randomModel(rng *rand.Rand, states, vocab int) *Model {
	fill := func(n int) []float32 {
		p := make([]float32, n)
		for i := range p {
			p[i] = float32(.05 + rng.ExpFloat64())
		}
		return p
	}
	scale := func(p []float32, from, step int) {
		s := float32(0)
		for i := from; i < len(p); i += step {
			s += p[i]
		}
		for i := from; i < len(p); i += step {
			p[i] /= s
		}
	}
	start, move, emit := fill(states), fill(states*states), fill(states*vocab)
	scale(start, 0, 1)
	for z := range states {
		scale(move[z*states:(z+1)*states], 0, 1)
		scale(emit, z, states)
	}
	m, err := New(start, move, emit)
	if err != nil {
		panic(err)
	}
	return m
}

// TestAll leaves the distribution as it is where every text is legal, and masks alone where there is no model.
func TestAll(t *testing.T) {
	v := words(t, true, "a", "b")
	rng := rand.New(rand.NewPCG(3, 4))
	a, err := Compile(v, all{}, randomModel(rng, 4, v.Size()), 10)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStage(a)
	logits := []float32{1, 2, 3}
	s.Apply(s.Next(s.Next(0, 1), 0), logits)
	for i, want := range []float32{1, 2, 3} {
		if math.Abs(float64(logits[i]-want)) > 1e-6 {
			t.Errorf("logit %d is %v, want %v", i, logits[i], want)
		}
	}
	if a, err = Compile(v, list{"ab"}, nil, 0); err != nil {
		t.Fatal(err)
	}
	s = NewStage(a)
	logits = []float32{1, 2, 3}
	if s.Apply(0, logits); logits[0] != 1 || !math.IsInf(float64(logits[1]), -1) || !math.IsInf(float64(logits[2]), -1) {
		t.Errorf("a mask alone leaves %v", logits)
	}
	at := s.Next(s.Next(0, 0), 1)
	if !s.Ended(at) || !s.Allows(at, 2) || s.Allows(at, 0) {
		t.Error("behind ab something else than the end may follow")
	}
	if s.Allows(s.Next(0, 1), 2) {
		t.Error("behind a token that is not legal the text may end")
	}
}

// TestBias has the card's example of two branches: masks alone begin with a in 60 % of the texts, the model given that the
// text is legal in 1.64 %. The model distilled from samples comes near that.
func TestBias(t *testing.T) {
	v := words(t, true, "a", "b", "x", "y")
	p := map[string][]float64{"": {.6, .4, 0, 0, 0}, "a": {0, 0, .01, .99, 0}, "b": {0, 0, .9, .1, 0}}
	rng := rand.New(rand.NewPCG(5, 6))
	var texts [][]token.ID
	for range 4000 {
		var ids []token.ID
		for text := ""; len(text) < 2; {
			u := rng.Float64()
			for id, q := range p[text] {
				if u -= q; u < 0 {
					ids, text = append(ids, token.ID(id)), text+string(v.Bytes(token.ID(id)))
					break
				}
			}
		}
		texts = append(texts, append(ids, 4))
	}
	m, err := Fit(texts, v.Size(), FitOptions{States: 8, Iterations: 60, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Compile(v, list{"ax bx"}, m, 3)
	if err != nil {
		t.Fatal(err)
	}
	const truth = .6 * .01 / (.6*.01 + .4*.9)
	logits := []float32{float32(math.Log(.6)), float32(math.Log(.4)), -50, -50, -50}
	NewStage(a).Apply(0, logits)
	x, y := math.Exp(float64(logits[0])), math.Exp(float64(logits[1]))
	t.Logf("a begins %.4f of the texts; %.4f given that they are legal, .6 by masks alone", x/(x+y), truth)
	if got := x / (x + y); math.Abs(got-truth) > .02 {
		t.Errorf("a begins %.4f of the texts, want about %.4f", got, truth)
	}
}

// TestFit recovers a model from its texts, always in the same way, and each pass makes them likelier.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	truth := randomModel(rng, 2, 5)
	draw := func(p func(i int) float32, n int) int {
		u := rng.Float32()
		for i := range n - 1 {
			if u -= p(i); u < 0 {
				return i
			}
		}
		return n - 1
	}
	var texts [][]token.ID
	for range 300 {
		z := draw(func(i int) float32 { return truth.start[i] }, 2)
		var ids []token.ID
		for range 20 {
			ids = append(ids, token.ID(draw(func(i int) float32 { return truth.emit[i*2+z] }, 5)))
			z = draw(func(i int) float32 { return truth.move[z*2+i] }, 2)
		}
		texts = append(texts, ids)
	}
	last := math.Inf(-1)
	o := FitOptions{States: 2, Seed: 9, Each: func(pass int, logprob float64) error {
		if logprob < last-1e-4 {
			t.Errorf("pass %d: %v behind %v", pass, logprob, last)
		}
		last = logprob
		return nil
	}}
	m, err := Fit(texts, 5, o)
	if err != nil {
		t.Fatal(err)
	}
	last = math.Inf(-1)
	again, err := Fit(texts, 5, o)
	if err != nil || !slices.Equal(m.emit, again.emit) || !slices.Equal(m.move, again.move) {
		t.Errorf("the same texts give another model: %v", err)
	}
	for _, bad := range [][][]token.ID{nil, {{}}, {{5}}, {{-1}}} {
		if _, err := Fit(bad, 5, o); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	if _, err := Fit(texts, 5, FitOptions{}); err == nil {
		t.Error("no state is taken")
	}
}

// TestFile writes and reads a model, and refuses damage.
func TestFile(t *testing.T) {
	m := worked(t)
	var b bytes.Buffer
	if err := m.Write(&b, "test"); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(b.Bytes())
	if err != nil || !slices.Equal(got.start, m.start) || !slices.Equal(got.move, m.move) || !slices.Equal(got.emit, m.emit) {
		t.Fatalf("%+v, %v; want %+v", got, err, m)
	}
	damaged := bytes.Clone(b.Bytes())
	damaged[len(damaged)-30] ^= 0x40
	if _, err := Parse(damaged); !errors.Is(err, ErrFile) {
		t.Errorf("a damaged file: %v", err)
	}
	for _, tt := range [][3][]float32{
		{nil, nil, nil}, {{1}, {1}, nil}, {{1}, {.5}, {1}}, {{.5}, {1}, {1}}, {{1}, {1}, {.5}}, {{1}, {1}, {2, -1}},
		{{.5, .5}, {1, 0, 0, 1}, {1}}, {{float32(math.NaN())}, {1}, {1}},
	} {
		if _, err := New(tt[0], tt[1], tt[2]); !errors.Is(err, ErrFile) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

// FuzzParse reads hostile files.
func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	m, err := New([]float32{1}, []float32{1}, []float32{.5, .5})
	if err != nil {
		f.Fatal(err)
	}
	if err := m.Write(&b, "test"); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("GGUF"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := Parse(data); err == nil && (m.States() < 1 || m.Vocabulary() < 1) {
			t.Errorf("a model of %d states and %d tokens", m.States(), m.Vocabulary())
		}
	})
}

// TestCompile refuses what cannot be computed.
func TestCompile(t *testing.T) {
	v := words(t, false, "a", "b")
	if _, err := Compile(v, contains{}, worked(t), 0); err == nil {
		t.Error("a horizon of no token is taken")
	}
	if _, err := Compile(v, list{"c"}, nil, 0); err == nil {
		t.Error("a machine that no token leads into is taken")
	}
	if _, err := Compile(words(t, false, "a"), contains{}, worked(t), 3); err == nil {
		t.Error("a model of another vocabulary is taken")
	}
	if _, err := Compile(v, counting{}, nil, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a machine without bounds: %v", err)
	}
	big := randomModel(rand.New(rand.NewPCG(1, 1)), 3, 2)
	big.states = 1 << 25
	if err := (&Automaton{model: big, rows: make([][]edge, 9), horizon: 9}).addLevels(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a table without bounds: %v", err)
	}
}

// counting has a state for each length.
type counting struct{}

func (counting) Step(state int, _ byte) (int, bool) { return state + 1, true }
func (counting) Final(int) bool                     { return true }
