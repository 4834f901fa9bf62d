package text

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
)

// grow makes a tree of one text.
func grow(text []token.ID) *SuffixTree {
	t := NewSuffixTree()
	t.Use(text, 0)
	for i := range text {
		t.Extend(i)
	}
	return t
}

// suffixesKey returns a run of tokens below 256 as a string.
func suffixesKey(ids []token.ID) string {
	b := make([]byte, len(ids))
	for i, id := range ids {
		b[i] = byte(id)
	}
	return string(b)
}

// occurrences counts the runs of tokens of some texts, as far as the tree holds them.
func occurrences(texts ...[]token.ID) map[string]int {
	counts := map[string]int{}
	for _, text := range texts {
		for i := range text {
			for n := 1; n <= min(SuffixDeepest, len(text)-i); n++ {
				counts[suffixesKey(text[i:i+n])]++
			}
		}
	}
	return counts
}

// held returns the runs of tokens that a tree holds with their counts, and fails where it does not keep what must hold.
func held(t *testing.T, x *SuffixTree) map[string]int {
	t.Helper()
	counts, nodes := map[string]int{}, 0
	var walk func(n int32, before []token.ID)
	walk = func(n int32, before []token.ID) {
		nodes++
		node := x.nodes[n]
		for i := range int(node.length) {
			before = append(slices.Clone(before), x.at(node.start+i))
			counts[suffixesKey(before)] = int(node.count)
		}
		sum, last := int32(0), int32(suffixesNone)
		for c := node.first; c != suffixesNone; c = x.nodes[c].next {
			y := &x.nodes[c]
			if y.parent != n || y.length < 1 || y.id != x.at(y.start) || x.child(n, y.id) != c || c != node.first && y.prev != last {
				t.Fatalf("node %d: child %d is %+v", n, c, *y)
			}
			if last != suffixesNone && x.nodes[last].count < y.count {
				t.Fatalf("node %d: a child of %d occurrences stands before one of %d", n, x.nodes[last].count, y.count)
			}
			if n != suffixesRoot && y.count == node.count {
				t.Fatalf("node %d and its child have the count %d", n, y.count)
			}
			sum, last = sum+y.count, c
			walk(c, before)
		}
		if node.first != suffixesNone && x.nodes[node.first].prev != last {
			t.Fatalf("node %d: the last child is %d, the list ends with %d", n, x.nodes[node.first].prev, last)
		}
		if n != suffixesRoot && sum > node.count {
			t.Fatalf("node %d: %d occurrences, %d of its children", n, node.count, sum)
		}
	}
	walk(suffixesRoot, nil)
	if nodes-1 != x.used {
		t.Fatalf("%d nodes, %d in the table", nodes-1, x.used)
	}
	return counts
}

var example = []token.ID{1, 2, 3, 1, 2, 4, 1, 2, 3, 5, 1, 2}

func TestExample(t *testing.T) {
	x := grow(example)
	for _, c := range []struct {
		ids  []token.ID
		want int
	}{{[]token.ID{2}, 4}, {[]token.ID{1, 2}, 4}, {[]token.ID{2, 3}, 2}, {[]token.ID{2, 4}, 1}, {[]token.ID{1, 2, 3}, 2}, {[]token.ID{2, 5}, 0}, {nil, 0}} {
		if got := x.Count(c.ids); got != c.want {
			t.Errorf("%v occurs %d times, want %d", c.ids, got, c.want)
		}
	}
	held(t, x)
	p, _ := x.Suffix(1)
	drafts, score := x.Chain(nil, p, 1, 0.1)
	if diff := cmp.Diff([]SuffixDraft{{3, -1, 0, 0.5}}, drafts); diff != "" || score != 0.5 {
		t.Errorf("one token matches: score %v (-want +got):\n%s", score, diff)
	}
	p, _ = x.Suffix(2)
	drafts, score = x.Chain(nil, p, 2, 0.1)
	if diff := cmp.Diff([]SuffixDraft{{3, -1, 0, 0.5}, {1, 0, 1, 0.5}}, drafts); diff != "" || score != 0.75 {
		t.Errorf("two tokens match: score %v (-want +got):\n%s", score, diff)
	}
	if _, ok := x.Suffix(3); ok {
		t.Error("something follows 5 1 2")
	}
	drafts, score = x.Branch(nil, &SuffixBranches{}, p, 4, 0.1)
	if diff := cmp.Diff([]SuffixDraft{{3, -1, 0, 0.5}, {4, -1, 0, 0.25}, {1, 0, 1, 0.5}, {5, 0, 1, 0.5}}, drafts); diff != "" || score != 1.25 {
		t.Errorf("a tree of drafts: score %v (-want +got):\n%s", score, diff)
	}
}

// TestRandom grows random texts behind each other, forgets the oldest, and compares with a count of all runs of tokens.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		x := NewSuffixTree()
		var log []token.ID
		var texts [][]token.ID
		base, alphabet := 0, 1+rng.IntN(4)
		for range 12 {
			if len(texts) > 0 && rng.IntN(3) == 0 {
				n := len(texts[0])
				x.Forget(base, base+n)
				log, texts, base = slices.Clone(log[n:]), texts[1:], base+n
				x.Use(log, base)
			} else {
				var text []token.ID
				for range 1 + rng.IntN(SuffixDeepest+30) {
					text = append(text, token.ID(rng.IntN(alphabet)))
				}
				for _, id := range text {
					log = append(log, id)
					x.Use(log, base)
					x.Extend(base + len(log) - 1)
				}
				x.End()
				texts = append(texts, text)
			}
			if want, got := occurrences(texts...), held(t, x); !maps.Equal(want, got) {
				t.Fatalf("%d texts of %d tokens: %d runs of tokens, want %d, or others", len(texts), alphabet, len(got), len(want))
			}
		}
	}
}

// TestSuffixes compares the places of a growing text's suffixes with a search, after every token.
func TestSuffixes(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 20 {
		x := NewSuffixTree()
		var text []token.ID
		for range 100 {
			text = append(text, token.ID(rng.IntN(3)))
			x.Use(text, 0)
			x.Extend(len(text) - 1)
			for n := 1; n <= min(len(text), SuffixDeepest); n++ {
				want, _ := x.Find(text[len(text)-n:])
				if got, follows := x.Suffix(n); got != want || follows != (x.Count(text[len(text)-n:]) > 1 && x.nodes[got.node].first != suffixesNone) {
					t.Fatalf("%v: %d tokens end at %v, want %v", text, n, got, want)
				}
			}
		}
	}
}

// TestSize bounds the memory of texts that make the most of it, and shows that storage is used again.
func TestSize(t *testing.T) {
	const n = 20_000
	x := NewSuffixTree()
	for name, f := range map[string]func(i int) token.ID{
		"one token":  func(int) token.ID { return 7 },
		"two tokens": func(i int) token.ID { return token.ID(i % 2) },
		"random":     func(i int) token.ID { return token.ID(rand.New(rand.NewPCG(1, uint64(i))).IntN(3)) },
		"rising":     func(i int) token.ID { return token.ID(i) },
	} {
		x.Reset()
		text := make([]token.ID, n)
		for i := range text {
			text[i] = f(i)
		}
		x.Use(text, 0)
		for i := range text {
			x.Extend(i)
		}
		if len(x.nodes) > 2*n+1 {
			t.Errorf("%s: %d nodes of %d tokens", name, len(x.nodes), n)
		}
		x.End()
		if x.Forget(0, n); x.used != 0 || x.nodes[suffixesRoot].first != suffixesNone {
			t.Errorf("%s: %d nodes are left of nothing", name, x.used)
		}
	}
}

// BenchmarkExtend measures a token of a random text.
func BenchmarkExtend(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]token.ID, 1<<14)
	for i := range text {
		text[i] = token.ID(rng.ExpFloat64() * 200)
	}
	x := NewSuffixTree()
	x.Use(text, 0)
	for i := range b.N {
		if i%len(text) == 0 {
			x.Reset()
		}
		x.Extend(i % len(text))
	}
}
