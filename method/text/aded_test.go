package text

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func newAded() *aded { return &aded{matrix: NewTrigram(adedMost)} }

// adedNewText returns a text for which a method drafts.
func adedNewText(t *testing.T, a *aded, prompt ...token.ID) *growtest.Text {
	t.Helper()
	x := growtest.NewText(t, a)
	x.Begin(t, prompt...)
	return x
}

// TestPromise has the worked numbers of the search.
func TestPromise(t *testing.T) {
	for _, c := range []struct {
		score          float32
		visits, parent int32
		weight, want   float32
	}{{1.5, 1, 10, 0.5, 27.48}, {3, 2, 10, 0.2, 8.43}} {
		if got := promise(c.score, c.visits, c.parent, c.weight); math.Abs(float64(got-c.want)) > 0.005 {
			t.Errorf("score %v, %d visits, weight %v: %v, want %v", c.score, c.visits, c.weight, got, c.want)
		}
	}
}

// TestWeight: a trigram gains 0.04 a step while it is in the window of 16 tokens, 14 times, and each time that it is seen again; 3 at most.
func TestWeight(t *testing.T) {
	a := newAded()
	x := adedNewText(t, a, 1, 2, 3)
	for step := 1; step < 20; step++ {
		if got, want := a.matrix.First(TrigramPair(1, 2)).Units, int32(min(step, 14)); got != want {
			t.Fatalf("step %d: %d units, want %d", step, got, want)
		}
		x.Add(token.ID(100 + step))
	}
	for range 100 {
		x.Begin(t, 1, 2, 3)
	}
	if got := TrigramUnit * float64(a.matrix.First(TrigramPair(1, 2)).Units); got != 3 {
		t.Errorf("a weight of %v, want 3", got)
	}
	x.Add(slices.Repeat([]token.ID{7, 8, 9}, 20)...)
	if got := a.matrix.First(TrigramPair(7, 8)).Units; got != 20 {
		t.Errorf("one step of 60 tokens: %d units, want 20", got)
	}
}

func TestAdedDraft(t *testing.T) {
	for _, c := range []struct {
		name       string
		text, want []token.ID
	}{
		{"empty", nil, nil},
		{"one token", []token.ID{1}, nil},
		{"nothing is known", []token.ID{1, 2, 3}, nil},
		{"one successor everywhere", []token.ID{1, 2, 3, 4, 5, 6, 7, 8, 1, 2}, []token.ID{3, 4, 5, 6}},
		{"until none is known", []token.ID{1, 2, 3, 9, 1, 2}, []token.ID{3, 9, 1, 2}},
		{"not by one token", []token.ID{1, 2, 3, 7, 2}, nil},
	} {
		if got := growtest.IDs(adedNewText(t, newAded(), c.text...).Draft(t, 64)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	// 3 followed 1 2 twice, 4 once: both are drafted.
	x := adedNewText(t, newAded(), 1, 2, 4, 8, 1, 2, 3, 9, 1, 2, 3, 9, 1, 2)
	tree := x.Draft(t, 1)
	if got := growtest.IDs(tree); !slices.Equal(got, []token.ID{3, 4}) || tree.Nodes()[0].Score <= tree.Nodes()[1].Score {
		t.Errorf("drafts %v", tree.Nodes())
	}
}

// learned is a method that has seen a random text.
func learned(t *testing.T, seed uint64, tokens, length int) (*aded, []token.ID) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var ids []token.ID
	for range length {
		ids = append(ids, token.ID(min(rng.IntN(tokens), rng.IntN(tokens))))
	}
	a := newAded()
	adedNewText(t, a, ids...)
	return a, ids
}

// slowNode is a node of the search by the definition.
type slowNode struct {
	path     []token.ID // from the token before the root
	units    int32      // the weight of its trigram
	sum      int32      // of the weights of the path
	visits   int
	score    float32
	children []*slowNode
}

// slowSearch is the search by the definition: all paths are kept whole. It returns the visits of each path.
func slowSearch(m *TrigramMatrix, before, last token.ID) map[string]int {
	random := rand.New(rand.NewPCG(1, 2))
	root := &slowNode{path: []token.ID{before, last}}
	following := func(path []token.ID) (ids []token.ID, units []int32) {
		n := len(path)
		for x := m.First(TrigramPair(path[n-2], path[n-1])); x != nil; x = m.After(x) {
			ids, units = append(ids, x.ID), append(units, x.Units)
		}
		return ids, units
	}
	for range iterations {
		way := []*slowNode{root}
		for at := root; len(at.children) > 0; way = append(way, at) {
			parent := at
			value := func(c *slowNode) float64 {
				if c.visits == 0 {
					return math.Inf(1)
				}
				return float64(promise(c.score, int32(c.visits), int32(parent.visits), TrigramUnit*float32(c.units)))
			}
			at = parent.children[0]
			for _, c := range parent.children[1:] {
				if value(c) > value(at) {
					at = c
				}
			}
		}
		leaf := way[len(way)-1]
		if len(leaf.path)-1 < adedLongest {
			ids, units := following(leaf.path)
			for i, id := range ids {
				leaf.children = append(leaf.children, &slowNode{
					path: append(slices.Clone(leaf.path), id), units: units[i], sum: leaf.sum + units[i],
				})
			}
			if len(ids) > 0 {
				leaf = leaf.children[len(ids)-1]
				way = append(way, leaf)
			}
		}
		sum, path := leaf.sum, slices.Clone(leaf.path)
		for len(path)-1 < adedLongest {
			ids, units := following(path)
			var pool []int // a place for each unit
			for i, n := range units {
				pool = append(pool, slices.Repeat([]int{i}, int(n))...)
			}
			if len(pool) == 0 {
				break
			}
			i := pool[random.Int32N(int32(len(pool)))]
			sum, path = sum+units[i], append(path, ids[i])
		}
		for _, n := range way {
			n.visits++
			n.score += 1 + TrigramUnit*float32(sum)
		}
	}
	visits := map[string]int{}
	var list func(n *slowNode)
	list = func(n *slowNode) {
		visits[adedKey(n.path)] = n.visits
		for _, c := range n.children {
			list(c)
		}
	}
	list(root)
	return visits
}

func adedKey(path []token.ID) (s string) {
	for _, id := range path {
		s += string(rune(id))
	}
	return s
}

// TestSearch compares the visits of all nodes with those of the search by the definition.
func TestSearch(t *testing.T) {
	for seed := range uint64(12) {
		a, ids := learned(t, seed, 5+int(seed)*2, 300)
		for i := 1; i < 40; i++ {
			s := newSearch(a.matrix)
			s.run(ids[i-1], ids[i])
			got := map[string]int{}
			for n := range s.nodes {
				var path []token.ID
				for at := int32(n); at != adedNone; at = s.nodes[at].parent {
					path = append(path, s.nodes[at].id)
				}
				path = append(path, s.before)
				slices.Reverse(path)
				got[adedKey(path)] = int(s.nodes[n].visits)
			}
			if d := cmp.Diff(slowSearch(a.matrix, ids[i-1], ids[i]), got); d != "" {
				t.Fatalf("seed %d, behind %v: %s", seed, ids[i-1:i+1], d)
			}
		}
	}
}

// TestAdedBounds: where much is known there are fewer than 64 drafts in 4 levels, parents come first, and the same drafts come again.
func TestAdedBounds(t *testing.T) {
	a, ids := learned(t, 3, 30, 20000)
	x := adedNewText(t, a, ids[:2]...)
	tree := x.Draft(t, 64)
	if n := tree.Len(); n < kept || n > 2*kept || len(growtest.PerDepth(tree)) > adedLongest {
		t.Errorf("%d drafts in levels of %v", n, growtest.PerDepth(tree))
	}
	for i, n := range tree.Nodes() {
		if int(n.Parent) >= i {
			t.Errorf("draft %d precedes its parent", i)
		}
	}
	if d := cmp.Diff(growtest.IDs(tree), growtest.IDs(x.Draft(t, 64))); d != "" {
		t.Errorf("the same search gives others: %s", d)
	}
	if n := len(x.Drafter.(*adedDrafter).search.nodes); n > 1+iterations*TrigramWidest {
		t.Errorf("%d nodes", n)
	}
	small := method.NewTree(5, 1000)
	small.Reset(2, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), small); err != nil || small.Len() != 5 {
		t.Errorf("%d drafts of 5: %v", small.Len(), err)
	}
}

// TestSalt: texts of a salt share what is known, texts of another salt do not.
func TestSalt(t *testing.T) {
	i, err := method.Find("aded")
	if err != nil {
		t.Fatal(err)
	}
	var salts [2]*aded
	for n := range salts {
		m, err := i.Open(method.Env{})
		if err != nil {
			t.Fatal(err)
		}
		salts[n] = m.(*aded)
	}
	adedNewText(t, salts[0], 1, 2).Add(3, 4, 5, 6)
	if got := growtest.IDs(adedNewText(t, salts[0], 9, 1, 2).Draft(t, 64)); !slices.Equal(got, []token.ID{3, 4, 5, 6}) {
		t.Errorf("drafts %v of the same salt", got)
	}
	if got := growtest.IDs(adedNewText(t, salts[1], 9, 1, 2).Draft(t, 64)); got != nil {
		t.Errorf("drafts %v of another salt", got)
	}
}

// TestAdedRepeated: of a text that repeats, each round accepts 4 drafts from the second period on.
func TestAdedRepeated(t *testing.T) {
	period := []token.ID{5, 7, 1, 9, 2, 2, 8, 3, 4, 6, 11}
	x := adedNewText(t, newAded(), append(period, period[:2]...)...)
	at := 2
	for round := range 20 {
		tree, from, n := x.Draft(t, 64), method.Root, 0
		for ok := true; ; n++ {
			if from, ok = tree.Child(from, period[(at+n)%len(period)]); !ok {
				break
			}
		}
		if n != adedLongest {
			t.Fatalf("round %d accepts %d drafts", round, n)
		}
		for range n + 1 {
			x.Add(period[at%len(period)])
			at++
		}
	}
}

// TestAdedClasses: each class has a place, and no belief exceeds the share.
func TestAdedClasses(t *testing.T) {
	seen := map[int]bool{}
	for depth := int32(1); depth <= adedLongest; depth++ {
		for units := int32(1); units <= TrigramHeaviest; units++ {
			for _, share := range []float32{0.1, 0.5, 0.8, 1} {
				class, belief := adedClassOf(depth, units, share)
				if class < 0 || class >= method.Classes || belief > share {
					t.Fatalf("class %d, belief %v of a share of %v", class, belief, share)
				}
				seen[class] = true
			}
		}
	}
	if len(seen) != method.Classes {
		t.Errorf("%d classes", len(seen))
	}
}
