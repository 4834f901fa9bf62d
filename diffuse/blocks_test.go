package diffuse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
)

// chain is a model of blocks whose distributions follow from all that a row sees, in its order, by a hash.
type chain struct {
	seed uint64
	most int // rows of a pass
	kept []Row
	last [][]Row
	runs [][]int // places of the rows of each pass
}

func (m *chain) Pass(_ context.Context, branches [][]Row, keep int) error {
	var places []int
	for _, rows := range branches {
		for _, r := range rows {
			places = append(places, r.Place)
		}
	}
	if len(places) > m.most {
		return fmt.Errorf("a pass of %d rows, of %d at most", len(places), m.most)
	}
	m.runs = append(m.runs, places)
	if m.last != nil {
		m.kept = append(m.kept, m.last[0]...)
	}
	m.last = [][]Row{branches[0][:keep]}
	m.last = append(m.last, branches...)
	return nil
}

func (m *chain) Logits(branch, i int) []float32 {
	rows := m.last[1+branch]
	end := i + 1
	for end < len(rows) && rows[end].Block == rows[i].Block {
		end++
	}
	h := m.seed*0x9e3779b97f4a7c15 + uint64(rows[i].Place)
	for n, r := range slices.Concat(m.kept, rows[:end]) {
		if r.Place != n && (m.kept == nil || n < len(m.kept)) {
			panic("a row sees keys out of order")
		}
		h = (h ^ uint64(r.ID+7)) * 0x94d049bb133111eb
		h ^= h >> 29
	}
	logits := make([]float32, 8)
	for id := range logits {
		h = h*6364136223846793005 + 1442695040888963407
		logits[id] = float32(h>>40) / (1 << 22)
	}
	return logits
}

func (m *chain) Drop(gone func(place int) bool) error {
	m.kept = slices.DeleteFunc(m.kept, func(r Row) bool { return gone(r.Place) })
	return nil
}

func (m *chain) Reuse(context.Context, []token.ID) (int, error) { return 0, nil }

func (m *chain) Rows() int { return m.most }

// fillBlocks fills a text of a model of blocks.
func fillBlocks(t *testing.T, m *chain, prompt int, s Settings) (*Generator, []Place) {
	t.Helper()
	ids := make([]token.ID, prompt)
	for i := range ids {
		ids[i] = token.ID(1 + i%6)
	}
	g, err := New(ids, s, m, coin{})
	if err != nil {
		t.Fatal(err)
	}
	for !g.Done() {
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	places := slices.Clone(g.Finished())
	for i := range places {
		places[i].Pass = 0
	}
	return g, places
}

// TestBlocks compares the tokens and their probabilities of a model of blocks: with the keys of finished blocks and with all rows in each pass, with the rows of a finished block
// in the pass of the next one and in one of their own, with drafts and without.
func TestBlocks(t *testing.T) {
	for seed := range uint64(24) {
		for _, policy := range []string{"static", "static:order=left", "dynamic:p=0.2", "threshold:p=0.3", "entropy-sum:bound=2", "first-hitting", "hierarchical", "credit", "rcr"} {
			prompt := int(seed % 9)
			s := Settings{Length: 3 + int(seed%12), Native: 4, Policy: policy, Mask: toyMask, Shift: seed%2 == 1}
			what := fmt.Sprintf("seed %d, %s, prompt of %d, %d tokens, shift %v", seed, policy, prompt, s.Length, s.Shift)
			m := &chain{seed: seed, most: 64}
			g, want := fillBlocks(t, m, prompt, s)
			if len(want) != s.Length {
				t.Fatalf("%s: %d tokens", what, len(want))
			}
			for i, rows := range m.runs[1:] {
				if len(rows) > 9 {
					t.Errorf("%s: pass %d has rows %v", what, i+1, rows)
				}
			}
			apart := &chain{seed: seed, most: 5}
			if _, got := fillBlocks(t, apart, prompt, s); !slices.Equal(got, want) {
				t.Errorf("%s: with clean passes of their own %v, want %v", what, got, want)
			}
			s.Cache = "none"
			if _, got := fillBlocks(t, &chain{seed: seed, most: 64}, prompt, s); !slices.Equal(got, want) {
				t.Errorf("%s: without a cache %v, want %v", what, got, want)
			}
			if s.Cache = ""; strings.HasPrefix(policy, "static") {
				s.Drafts = 3
				d, got := fillBlocks(t, &chain{seed: seed, most: 64}, prompt, s)
				if !slices.Equal(got, want) || d.pass > g.pass {
					t.Errorf("%s: with drafts %v in %d passes, want %v in %d", what, got, d.pass, want, g.pass)
				}
			}
		}
	}
}

// TestBlockRows expects the rows of each pass: blocks are aligned to the text, a partial last block of the prompt begins the first one, finished blocks run once more beside
// the next one, and the last block is whole although the answer ends in it.
func TestBlockRows(t *testing.T) {
	m := &chain{seed: 1, most: 64}
	_, places := fillBlocks(t, m, 6, Settings{Length: 4, Native: 4, Policy: "static", Mask: toyMask})
	want := [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 6, 7}, {4, 5, 6, 7, 8, 9, 10, 11}, {8, 9, 10, 11}, {8, 9, 10, 11}, {8, 9, 10, 11}}
	if diff := cmp.Diff(want, m.runs); diff != "" {
		t.Error(diff)
	}
	_, longer := fillBlocks(t, &chain{seed: 1, most: 64}, 6, Settings{Length: 9, Native: 4, Policy: "static", Mask: toyMask})
	if !slices.Equal(longer[:4], places) {
		t.Errorf("a longer answer begins with %v, want %v", longer[:4], places)
	}
	m = &chain{seed: 1, most: 9} // a prompt of more rows than a pass has
	if _, got := fillBlocks(t, m, 30, Settings{Length: 2, Native: 4, Policy: "static", Mask: toyMask}); len(got) != 2 || len(m.runs[0]) != 8 {
		t.Errorf("%d tokens, %v", len(got), m.runs)
	}
	if _, err := New(nil, Settings{Length: 8, Native: 4, Mask: toyMask}, &chain{most: 3}, greedy{}); err != nil {
		t.Fatal(err)
	}
}

// TestBlocksOfOne: blocks of one token are decoded as an autoregressive model does: each token from those before it.
func TestBlocksOfOne(t *testing.T) {
	for _, shift := range []bool{false, true} {
		for seed := range uint64(20) {
			_, got := fillBlocks(t, &chain{seed: seed, most: 64}, 5, Settings{Length: 8, Native: 4, Block: 1, Mask: toyMask, Shift: shift})
			text := []token.ID{1, 2, 3, 4, 5}
			for i, p := range got {
				m := &chain{seed: seed, most: 64}
				var rows []Row
				for at, id := range append(slices.Clone(text), toyMask) {
					rows = append(rows, Row{Place: at, ID: id, Block: at, Want: true})
				}
				if err := m.Pass(t.Context(), [][]Row{rows}, 0); err != nil {
					t.Fatal(err)
				}
				at := len(rows) - 1
				if shift {
					at--
				}
				one, err := readWith(coin{}, toyMask)(m.Logits(0, at), i, i)
				if err != nil || one.ID != p.ID || one.P != p.P {
					t.Fatalf("seed %d, token %d is %d (%g), want %d (%g)", seed, i, p.ID, p.P, one.ID, one.P)
				}
				text = append(text, p.ID)
			}
		}
	}
}

// TestFirstHitting: a pass fixes one place, each equally often first.
func TestFirstHitting(t *testing.T) {
	p, err := OpenPolicy("first-hitting")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]int, 4)
	for run := range uint64(4000) {
		v := View{End: 4, Masked: []int{0, 1, 2, 3}, Number: func(place int) float64 {
			h := (4*run + uint64(place) + 1) * 0x9e3779b97f4a7c15
			h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
			return float64((h^h>>27)*0x94d049bb133111eb>>11) / (1 << 53)
		}}
		var d Decision
		p.Choose(&d, &v)
		if len(d.Fix) != 1 {
			t.Fatalf("%d places are fixed", len(d.Fix))
		}
		first[d.Fix[0]]++
	}
	for at, n := range first { // a standard deviation is 27
		if n < 880 || n > 1120 {
			t.Errorf("place %d is first %d times of 4000", at, n)
		}
	}
	if g, got := fillBlocks(t, &chain{seed: 3, most: 64}, 4, Settings{Length: 8, Native: 4, Policy: "first-hitting", Mask: toyMask}); g.pass != len(got) {
		t.Errorf("%d passes for %d tokens", g.pass, len(got))
	}
}

// TestBlocksRefused: settings that a model of blocks does not have.
func TestBlocksRefused(t *testing.T) {
	for _, c := range []struct {
		want string
		s    Settings
	}{
		{"blocks of 5 tokens; those of the model have 4, and may have fewer", Settings{Native: 4, Block: 5}},
		{"blocks of -1 tokens", Settings{Native: 4, Block: -1}},
		{"cache dual is of models whose rows all see each other", Settings{Native: 4, Cache: "dual"}},
		{`cache "tripel" is not known`, Settings{Native: 4, Cache: "tripel"}},
		{"cache blocks: finished blocks stay as they are in models of blocks alone", Settings{Cache: "blocks"}},
		{"early ends are of models whose rows all see each other", Settings{Native: 4, Early: "end"}},
	} {
		c.s.Length, c.s.Mask = 8, toyMask
		if _, err := New(nil, c.s, &chain{}, greedy{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	g, err := New([]token.ID{1, 2, 3, 4, 5, 6}, Settings{Length: 8, Native: 4, Mask: toyMask}, &chain{most: 3}, greedy{})
	if err == nil {
		err = g.Step(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "a pass has 3 rows at most; a block of 4 tokens does not fit") {
		t.Errorf("a small pass: error %v", err)
	}
}

// TestBlocksUsualPolicy: where none is named, a model of blocks has the policy dynamic.
func TestBlocksUsualPolicy(t *testing.T) {
	differs := false
	for seed := range uint64(20) {
		passes := map[string]int{}
		for _, policy := range []string{"", "dynamic", "threshold"} {
			g, _ := fillBlocks(t, &chain{seed: seed, most: 64}, 3, Settings{Length: 13, Native: 4, Passes: 5, Policy: policy})
			passes[policy] = g.pass
		}
		if passes[""] != passes["dynamic"] {
			t.Errorf("seed %d: %d passes, of dynamic %d", seed, passes[""], passes["dynamic"])
		}
		differs = differs || passes["dynamic"] != passes["threshold"]
	}
	if !differs {
		t.Error("the policies do not differ")
	}
}
