package constrain

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

// scripted is a draw whose order and numbers are given.
type scripted struct {
	p     []float64
	order []token.ID
	at    int
	rng   *rand.Rand
}

func (s *scripted) Next() (token.ID, bool) {
	if s.at == len(s.order) {
		return token.None, false
	}
	s.at++
	return s.order[s.at-1], true
}

func (s *scripted) Probability() float64 { return s.p[s.order[s.at-1]] }
func (s *scripted) Most() float64        { return slices.Max(s.p) }
func (s *scripted) Number(int) float64   { return s.rng.Float64() }

// The worked numbers: four tokens, of which b and d are legal.
var (
	worked   = []float64{.5, .3, .15, .05}
	workedOK = func(id token.ID) bool { return id == 1 || id == 3 }
)

// orders calls do with every order of the tokens and its probability in drawing without replacement.
func orders(p []float64, do func(order []token.ID, chance float64)) {
	var walk func(order []token.ID, left, chance float64)
	walk = func(order []token.ID, left, chance float64) {
		if len(order) == len(p) {
			do(order, chance)
		}
		for id := range p {
			if !slices.Contains(order, token.ID(id)) {
				walk(append(slices.Clip(order), token.ID(id)), left-p[id], chance*p[id]/left)
			}
		}
	}
	walk(nil, 1, 1)
}

// TestRecursive sums over all orders: the token's distribution is the masked one, and the expected weight of a token is
// its probability.
func TestRecursive(t *testing.T) {
	law, weights := map[token.ID]float64{}, map[token.ID]float64{}
	orders(worked, func(order []token.ID, chance float64) {
		id, w, ok := recursive(&scripted{p: worked, order: order}, workedOK, 0)
		if plain, _ := first(&scripted{p: worked, order: order}, workedOK, 0); !ok || plain != id {
			t.Fatalf("%v: tokens %d and %d", order, id, plain)
		}
		law[id] += chance
		weights[id] += chance * w
	})
	for id, want := range map[token.ID][2]float64{1: {.857143, .30}, 3: {.142857, .05}} {
		if math.Abs(law[id]-want[0]) > 1e-6 || math.Abs(weights[id]-want[1]) > 1e-9 {
			t.Errorf("token %d: probability %.6f, expected weight %.6f; want %v", id, law[id], weights[id], want)
		}
	}
}

// TestTrace follows one draw: a is rejected, b accepted, and the token behind it decides.
func TestTrace(t *testing.T) {
	for _, tt := range []struct {
		order []token.ID
		want  float64
	}{{[]token.ID{0, 1, 2, 3}, .30}, {[]token.ID{0, 1, 3, 2}, .50}, {[]token.ID{0, 2, 1, 3}, .35}} {
		if id, w, _ := recursive(&scripted{p: worked, order: tt.order}, workedOK, 0); id != 1 || math.Abs(w-tt.want) > 1e-12 {
			t.Errorf("%v: token %d of weight %v, want 1 and %v", tt.order, id, w, tt.want)
		}
	}
	all := func(token.ID) bool { return true }
	if id, w, _ := recursive(&scripted{p: worked, order: []token.ID{2, 0, 1, 3}}, all, 0); id != 2 || w != 1 {
		t.Errorf("with every token legal: token %d of weight %v, want 2 and 1", id, w)
	}
	none := func(token.ID) bool { return false }
	for name, estimate := range map[string]func(rejectSource, func(token.ID) bool, int) (token.ID, float64, bool){
		"recursive": recursive, "geometric": geometric,
	} {
		order := &scripted{p: worked, order: []token.ID{2, 0, 1, 3}, rng: rand.New(rand.NewPCG(1, 1))}
		if _, _, ok := estimate(order, none, 0); ok {
			t.Errorf("%s: a token is taken where none is legal", name)
		}
	}
}

// TestGeometric draws many times: the estimator needs random numbers besides the order.
func TestGeometric(t *testing.T) {
	const runs = 400_000
	rng := rand.New(rand.NewPCG(1, 2))
	law, weights := map[token.ID]float64{}, map[token.ID]float64{}
	for range runs {
		id, w, ok := geometric(&scripted{p: worked, order: draw(rng, worked), rng: rng}, workedOK, 0)
		if !ok {
			t.Fatal("no token")
		}
		law[id] += 1.0 / runs
		weights[id] += w / runs
	}
	for id, want := range map[token.ID][2]float64{1: {.857143, .30}, 3: {.142857, .05}} {
		if math.Abs(law[id]-want[0]) > .003 || math.Abs(weights[id]-want[1]) > .002 {
			t.Errorf("token %d: probability %.4f, expected weight %.4f; want %v", id, law[id], weights[id], want)
		}
	}
}

// draw returns a random order without replacement.
func draw(rng *rand.Rand, p []float64) (order []token.ID) {
	scores := make([]float64, len(p))
	for id := range p {
		scores[id] = math.Log(p[id]) - math.Log(-math.Log(rng.Float64()))
		order = append(order, token.ID(id))
	}
	slices.SortFunc(order, func(a, b token.ID) int {
		if scores[a] > scores[b] {
			return -1
		}
		return 1
	})
	return order
}

// rejectWords is a vocabulary of texts; the last token ends.
func rejectWords(t testing.TB, texts ...string) *vocab.Vocabulary {
	var tokens []vocab.Token
	for i, text := range texts {
		tokens = append(tokens, vocab.Token{ID: token.ID(i), Bytes: []byte(text), Kind: vocab.Ordinary})
	}
	tokens = append(tokens, vocab.Token{ID: token.ID(len(texts)), Kind: vocab.End})
	v, err := vocab.New(tokens, len(texts)+1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// masking is the stage without Pick: a draw sees the logits that Apply leaves.
type masking struct{ sample.Legal }

// balanced takes texts of brackets that may be closed, of depth 3 at most.
func balanced(text []byte) bool {
	depth := 0
	for _, b := range text {
		switch b {
		case '(':
			depth++
		case ')':
			depth--
		default:
			return false
		}
		if depth < 0 || depth > 3 {
			return false
		}
	}
	return true
}

func closed(text []byte) bool {
	return len(text) > 0 && bytes.Count(text, []byte("(")) == bytes.Count(text, []byte(")"))
}

// TestSameTokens draws by checks and from the masked logits: the tokens are equal, one by one, at every temperature and
// with truncation.
func TestSameTokens(t *testing.T) {
	texts := []string{"(", ")", "()", ")(", "((", "))", "a", "(a", "(((", ")))", "()", ""}
	for len(texts) < 200 {
		texts = append(texts, "x"+strings.Repeat("y", len(texts)))
	}
	v := rejectWords(t, texts...)
	o := RejectOptions{Check: balanced, Ends: closed, Weights: true}
	rng := rand.New(rand.NewPCG(7, 8))
	for _, params := range []sample.Params{
		{}, {Temperature: 1}, {Temperature: .3}, {Temperature: 2, TopP: .9}, {Temperature: 1.5, TopK: 5},
	} {
		checks := 0
		for seed := range uint64(20) {
			params.Seed = seed
			lazy, full := NewReject(v, o), NewReject(v, o)
			a := chain(t, v, params, lazy)
			b := chain(t, v, params, masking{full})
			for index := range 30 {
				logits := make([]float32, v.Size())
				for id := range logits {
					logits[id] = float32(3 * rng.NormFloat64())
				}
				got, err := a.Draw(0, logits, index)
				want, err2 := b.Draw(0, logits, index)
				if err != nil || err2 != nil || got != want {
					t.Fatalf("%+v, token %d: %v (%v), want %v (%v)", params, index, got, err, want, err2)
				}
				if got.ID == token.ID(v.Size()-1) {
					break
				}
				a.Keep(a.Next(0, got.ID))
				b.Keep(b.Next(0, want.ID))
			}
			checks += lazy.Checks()
		}
		t.Logf("%+v: %d checks", params, checks)
	}
}

func chain(t testing.TB, v *vocab.Vocabulary, p sample.Params, stage sample.Stage) *sample.Chain {
	c, err := sample.NewChain(sample.Settings{Params: p, Stages: []sample.Stage{stage}}, v.Size())
	if err != nil {
		t.Fatal(err)
	}
	c.Begin([]token.ID{0})
	return c
}

// TestFewChecks counts the checks of draws where legal tokens have nine tenths of the probability.
func TestFewChecks(t *testing.T) {
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = strings.Repeat(string(rune('a'+i%10)), 1+i/10)
	}
	v := rejectWords(t, texts...)
	s := NewReject(v, RejectOptions{Check: func(text []byte) bool { return text[len(text)-1] != 'j' }, Ends: func([]byte) bool { return false }})
	c := chain(t, v, sample.Params{Temperature: 1}, s)
	logits := make([]float32, v.Size())
	const draws = 500
	for i := range draws {
		if _, err := c.Draw(c.Next(0, token.ID(0)), logits, i); err != nil {
			t.Fatal(err)
		}
		c.Keep(0)
	}
	if each := float64(s.Checks()) / draws; each > 1.3 {
		t.Errorf("%.2f checks a draw, want about 10/9", each)
	}
}

// TestWeights: the mean weight of many texts is the probability that the model ends one legally, and the distribution of
// legal texts by weight is the model's own.
func TestWeights(t *testing.T) {
	v := rejectWords(t, "a", "b")
	// The card's example: a is likelier, but only one of a hundred of its continuations is legal.
	p := map[string][]float64{"": {.6, .4, 0}, "a": {.01, .99, 0}, "b": {.9, .1, 0}}
	legal := map[string]bool{"": true, "a": true, "b": true, "aa": true, "ba": true}
	total, a := 0.0, 0.0
	plain := 0
	const runs = 40_000
	for seed := range uint64(runs) {
		s := NewReject(v, RejectOptions{Check: func(text []byte) bool { return legal[string(text)] }, Weights: true})
		c := chain(t, v, sample.Params{Temperature: 1, Seed: seed}, s)
		text := ""
		for len(text) < 2 {
			logits := make([]float32, 3)
			for id, q := range p[text] {
				logits[id] = float32(math.Log(q))
			}
			got, err := c.Draw(0, logits, len(text))
			if err != nil {
				t.Fatal(err)
			}
			text += string(v.Bytes(got.ID))
			c.Keep(c.Next(0, got.ID))
		}
		sum, _ := c.LogWeight(0)
		w := math.Exp(sum)
		total += w / runs
		if text[0] == 'a' {
			a += w / runs
			plain++
		}
	}
	if share := float64(plain) / runs; math.Abs(share-.6) > .01 {
		t.Errorf("masking alone begins %.3f of the texts with a, want .6", share)
	}
	if want := .6*.01 + .4*.9; math.Abs(total-want) > .005 {
		t.Errorf("the mean weight is %.4f, want %.4f", total, want)
	}
	if share, want := a/total, .6*.01/(.6*.01+.4*.9); math.Abs(share-want) > .004 {
		t.Errorf("by weight %.4f of the texts begin with a, want %.4f", share, want)
	}
}

// TestNothing has checks that refuse everything, and draws that may refuse few tokens.
func TestNothing(t *testing.T) {
	v := rejectWords(t, "a", "b", "c", "d", "e", "f", "g")
	for _, tt := range []struct {
		name  string
		o     RejectOptions
		most  float32
		cause error
	}{
		{"nothing is legal", RejectOptions{Check: func([]byte) bool { return false }}, 0, ErrNothingLegal},
		{"with weights", RejectOptions{Check: func([]byte) bool { return false }, Weights: true}, 0, ErrNothingLegal},
		{"of a peaked distribution", RejectOptions{Check: func([]byte) bool { return false }, Weights: true}, 9, ErrNothingLegal},
		{"three may be refused", RejectOptions{Check: func(t []byte) bool { return string(t) == "g" }, MaxRejects: 3}, 9, ErrRejects},
	} {
		for _, params := range []sample.Params{{}, {Temperature: 1}} {
			s := NewReject(v, tt.o)
			c := chain(t, v, params, s)
			logits := make([]float32, v.Size())
			logits[0] = tt.most
			if tt.cause == ErrRejects {
				logits[6] = -30
			}
			if _, err := c.Draw(0, logits, 0); !errors.Is(err, tt.cause) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.cause)
			}
		}
		if tt.cause == ErrNothingLegal {
			c := chain(t, v, sample.Params{Temperature: 1, TopK: 2}, NewReject(v, tt.o))
			if _, err := c.Draw(0, make([]float32, v.Size()), 0); !errors.Is(err, tt.cause) {
				t.Errorf("%s, truncated: %v, want %v", tt.name, err, tt.cause)
			}
		}
	}
}
