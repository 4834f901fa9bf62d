package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
	"grove/internal/verify"
)

func newTree(nodes, vocabulary, depth int) *Tree {
	t := NewTree(nodes, vocabulary)
	t.Reset(depth, NewRates(4))
	return t
}

func TestTreeAdd(t *testing.T) {
	tree := newTree(8, 10, 3)
	a := tree.Add(Root, 3, 0, 0.5)
	b := tree.Add(a, 4, 0, 0.5)
	for _, refused := range []struct {
		name       string
		parent, id int
		class      int
	}{
		{"below the vocabulary", Root, -1, 0},
		{"beyond the vocabulary", Root, 10, 0},
		{"the largest id", Root, math.MaxInt32, 0},
		{"a class below", Root, 1, -1},
		{"a class beyond", Root, 1, Classes},
	} {
		if at := tree.Add(refused.parent, token.ID(refused.id), refused.class, 0.5); at != Root || tree.Len() != 2 {
			t.Errorf("%s: added as %d", refused.name, at)
		}
	}
	if got := tree.Add(Root, 3, 7, 0.9); got != a || tree.Len() != 2 || tree.Score(a) != 0.5 {
		t.Errorf("an equal draft became node %d of %d, of score %v", got, tree.Len(), tree.Score(a))
	}
	c := tree.Add(b, 5, 0, 0.5)
	if got := tree.Add(c, 6, 0, 0.5); got != Root {
		t.Error("a draft deeper than allowed was added")
	}
	if c == Root || tree.Nodes()[c].Depth != 3 || tree.Nodes()[c].Parent != int32(b) {
		t.Errorf("node %d is %+v", c, tree.Nodes()[c])
	}
	for id := range token.ID(10) {
		tree.Add(Root, id, 0, 0.5)
	}
	if tree.Len() != 8 {
		t.Errorf("%d nodes in a tree of 8", tree.Len())
	}
	if got, ok := tree.Child(Root, 3); !ok || got != a {
		t.Errorf("child 3 of the root is %d, %v", got, ok)
	}
	if _, ok := tree.Child(a, 9); ok {
		t.Error("a child that was never added")
	}
	var got []token.ID
	for _, at := range tree.Children(nil, Root) {
		got = append(got, tree.Nodes()[at].ID)
	}
	if want := []token.ID{3, 0, 1, 2, 4, 5}; !cmp.Equal(got, want) {
		t.Errorf("children %v, want %v", got, want)
	}
	tree.Reset(3, NewRates(1))
	if tree.Len() != 0 || len(tree.Children(nil, Root)) != 0 {
		t.Error("a tree that was reset is not empty")
	}
}

// rising allows no token that is not above that of its parent.
type rising struct{ *Tree }

func (r rising) Allows(node int, id token.ID) bool { return node == Root || id > r.Nodes()[node].ID }

// TestTreeLegal expects no drafts but those that may follow their parents, unless they were drawn.
func TestTreeLegal(t *testing.T) {
	tree := newTree(8, 10, 4)
	tree.Legal = rising{tree}
	a := tree.Add(Root, 5, 0, 0.5)
	if tree.Add(a, 3, 0, 0.5) != Root || tree.Add(a, 5, 0, 0.5) != Root {
		t.Error("a draft that may not follow was added")
	}
	if b := tree.Add(a, 6, 0, 0.5); a == Root || b == Root || tree.Add(Root, 3, 0, 0.5) == Root {
		t.Errorf("a draft that may follow was refused, as %d or %d", a, b)
	}
	if tree.AddSample(a, 1, 0, 0, 0.5) == Root {
		t.Error("a draft that was drawn was refused")
	}
}

// TestRestore leaves out rates that make no sense.
func TestRestore(t *testing.T) {
	good := []ClassRate{{0, Rate{1, 1}}, {2*Classes - 1, Rate{0, 50}}}
	r := NewRates(1)
	r.Restore(0, append([]ClassRate{{-1, Rate{1, 2}}, {2 * Classes, Rate{1, 2}}, {3, Rate{-1, 2}}, {4, Rate{3, 2}}, {5, Rate{1, 1e9}}}, good...))
	if d := cmp.Diff(good, r.Known(0)); d != "" {
		t.Error(d)
	}
}

// TestTreeScores expects products of what drafters believe, the best of what several believe, and nothing below the
// floor unless it was drawn.
func TestTreeScores(t *testing.T) {
	tree := newTree(8, 10, 4)
	tree.Floor = 0.2
	a := tree.Add(Root, 1, 0, 0.5)
	b := tree.Add(a, 1, 0, 0.5)
	if tree.Score(Root) != 1 || tree.Score(a) != 0.5 || tree.Score(b) != 0.25 {
		t.Errorf("scores %v, %v, %v", tree.Score(Root), tree.Score(a), tree.Score(b))
	}
	if tree.Add(b, 1, 0, 0.5) != Root {
		t.Error("a draft below the floor was added")
	}
	tree.SetDrafter(1)
	if tree.Add(a, 1, 3, 0.9) != b || math.Abs(float64(tree.Score(b))-0.45) > 1e-6 {
		t.Errorf("two drafters agree on %v", tree.Score(b))
	}
	if tree.Add(a, 1, 3, 7); tree.Score(b) > tree.Score(a) {
		t.Errorf("a draft scores %v behind one of %v", tree.Score(b), tree.Score(a))
	}
	tree.SetDistribution(b, verify.Distribution{IDs: []token.ID{1}, P: []float32{1}})
	if tree.Add(b, 1, 0, 0.01) == Root {
		t.Error("a draft that was drawn was refused")
	}
	if !tree.Sampled() || len(tree.DraftDistribution(b).IDs) != 1 || len(tree.DraftDistribution(Root).IDs) != 0 || len(tree.DraftDistribution(b+1).IDs) != 0 {
		t.Errorf("distributions %v, %v", tree.DraftDistribution(Root), tree.DraftDistribution(b))
	}
}

// TestTreeLearns expects the estimate of a class to follow what was accepted, for the classes of each drafter alone.
func TestTreeLearns(t *testing.T) {
	rates := NewRates(2)
	tree := NewTree(8, 10)
	for range 200 {
		tree.Reset(4, rates)
		tree.SetDrafter(0)
		a := tree.Add(Root, 1, 5, 0.5)
		tree.Add(a, 2, 6, 0.5)
		tree.SetDrafter(1)
		tree.Add(Root, 3, 5, 0.5)
		tree.Learn(Root, 1)
		tree.Learn(a, 9)
	}
	tree.Reset(4, rates)
	tree.SetDrafter(0)
	if up, down := tree.Estimate(5, 0.5), tree.Estimate(6, 0.5); up < 0.95 || down > 0.05 {
		t.Errorf("always right: %v; never right: %v", up, down)
	}
	if other := tree.Estimate(7, 0.5); other != 0.5 {
		t.Errorf("a class that was never used: %v", other)
	}
	tree.SetDrafter(1)
	a := tree.Add(Root, 4, 5, 0.5) // beside the draft of another drafter: a class of its own
	tree.SetDrafter(0)
	tree.Add(Root, 4, 9, 0.5)
	if s := tree.Score(a); s != 0.5 {
		t.Errorf("score %v", s)
	}
}

func TestRates(t *testing.T) {
	r := NewRates(1)
	o := origin{source: 0, class: 4}
	if got := r.at(&o, 0.3); got != 0.3 {
		t.Errorf("nothing is known: %v", got)
	}
	for range 1000 {
		r.learn(o, true)
	}
	if c := r.Drafters[0][4]; c.Tried > 1/(1-keepRate)+1 || c.Accepted > c.Tried {
		t.Errorf("%v of %v: the past is not forgotten", c.Accepted, c.Tried)
	}
	for range 34 {
		r.learn(o, false)
	}
	if got := r.at(&o, 0); math.Abs(float64(got)-0.5) > 0.02 {
		t.Errorf("after as many failures as halve the past: %v", got)
	}
	next := NewRates(2)
	next.Carry(r)
	if c := next.Drafters[0][4]; c.Tried > carriedTrials || math.Abs(float64(c.Accepted/c.Tried-r.Drafters[0][4].Accepted/r.Drafters[0][4].Tried)) > 1e-6 {
		t.Errorf("carried %+v of %+v", c, r.Drafters[0][4])
	}
	sum := NewRates(1)
	sum.Merge(r)
	if !cmp.Equal(sum.Drafters[0], r.Drafters[0]) {
		t.Error("what is new was not taken over")
	}
	other := NewRates(1)
	other.Drafters[0][4] = Rate{Accepted: 0, Tried: 10}
	sum.Merge(other)
	if got, want := sum.Drafters[0][4].Accepted, r.Drafters[0][4].Accepted/2; got != want {
		t.Errorf("merged to %v, want %v", got, want)
	}
}

// TestIndex compares with a scan of the text, for texts of few tokens that come in parts.
func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		n := 1 + rng.IntN(5)
		x := NewIndex(n)
		var text []token.ID
		for range 1 + rng.IntN(4) {
			for range rng.IntN(20) {
				text = append(text, token.ID(rng.IntN(3)))
			}
			x.Cover(text)
			key := text
			if rng.IntN(2) == 0 && len(text) > 0 {
				key = text[:rng.IntN(len(text))]
			}
			if got, want := x.Find(text, key), scan(text, key, n); got != want {
				t.Fatalf("n %d, text %v, key %v: %+v, want %+v", n, text, key, got, want)
			}
		}
	}
	long := make([]token.ID, 5000) // a table that grows
	for i := range long {
		long[i] = token.ID(i * i % 1009)
	}
	x := NewIndex(2)
	x.Cover(long)
	for end := 2; end <= len(long); end++ {
		if got, want := x.Find(long, long[:end]), scan(long, long[end-2:end], 2); got != want {
			t.Fatalf("the pair before %d: %+v, want %+v", end, got, want)
		}
	}
	x.Reset()
	if got := x.Find(nil, long); got.Count != 0 {
		t.Errorf("an index that was reset finds %+v", got)
	}
}

func scan(text, key []token.ID, n int) (f Found) {
	if len(key) < n {
		return f
	}
	key = key[len(key)-n:]
	for end := n; end < len(text); end++ {
		if !slices.Equal(text[end-n:end], key) {
			continue
		}
		if f.Count == 0 {
			f.End = int32(end)
		}
		f.Count++
		f.Mixed = f.Mixed || text[end] != text[f.End]
	}
	return f
}

// TestRecent: a drafter whose drafts were not accepted in the last rounds is believed less, whatever their class; rounds without drafts
// give it another chance.
func TestRecent(t *testing.T) {
	r := NewRates(2)
	tree := NewTree(8, 100)
	score := func(source, class int) float32 {
		tree.Reset(8, r)
		tree.SetDrafter(source)
		return tree.Score(tree.Add(Root, 1, class, 0.5))
	}
	for class := range 4 {
		score(0, class)
		tree.Learn(Root, 2)
	}
	// Four drafts of classes of their own were expected with 0.5 each: 1/(1 + 0.5 (1 + 0.97 + 0.97^2 + 0.97^3)) is left, decayed by a round.
	if got, want := score(0, 9), float32(0.5/(1+0.5*0.97*(1+0.97+0.97*0.97+0.97*0.97*0.97))); math.Abs(float64(got-want)) > 1e-5 {
		t.Errorf("behind four drafts that were rejected: %v, want %v", got, want)
	}
	if got := score(1, 9); got != 0.5 {
		t.Errorf("another drafter: %v", got)
	}
	for range 200 {
		score(1, 10)
	}
	if got := score(0, 9); got < 0.49 {
		t.Errorf("200 rounds later: %v", got)
	}
}
