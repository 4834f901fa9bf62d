package diffuse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// toy is the model T8: eight places, of which the place i has the token A_i (1+i) or B_i (11+i). Known neighbours make a place surer; while 4 is a mask, 5 has the tokens swapped.
type toy struct {
	t      *testing.T
	prompt int
	shift  bool
	runs   []int // rows of each pass
	kept   []Row
	last   [][]Row
	seen   [][]Row // what the branches of the last pass see: what was kept, and their rows
	canvas int     // evaluations of canvases
}

const toyMask = 0

var toyBase = []float64{.80, .55, .70, .93, .60, .52, .91, .56}

func (m *toy) Pass(_ context.Context, branches [][]Row, keep int) error {
	n := 0
	m.seen = m.seen[:0]
	for _, rows := range branches {
		n += len(rows)
		m.seen = append(m.seen, slices.Concat(m.kept, rows))
	}
	m.canvas += len(branches)
	m.runs, m.last = append(m.runs, n), branches
	m.kept = append(m.kept, branches[0][:keep]...)
	return nil
}

func (m *toy) Logits(branch, i int) []float32 {
	row := m.last[branch][i]
	if !row.Want {
		m.t.Fatalf("logits of row %d are read and were not wanted", i)
	}
	place := row.Place - m.prompt
	if m.shift {
		place++
	}
	known := func(at int) bool {
		if at < 0 {
			return true
		}
		for _, r := range m.seen[branch] {
			if r.Place == m.prompt+at {
				return r.ID != toyMask
			}
		}
		return false
	}
	c := toyBase[place]
	for _, near := range []int{place - 1, place + 1} {
		if near < len(toyBase) && known(near) {
			c += .15
		}
	}
	c = min(.99, math.Round(c*1e4)/1e4)
	logits := slices.Repeat([]float32{-1e9}, 20)
	a, b := 1+place, 11+place
	if place == 5 && !known(4) {
		a, b = b, a
	}
	logits[a], logits[b] = float32(math.Log(c/(1-c))), 0
	return logits
}

func (m *toy) Drop(gone func(place int) bool) error {
	m.kept = slices.DeleteFunc(m.kept, func(r Row) bool { return gone(r.Place) })
	return nil
}

func (m *toy) Reuse(context.Context, []token.ID) (int, error) { return 0, nil }

func (m *toy) Rows() int { return 1 << 10 }

// greedy draws the likeliest token.
type greedy struct{}

func (greedy) Draw(logits []float32, _, _ int) (token.ID, error) {
	best := 0
	for id, l := range logits {
		if l > logits[best] {
			best = id
		}
	}
	return token.ID(best), nil
}
func (greedy) Number(index, pass int) float64 { return float64(1+(index*7+pass*3)%11) / 13 }

// trace runs a generator on the toy, and returns what each pass fixed, as in "0,3/2", with // between blocks.
func trace(t *testing.T, m *toy, s Settings) (steps string, g *Generator) {
	t.Helper()
	if s.Length == 0 {
		s.Length = 8
	}
	s.Mask, s.Shift = toyMask, m.shift
	m.t, m.prompt = t, 8
	g, err := New(slices.Repeat([]token.ID{15}, 8), s, m, greedy{})
	if err != nil {
		t.Fatal(err)
	}
	read := g.read
	g.read = func(logits []float32, place, pass int) (Proposal, error) {
		p, err := read(logits, place, pass)
		p.P = math.Round(p.P*1e4) / 1e4 // some traces compare against .85 exactly
		return p, err
	}
	var all []string
	for !g.Done() {
		first, pass := g.first, g.pass
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		var fixed []string
		for at, p := range g.canvas {
			if p.Pass >= pass {
				fixed = append(fixed, fmt.Sprint(at))
			}
		}
		if len(all) > 0 {
			if g.first != first {
				all = append(all, "//")
			} else {
				all = append(all, "/")
			}
		}
		all = append(all, strings.Join(fixed, ","))
	}
	return strings.Join(all, ""), g
}

// right reports whether place 5 has its token.
func right(g *Generator) bool { return g.canvas[5].ID == 6 }

// TestToy follows the worked traces of the toy model, one for each policy.
func TestToy(t *testing.T) {
	for _, c := range []struct {
		policy, want string
		s            Settings
		wrong        bool
	}{
		{policy: "static", want: "0/3/6/2/1/4/5/7"},
		{policy: "static", s: Settings{Passes: 4}, want: "0,3/2,6/1,4/5,7"},
		{policy: "static", s: Settings{Passes: 2}, want: "0,2,3,6/1,4,5,7", wrong: true},
		{policy: "static:order=margin", want: "0/3/6/2/1/4/5/7"},
		{policy: "static:order=entropy", want: "0/3/6/2/1/4/5/7"},
		{policy: "static:order=left", want: "0/1/2/3/4/5/6/7"},
		{policy: "timestep:eps=0.001", s: Settings{Passes: 4}, want: "0/3,6/2,4/1,5,7"},
		{policy: "timestep:eps=0.001", want: "/0/3/6/2/1/4/5,7"},
		{policy: "threshold", want: "0,3,6/2/1/4/5/7"},
		{policy: "threshold:p=0.7", want: "0,2,3,6/1,4,7/5"},
		{policy: "threshold:p=1.5", want: "0/3/6/2/1/4/5/7"},
		{policy: "threshold:p=0", want: "0,1,2,3,4,5,6,7", wrong: true},
		{policy: "dynamic", want: "0,3,6/2/1/4/5/7"},
		{policy: "factor", want: "0,3,6/2,4/1,5/7"},
		{policy: "factor:f=2", want: "0,2,3,6/1,4,5,7", wrong: true},
		{policy: "entropy", want: "0,3,6/2/1/4/5/7"},
		{policy: "entropy:h=0", want: "0/3/6/2/1/4/5/7"},
		{policy: "entropy-sum:bound=1", want: "0,3,6/2,4/1,5/7"},
		{policy: "local-leap", want: "0,3,6/2/1/4/5/7"},
		{policy: "local-leap:near=0.7,radius=1", want: "0,2,3,6/1/4/5/7"},
		{policy: "local-leap:near=0.7,radius=0", want: "0,3,6/2/1/4/5/7"},
		{policy: "hierarchical", want: "0,3,6/2,4,7/1,5"},
		{policy: "credit", want: "0,3,6/2/1/4/7/5"},
		{policy: "credit:alpha=0", want: "0,3,6/2/1/4/5/7"},
		{policy: "ccd:warm=1,wide=4", want: "0/2,3,6/1,4,5,7", wrong: true},
		{policy: "ccd:warm=1,wide=2", want: "0/3,6/2/1/4,7/5"},
		{policy: "dimple:p=0.9", want: "0,3,6/2/1/4/5/7"},
		{policy: "dimple:p=1", s: Settings{Passes: 4}, want: "0/3,6/2,4/1,5,7"},
		{policy: "dimple:p=0", want: "0,1,2,3,4,5,6,7", wrong: true},
		{policy: "threshold", s: Settings{Block: 4}, want: "0,3/2/1//6/4/5/7"},
	} {
		t.Run(c.policy, func(t *testing.T) {
			c.s.Policy = c.policy
			got, g := trace(t, &toy{}, c.s)
			if got != c.want || right(g) == c.wrong {
				t.Errorf("got  %s, place 5 right: %v\nwant %s", got, right(g), c.want)
			}
			shifted, _ := trace(t, &toy{shift: true}, c.s)
			if shifted != c.want {
				t.Errorf("with a shifted head %s, want %s", shifted, c.want)
			}
		})
	}
}

// TestCreditNumbers: the worked confidences of the first pass, and what is left of a credit.
func TestCreditNumbers(t *testing.T) {
	p := &credit{p: 0.9, alpha: 0.7, beta: 0.8, gamma: 0.2}
	p.Begin(&View{End: 8})
	for at, want := range []float64{.969, .656, .787, .956, .702, .627, .942, .665} {
		c := toyBase[at]
		if at == 0 {
			c += .15
		}
		logits := []float32{float32(math.Log(c / (1 - c))), 0}
		var of Proposal
		of.read(logits)
		if got := p.fuse(0, at, &of); math.Abs(got-want) > 5e-4 {
			t.Errorf("place %d: %.4f, want %.3f", at, got, want)
		}
	}
}

// TestProposal reads a distribution of three tokens.
func TestProposal(t *testing.T) {
	var p Proposal
	p.read([]float32{float32(math.Log(.2)), float32(math.Log(.5)), float32(math.Log(.3))})
	entropy := -(.2*math.Log(.2) + .5*math.Log(.5) + .3*math.Log(.3))
	for name, d := range map[string]float64{"P": p.P - .5, "second": p.Second - .3, "gap": p.Gap - math.Log(.5/.3), "entropy": p.Entropy - entropy} {
		if math.Abs(d) > 1e-6 || p.ID != 1 {
			t.Errorf("%s is off by %g", name, d)
		}
	}
}

// TestRefused: settings that are none.
func TestRefused(t *testing.T) {
	usual := Settings{Length: 8, Mask: toyMask}
	for _, c := range []struct {
		want   string
		change func(s *Settings)
	}{
		{"a canvas of 0 tokens", func(s *Settings) { s.Length = 0 }},
		{"the model names no mask token", func(s *Settings) { s.Mask = token.None }},
		{"blocks of 9 tokens; they must have 1 to 8", func(s *Settings) { s.Block = 9 }},
		{"9 steps; there must be 1 to 8", func(s *Settings) { s.Passes = 9 }},
		{`policy "thresold" is not known`, func(s *Settings) { s.Policy = "thresold" }},
		{"policy threshold: p is \"x\"; it must be a number from 0 to 2; its options are: p=0.9", func(s *Settings) { s.Policy = "threshold:p=x" }},
		{"policy threshold: option \"q\" is not known", func(s *Settings) { s.Policy = "threshold:q=1" }},
		{"policy threshold: option \"p\" is no name=value", func(s *Settings) { s.Policy = "threshold:p" }},
		{`cache "tripel" is not known`, func(s *Settings) { s.Cache = "tripel" }},
		{`cache delayed: the number N is "0"; it must be a whole number of passes from 1 to 65536; its options are: N`, func(s *Settings) { s.Cache = "delayed:0" }},
		{"65 drafts of a canvas", func(s *Settings) { s.Drafts = 65 }},
		{"drafts of a canvas (FreeDave) verify the policy static", func(s *Settings) { s.Drafts = 2 }},
		{"with the cache delayed, which changes", func(s *Settings) { s.Drafts, s.Policy, s.Cache = 2, "static", "delayed" }},
		{`early "soon" is not known`, func(s *Settings) { s.Early = "soon" }},
		{`blocks "adaptive:2"`, func(s *Settings) { s.Blocks = "adaptive:2" }},
		{"no token of a line's end", func(s *Settings) { s.Blocks = "adaptive" }},
		{`cache dual: option "x" is not known; its options are: none`, func(s *Settings) { s.Cache = "dual:x" }},
		{`cache window: masks is "0"; it must be a whole number from 1 to 65536`, func(s *Settings) { s.Cache = "window:masks=0" }},
		{"cache window: active is 9; it must be at most masks, 8", func(s *Settings) { s.Cache = "window:masks=8,active=9" }},
		{`cache vicinity: option "all" is not known; its options are: before=16`, func(s *Settings) { s.Cache = "vicinity:all=1" }},
		{`cache recap: more is "-1"`, func(s *Settings) { s.Cache = "recap:more=-1" }},
		{"the cache recap groups the passes of the policy static", func(s *Settings) { s.Cache = "recap" }},
		{"the policy learned goes by a filter (tensors diffusion.filter.N), and the model's file has none", func(s *Settings) { s.Policy = "learned" }},
		{"blocks of 8 tokens; the model's filter", func(s *Settings) { s.Policy, s.Block, s.Filter = "learned", 8, linear{block: 4} }},
		{"the policy learned with blocks", func(s *Settings) {
			s.Policy, s.Blocks, s.Delimiters, s.Filter = "learned", "adaptive", []token.ID{1}, linear{block: 8}
		}},
		{"policy learned reads all places of a block, which the cache delayed does not run", func(s *Settings) { s.Policy, s.Cache, s.Filter = "learned", "delayed", linear{block: 8} }},
		{"the policy ete reads all of the canvas, which the cache dual does not run", func(s *Settings) { s.Policy, s.Cache = "ete", "dual" }},
		{"the policy ete with adaptive blocks or an early end", func(s *Settings) { s.Policy, s.Early = "ete", "end" }},
		{"policy rcr reads all places of a block, which the cache window does not run", func(s *Settings) { s.Cache, s.Policy = "window", "rcr" }},
		{"which the cache dual does not run", func(s *Settings) { s.Early, s.Cache = "prophet", "dual" }},
	} {
		s := usual
		c.change(&s)
		if _, err := New(nil, s, &toy{}, greedy{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// TestNeverFixes: a policy that fixes nothing is stopped, by name.
func TestNeverFixes(t *testing.T) {
	g, err := New(nil, Settings{Length: 8, Mask: toyMask, Policy: "timestep"}, &toy{t: t}, greedy{})
	if err != nil {
		t.Fatal(err)
	}
	g.policy = chooser{choose: func(*Decision, *View) {}}
	for range 1000 {
		if err = g.Step(t.Context()); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "policy timestep has run") || errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestRevisions: policies that revise end with a canvas without masks, in the passes that they say.
func TestRevisions(t *testing.T) {
	for _, c := range []struct {
		policy string
		s      Settings
		passes int
	}{
		{"rcr", Settings{Passes: 1}, 1}, {"rcr", Settings{}, 8}, {"rcr", Settings{Passes: 4, Block: 4}, 4},
		{"remdm:again=0", Settings{}, 8}, {"remdm:again=3", Settings{}, 11}, {"remdm:again=2,places=2", Settings{Passes: 4}, 6},
	} {
		c.s.Policy = c.policy
		steps, g := trace(t, &toy{}, c.s)
		if passes := g.pass; passes != c.passes || g.masks != 0 || len(g.Finished()) != 8 {
			t.Errorf("%s, %+v: %d passes, want %d: %s", c.policy, c.s, passes, c.passes, steps)
		}
	}
}

// TestAdaptive ends a block behind a delimiter: the token of place 3 of the toy, which lies in the window of a canvas of 32.
func TestAdaptive(t *testing.T) {
	s := Settings{Length: 8, Blocks: "adaptive", Delimiters: []token.ID{4}, Policy: "threshold"}
	if got, _ := trace(t, &toy{}, s); got != "0,3,6/2/1/4/5/7" {
		t.Errorf("a window of two places: %s", got)
	}
	g, err := New(nil, Settings{Length: 8, Blocks: "adaptive", Delimiters: []token.ID{1}, Mask: toyMask, Policy: "threshold"}, &toy{t: t}, greedy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Step(t.Context()); err != nil || g.end != 1 || !slices.Equal(g.canvas[1:], slices.Repeat([]Place{{ID: toyMask, Pass: -1}}, 7)) {
		t.Errorf("a block of %d places, error %v: %v", g.end, err, g.canvas)
	}
}

// TestProphet: the canvas is filled once its masks are sure.
func TestProphet(t *testing.T) {
	for _, c := range []struct {
		gaps []float64
		want string
	}{
		{[]float64{1e9, 1e9, 1e9}, "0/3/6/2/1/4/5/7"}, {[]float64{-1, -1, -1}, "0,1,2,3,4,5,6,7"}, {[]float64{9, 1.05, 9}, "0/3/1,2,4,5,6,7"},
	} {
		m := &toy{t: t, prompt: 8}
		g, err := New(slices.Repeat([]token.ID{15}, 8), Settings{Length: 8, Early: "prophet", Mask: toyMask, Policy: "static"}, m, greedy{})
		if err != nil {
			t.Fatal(err)
		}
		g.ahead.gaps = c.gaps
		var all []string
		for !g.Done() {
			pass := g.pass
			if err := g.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			var fixed []string
			for at, p := range g.canvas {
				if p.Pass >= pass {
					fixed = append(fixed, fmt.Sprint(at))
				}
			}
			all = append(all, strings.Join(fixed, ","))
		}
		if got := strings.Join(all, "/"); got != c.want {
			t.Errorf("%v: %s, want %s", c.gaps, got, c.want)
		}
	}
}

// TestCut: the canvas ends where the text does, and the next pass runs no row behind that.
func TestCut(t *testing.T) {
	m := &toy{}
	s := Settings{Early: "end", Ends: func(id token.ID) bool { return id == 4 }, Policy: "threshold"} // the token of place 3
	got, g := trace(t, m, s)
	if got != "0,3/2/1" || len(g.Finished()) != 4 || !slices.Equal(m.runs, []int{16, 12, 12}) {
		t.Errorf("%s, %d places, %v rows", got, len(g.Finished()), m.runs)
	}
}

// TestFreeDave: the tokens and their order are those of static decoding, in fewer passes.
func TestFreeDave(t *testing.T) {
	m := &toy{}
	steps, g := trace(t, m, Settings{Policy: "static", Drafts: 4})
	if passes := g.pass; passes != 4 || m.canvas != 11 || !right(g) {
		t.Errorf("%d passes of %d canvases, %s", passes, m.canvas, steps)
	}
}

// TestFreeDaveExact compares drafts with static decoding over random models, orders, caches and blocks.
func TestFreeDaveExact(t *testing.T) {
	saved := 0
	for seed := range uint64(60) {
		for _, s := range []Settings{{Length: 12}, {Length: 12, Block: 5}, {Length: 12, Block: 4, Cache: "prefix"}, {Length: 12, Block: 6, Cache: "dual"}} {
			s.Mask, s.Policy, s.Shift = 0, "static:order="+[]string{"confidence", "margin", "entropy", "left"}[seed%4], seed%2 == 0
			fill := func(drafts int) ([]Place, int) {
				s.Drafts = drafts
				g, err := New([]token.ID{5, 6}, s, &random{seed: seed, prompt: 2}, coin{})
				if err != nil {
					t.Fatal(err)
				}
				for !g.Done() {
					if err := g.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				passes := g.pass
				return g.canvas, passes
			}
			want, all := fill(0)
			for _, drafts := range []int{1, 2, 5} {
				got, passes := fill(drafts)
				for i := range want {
					if got[i].ID != want[i].ID || got[i].P != want[i].P {
						t.Fatalf("seed %d, %+v: place %d is %+v, want %+v", seed, s, i, got[i], want[i])
					}
				}
				if passes > all {
					t.Errorf("seed %d, %+v: %d passes, static decoding has %d", seed, s, passes, all)
				}
				saved += all - passes
			}
		}
	}
	if saved == 0 {
		t.Error("no pass was saved")
	}
}

// random is a model whose distributions follow from what a row sees, by a hash; neighbours weigh more.
type random struct {
	seed   uint64
	prompt int
	kept   []Row
	last   [][]Row
	seen   [][]Row
}

func (m *random) Pass(_ context.Context, branches [][]Row, keep int) error {
	m.seen = m.seen[:0]
	for _, rows := range branches {
		m.seen = append(m.seen, slices.Concat(m.kept, rows))
	}
	m.last = branches
	m.kept = append(m.kept, branches[0][:keep]...)
	return nil
}

func (m *random) Logits(branch, i int) []float32 {
	place := m.last[branch][i].Place
	h := m.seed*0x9e3779b97f4a7c15 + uint64(place)*0xbf58476d1ce4e5b9
	for _, r := range m.seen[branch] {
		if d := r.Place - place; d >= -1 && d <= 1 {
			h = (h ^ uint64(r.ID+7)*uint64(d+3)) * 0x94d049bb133111eb
		}
	}
	logits := make([]float32, 8)
	for id := range logits {
		h = h*6364136223846793005 + 1442695040888963407
		logits[id] = float32(h>>40) / (1 << 22)
	}
	return logits
}

func (m *random) Drop(gone func(place int) bool) error {
	m.kept = slices.DeleteFunc(m.kept, func(r Row) bool { return gone(r.Place) })
	return nil
}

func (m *random) Reuse(context.Context, []token.ID) (int, error) { return 0, nil }

func (m *random) Rows() int { return 40 }

// coin draws by a random number of the place and the step.
type coin struct{ greedy }

func (coin) Draw(logits []float32, index, step int) (token.ID, error) {
	best := 0
	for id, l := range logits {
		noise := float32((index*31+step*17+id*7)%13) / 4
		if l += noise; id > 0 && (best == 0 || l > logits[best]+float32((index*31+step*17+best*7)%13)/4) {
			best = id
		}
	}
	return token.ID(best), nil
}
