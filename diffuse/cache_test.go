package diffuse

import (
	"context"
	"slices"
	"testing"

	"grove/internal/text/token"
)

// TestCaches counts the rows of passes, and follows worked traces.
func TestCaches(t *testing.T) {
	for _, c := range []struct {
		cache string
		s     Settings
		rows  int
		want  string
		runs  []int
	}{
		{cache: "none", s: Settings{Block: 4, Policy: "threshold"}, rows: 112},
		{cache: "prefix", s: Settings{Block: 4, Policy: "threshold"}, rows: 60, want: "0,3/2/1//6/4/5/7"},
		{cache: "dual", s: Settings{Block: 4, Policy: "threshold"}, rows: 52},
		{cache: "delayed:4", s: Settings{Policy: "static"}, rows: 70, want: "0/3/6/2/1/4/5/7", runs: []int{16, 16, 7, 6, 16, 4, 3, 2}},
		{cache: "delayed:1", s: Settings{Policy: "static"}, rows: 128},
		{cache: "vicinity:before=2,behind=2,warm=0", s: Settings{Block: 4, Policy: "threshold"}, rows: 66, want: "0,3/2/1//6/4/5/7", runs: []int{16, 8, 8, 16, 6, 6, 6}},
		{cache: "vicinity:before=2,behind=2,warm=2,every=2", s: Settings{Block: 4, Policy: "threshold"}, rows: 92, want: "0,3/2/1//6/4/5/7", runs: []int{16, 16, 16, 16, 6, 16, 6}},
		{cache: "vicinity:every=1", s: Settings{Block: 4, Policy: "threshold"}, rows: 112, want: "0,3/2/1//6/4/5/7"},
		{cache: "window:masks=4,active=2,every=4", s: Settings{Policy: "static"}, rows: 51, want: "0/1/3/2/6/4/5/7", runs: []int{16, 3, 3, 4, 16, 3, 3, 3}},
		{cache: "window:masks=2,active=2,every=9", s: Settings{Policy: "static"}, rows: 60, want: "0/1/2/3/4/5/6/7", runs: []int{16, 3, 2, 16, 3, 2, 16, 2}},
		{cache: "window:masks=8,active=8,every=1", s: Settings{Policy: "static"}, rows: 128, want: "0/3/6/2/1/4/5/7"},
		{cache: "recap", s: Settings{Policy: "static"}, rows: 72, want: "0/3/6/2/1/4/5/7", runs: []int{16, 2, 16, 2, 16, 2, 16, 2}},
		{cache: "recap", s: Settings{Policy: "static", Passes: 4}, rows: 40, want: "0,3/2,6/1,4/5,7", runs: []int{16, 4, 16, 4}},
		{cache: "recap:plain=3,more=2", s: Settings{Policy: "static"}, rows: 88, want: "0/3/6/2/4/7/1/5", runs: []int{16, 16, 16, 16, 3, 3, 16, 2}},
		{cache: "recap:more=0", s: Settings{Policy: "static"}, rows: 128, want: "0/3/6/2/1/4/5/7"},
	} {
		t.Run(c.cache, func(t *testing.T) {
			m := &toy{}
			c.s.Cache = c.cache
			got, g := trace(t, m, c.s)
			if rows := g.rows; rows != c.rows || c.runs != nil && !slices.Equal(m.runs, c.runs) || c.want != "" && got != c.want {
				t.Errorf("%d rows, %v: %s; want %d, %v: %s", rows, m.runs, got, c.rows, c.runs, c.want)
			}
			if !right(g) {
				t.Error("place 5 is wrong")
			}
			if shifted, _ := trace(t, &toy{shift: true}, c.s); shifted != got {
				t.Errorf("with a shifted head %s, want %s", shifted, got)
			}
		})
	}
}

// TestWindowHides: the rows of the second pass see the prompt, the first token, and the next four masks.
func TestWindowHides(t *testing.T) {
	m := &toy{t: t, prompt: 8}
	g, err := New(slices.Repeat([]token.ID{15}, 8), Settings{Length: 8, Mask: toyMask, Policy: "static", Cache: "window:masks=4,active=2,every=4"}, m, greedy{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var places []int
	for _, r := range m.seen[0] {
		places = append(places, r.Place)
	}
	if slices.Sort(places); !slices.Equal(places, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
		t.Errorf("the rows see %v", places)
	}
}

// watched is a board that checks what a pass sees: no place twice, each with what it was when it last ran, and all that the cache does not hide.
type watched struct {
	random
	t    *testing.T
	g    *Generator
	last map[int]token.ID
}

func (m *watched) Pass(ctx context.Context, branches [][]Row, keep int) error {
	at := map[int]bool{}
	for _, r := range m.kept {
		if at[r.Place] || m.last[r.Place] != r.ID {
			m.t.Errorf("place %d is seen as %d, and last was %d; twice: %v", r.Place, r.ID, m.last[r.Place], at[r.Place])
		}
		at[r.Place] = true
	}
	for _, r := range branches[0] {
		if at[r.Place] {
			m.t.Errorf("place %d runs and is seen", r.Place)
		}
		at[r.Place], m.last[r.Place] = true, r.ID
	}
	for place, u := range m.g.uses {
		if at[place] != (u != hidden) {
			m.t.Errorf("place %d is there: %v, with the use %d", place, at[place], u)
		}
	}
	return m.random.Pass(ctx, branches, keep)
}

// TestCachesSee runs every cache over random models with every policy that it goes with: the canvas is filled, and rows see what the plan says. A cache that is made anew in
// each pass gives what none gives.
func TestCachesSee(t *testing.T) {
	exact := []string{"delayed:1", "vicinity:every=1", "vicinity:warm=9999", "window:masks=99,active=99,every=1", "recap:more=0"}
	lossy := []string{"prefix", "dual", "delayed", "vicinity:before=1,behind=2,warm=1", "vicinity:before=0,behind=0,every=3", "window:masks=3,active=2,every=4", "window:masks=5,active=5,every=3", "recap", "recap:plain=2,more=3"}
	fill := func(seed uint64, s Settings) (canvas []Place, err error) {
		m := &watched{random: random{seed: seed, prompt: 3}, t: t, last: map[int]token.ID{}}
		if m.g, err = New([]token.ID{5, 6, 2}, s, m, coin{}); err != nil {
			return nil, err
		}
		for !m.g.Done() {
			if err := m.g.Step(t.Context()); err != nil {
				return nil, err
			}
		}
		return m.g.canvas, nil
	}
	fits := map[string]int{}
	for seed := range uint64(6) {
		for _, p := range Policies() {
			for _, block := range []int{0, 5} {
				s := Settings{Length: 13, Block: block, Policy: p.Name, Mask: 0, Shift: seed%2 == 1, Filter: linear{block: 13, slope: 20, bias: -14}}
				if seed%3 == 0 {
					s.Blocks, s.Delimiters = "adaptive:0.15", []token.ID{1, 2, 3}
				}
				if _, opens := New(nil, s, nil, nil); opens != nil {
					continue // the policy has blocks of its own
				}
				want, err := fill(seed, s)
				if err != nil {
					t.Fatal(p.Name, err)
				}
				for _, s.Cache = range slices.Concat(exact, lossy) {
					got, err := fill(seed, s)
					if _, opens := New(nil, s, nil, nil); opens != nil {
						continue // they do not go together
					}
					fits[s.Cache]++
					if err != nil {
						t.Fatalf("%+v: %v", s, err)
					}
					if slices.Contains(exact, s.Cache) && !slices.Equal(got, want) {
						t.Errorf("%+v: %v, want %v", s, got, want)
					}
				}
			}
		}
	}
	for _, c := range slices.Concat(exact, lossy) {
		if fits[c] < 12 {
			t.Errorf("cache %s went with %d runs", c, fits[c])
		}
	}
}
