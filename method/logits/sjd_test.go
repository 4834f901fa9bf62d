package logits

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/sample"
	"grove/internal/stat"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// target is a model of few tokens: the distribution behind a text.
type target func(text []token.ID) []float64

// order2 is the toy of two tokens: the probability of 1 behind two tokens.
func order2(text []token.ID) []float64 {
	p := [2][2]float64{{0.2, 0.7}, {0.55, 0.1}}[text[len(text)-2]][text[len(text)-1]]
	return []float64{1 - p, p}
}

// sjdPlay is a text that sjd drafts for, and its rounds as the rule sees them.
type sjdPlay struct {
	growtest.View // but the target's distributions, which depend on the whole text
	target        target
	drafter       method.Drafter
	history       method.History
	text          []token.ID
	rounds, draws int // draws: drafts that are no certain ones
	rates         *method.Rates
	rule          verify.Acceptor
	legal         method.Legal
	dishonest     bool // the tree says other distributions than those that the drafts were drawn from
}

func sjdNewPlay(t *testing.T, window, vocabulary int, target target) *sjdPlay {
	t.Helper()
	d, err := sjd{window, vocabulary}.NewDrafter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &sjdPlay{
		View:   growtest.View{Tree: method.NewTree(64, vocabulary), Rng: rand.New(rand.NewPCG(5, 8))},
		target: target, drafter: d, rule: verify.Reject.New(), rates: method.NewRates(1),
	}
}

// behind returns the text down to a node.
func (y *sjdPlay) behind(node int) []token.ID {
	if node == verify.Root {
		return slices.Clone(y.text)
	}
	n := y.Nodes()[node]
	return append(y.behind(int(n.Parent)), n.ID)
}

func (y *sjdPlay) Probs(node int) ([]float64, error) { return y.target(y.behind(node)), nil }

func (y *sjdPlay) Draw(node int) (token.ID, error) {
	p, err := y.Probs(node)
	return y.Pick(node, p), err
}

// begin starts a text.
func (y *sjdPlay) begin(t *testing.T, n method.Noise, prompt ...token.ID) {
	t.Helper()
	y.text, y.rounds, y.history.Noise = append(y.text[:0], prompt...), 0, n
	y.history.Begin(y.text, len(prompt))
	if err := y.drafter.Begin(&y.history); err != nil {
		t.Fatal(err)
	}
}

// round lets a round run, and tells the drafter of it.
func (y *sjdPlay) round(t *testing.T) {
	t.Helper()
	y.rounds++
	y.Reset(64, y.rates)
	y.Tree.Legal = y.legal
	if err := y.drafter.Draft(t.Context(), y.Tree); err != nil {
		t.Fatal(err)
	}
	for node := method.Root; node < y.Len(); node++ {
		q := y.DraftDistribution(node)
		if len(q.P) > 1 {
			y.draws++
		}
		if y.dishonest && len(q.P) == 2 {
			y.Tree.SetDistribution(node, verify.Distribution{IDs: q.IDs, P: []float32{q.P[1], q.P[0]}})
		}
	}
	var out verify.Outcome
	if err := y.rule.Accept(y, &out); err != nil {
		t.Fatal(err)
	}
	rows := []method.RowResult{{Parent: -1, Node: method.Root, Probs: narrow(y.target(y.text))}}
	for i, n := range y.Nodes() {
		rows = append(rows, method.RowResult{ID: n.ID, Parent: n.Parent + 1, Node: int32(i), Probs: narrow(y.target(y.behind(i)))})
	}
	n, at := len(y.text), method.Root
	for _, node := range out.Accepted {
		y.text = append(y.text, y.Nodes()[node].ID)
		y.Learn(at, y.Nodes()[node].ID)
		at = node
	}
	y.text = append(y.text, out.Next)
	y.Learn(at, out.Next)
	y.history.Extend(y.text)
	y.drafter.Committed(method.Update{IDs: y.text[n:], Before: token.None, Rows: rows})
}

func narrow(p []float64) (q []float32) {
	for _, v := range p {
		q = append(q, float32(v))
	}
	return q
}

// TestDistribution holds texts of three tokens behind 0 1 to their exact probabilities, for several windows, and
// expects drafts whose distributions are not those of the draws to fail.
func TestDistribution(t *testing.T) {
	expected := []float64{.108, .027, .0495, .1155, .2835, .3465, .063, .007} // of 000 to 111
	runs := 20_000
	if os.Getenv("GROVE_LONG") != "" {
		runs = 100_000
	}
	for _, c := range []struct {
		window int
		legal  method.Legal
		wrong  bool
	}{{1, nil, false}, {2, nil, false}, {4, nil, false}, {8, nil, false}, {4, someLegal{}, false}, {4, nil, true}} {
		y := sjdNewPlay(t, c.window, 2, order2)
		y.legal, y.dishonest = c.legal, c.wrong
		counts, rounds := make([]float64, 8), 0
		for i := range runs {
			y.begin(t, method.Noise{Sampling: sample.Params{Temperature: 1, Seed: 3}, SampleIndex: i}, 0, 1)
			for len(y.text) < 5 {
				y.round(t)
			}
			counts[y.text[2]<<2|y.text[3]<<1|y.text[4]]++
			rounds += y.rounds
		}
		want := make([]float64, 8)
		for i, p := range expected {
			want[i] = p * float64(runs)
		}
		if err := stat.ChiSquare(counts, want); (err != nil) != c.wrong {
			t.Errorf("%+v: %v", c, err)
		}
		if drawn := y.draws > runs/2; drawn != (c.window > 1 && c.legal == nil) {
			t.Errorf("%+v: %d draws", c, y.draws)
		}
		if (rounds < 3*runs) != (c.window > 1) {
			t.Errorf("%+v: %d rounds for %d texts of 3 tokens", c, rounds, runs)
		}
	}
}

// someLegal forbids a token at the third place of every window: drafts are left out for what they are.
type someLegal struct{}

func (someLegal) Allows(node int, id token.ID) bool { return node != 1 || id == 0 }

// TestRedrafts expects the draft of a place to be drawn from what the last round's row gave there, rejected rows too,
// and shifted by what the text got.
func TestRedrafts(t *testing.T) {
	y := sjdNewPlay(t, 5, 10, nil)
	y.begin(t, method.Noise{}, 9, 9)
	// tree drafts, and returns the first n drafts.
	tree := func(n int) []token.ID {
		t.Helper()
		y.Reset(64, method.NewRates(1))
		if err := y.drafter.Draft(t.Context(), y.Tree); err != nil || y.Len() != 4 {
			t.Fatal(y.Len(), err)
		}
		return growtest.IDs(y.Tree)[:n]
	}
	expect := func(n int, want ...token.ID) {
		t.Helper()
		if got := tree(n); !cmp.Equal(got, want) {
			t.Errorf("drafts %v, want %v", got, want)
		}
	}
	// says tells of rows behind which the model is certain of a token.
	says := func(add []token.ID, ids ...token.ID) {
		var rows []method.RowResult
		for i, id := range ids {
			p := make([]float32, 10)
			p[id] = 1
			rows = append(rows, method.RowResult{Parent: int32(i) - 1, Probs: p})
		}
		y.text = append(y.text, add...)
		y.history.Extend(y.text)
		y.drafter.Committed(method.Update{IDs: add, Rows: rows})
	}
	expect(4, 9, 9, 9, 9) // behind 9 comes 9
	says([]token.ID{1}, 1, 2, 3, 4, 5)
	expect(4, 2, 3, 4, 5)
	says([]token.ID{2, 3}, 2, 3, 6, 7, 8)
	expect(3, 6, 7, 8) // no row told of the last place
	says([]token.ID{6, 7, 8, 1, 2, 3}, 1, 2, 3, 4, 5)
	expect(4, 6, 7, 8, 1) // as it was behind 1 2 3: no row told of these places
	says([]token.ID{0}, 1, 4, 4, 4, 4)
	y.begin(t, method.Noise{}, 9, 9, 1) // the text was cut: what the rows gave is not of it
	says(nil, 4, 4, 4, 4, 4)
	if got := tree(4); slices.Contains(got, 4) {
		t.Errorf("drafts %v behind a text that was cut", got)
	}
}

// TestPointMass: with a model that is certain of the token at each place, whatever is before it, all drafts of the
// second round are accepted.
func TestPointMass(t *testing.T) {
	y := sjdNewPlay(t, window, 17, func(text []token.ID) []float64 {
		p := make([]float64, 17)
		p[len(text)*7%17] = 1
		return p
	})
	y.begin(t, method.Noise{Sampling: sample.Params{Temperature: 1, Seed: 1}}, 0, 0)
	y.round(t)
	n := len(y.text)
	y.round(t)
	if got := len(y.text) - n; got < window-1 { // the places of the first window, and one more token
		t.Errorf("the second round gives %d tokens", got)
	}
	for i, id := range y.text[2:] {
		if int(id) != (i+2)*7%17 {
			t.Errorf("token %d is %d", i, id)
		}
	}
}

// TestGreedy expects greedy texts to be those of plain decoding, in fewer rounds where the text repeats: Jacobi decoding.
func TestGreedy(t *testing.T) {
	most := func(text []token.ID) []float64 {
		p := make([]float64, 9)
		p[(int(text[len(text)-1])*2+int(text[len(text)-3]))%9] = 1
		return p
	}
	y := sjdNewPlay(t, window, 9, most)
	y.begin(t, method.Noise{}, 1, 2, 3)
	want := slices.Clone(y.text)
	for len(y.text) < 150 {
		y.round(t)
	}
	for len(want) < len(y.text) {
		want = append(want, token.ID(slices.Index(most(want), 1)))
	}
	if !cmp.Equal(y.text, want) {
		t.Errorf("the text is %v, want %v", y.text, want)
	}
	t.Logf("%.2f tokens a round", 147/float64(y.rounds))
	if y.rounds > 100 {
		t.Errorf("%d rounds for 147 tokens", y.rounds)
	}
}
