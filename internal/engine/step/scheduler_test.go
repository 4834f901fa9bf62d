package step

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/engine/plan"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
	"grove/method"
)

const page = forest.SlotsPerPage

// newMaker returns a maker of four slots with six pages, for steps of 16 rows, that has no model.
func newMaker(t *testing.T) *Maker {
	t.Helper()
	cache, err := kv.New(kv.Config{
		Layers: []kv.Layer{{KVHeads: 1, KeySize: 4}}, Type: tensor.F32, Context: 4 * page, Tokens: 2 * page, Seqs: 4, Scratch: page,
	})
	if err != nil {
		t.Fatal(err)
	}
	m := new(Maker)
	m.Init(Config{Cache: cache, Chunk: 16, Seqs: 4, MaxOpen: 8})
	return m
}

// admit opens a trunk of a priority, with a slot and a text of n tokens in the cache.
func (m *Maker) admit(t *testing.T, priority, n int) *Trunk {
	t.Helper()
	trunk := &Trunk{Terms: Terms{Priority: priority}}
	err := errors.Join(m.Open(trunk, m.MaxOpen), m.Admit(trunk))
	if err == nil && n > 0 {
		err = m.Cache.Pad(trunk.Seq, n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return trunk
}

// TestRank expects the trunks of the highest priority first, and of these the oldest; one that is owed its turn is as urgent as any.
func TestRank(t *testing.T) {
	trunks := map[string]*Trunk{
		"old":         {arrival: 1},
		"young":       {arrival: 4},
		"urgent":      {arrival: 3, Terms: Terms{Priority: 2}},
		"late":        {arrival: 5, Terms: Terms{Priority: 2}},
		"owed":        {arrival: 6, Terms: Terms{Priority: MinPriority}, owed: true},
		"most urgent": {arrival: 7, Terms: Terms{Priority: MaxPriority}},
		"unimportant": {arrival: 2, Terms: Terms{Priority: -1}},
	}
	names := []string{"unimportant", "young", "late", "most urgent", "owed", "urgent", "old"}
	slices.SortFunc(names, func(a, b string) int { return rank(trunks[a], trunks[b]) })
	want := []string{"owed", "most urgent", "urgent", "late", "old", "young", "unimportant"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestOwe expects the oldest of the trunks that wait to be owed its turn once enough others have passed.
func TestOwe(t *testing.T) {
	m := newMaker(t)
	running, owed := &Trunk{arrival: 1}, &Trunk{arrival: 2, waits: true, owed: true}
	young, oldest := &Trunk{arrival: 7, waits: true}, &Trunk{arrival: 5, waits: true}
	called := []*Trunk{running, owed, young, oldest, {arrival: 6, waits: true}}
	for m.passed = range mostPassed {
		m.owe(called)
		if i := slices.IndexFunc(called, func(o *Trunk) bool { return o != owed && o.owed }); i >= 0 {
			t.Fatalf("behind %d that have passed trunk %d is owed its turn", m.passed, i)
		}
	}
	m.passed = mostPassed
	m.owe(called)
	if !oldest.owed || young.owed || running.owed || m.passed != 0 {
		t.Errorf("oldest %v, young %v, running %v; %d have passed", oldest.owed, young.owed, running.owed, m.passed)
	}
}

// TestPreempt checks which trunk loses its pages to one that needs some.
func TestPreempt(t *testing.T) {
	m := newMaker(t)
	empty, low := m.admit(t, MinPriority, 0), m.admit(t, -1, page)
	middle, high := m.admit(t, 0, page), m.admit(t, 1, page)
	for _, c := range []struct {
		name         string
		needs        *Trunk
		pinned, step []*Trunk
		want         *Trunk
	}{
		{"the last in rank that has pages", high, nil, nil, low},
		{"not one of the step", high, nil, []*Trunk{low}, middle},
		{"not one that keeps its pages", high, []*Trunk{low}, nil, middle},
		{"not one of a higher rank", low, nil, nil, nil},
		{"of lower rank alone", middle, nil, nil, low},
		{"a trunk that keeps its pages outranks all", empty, []*Trunk{empty}, nil, low},
	} {
		for _, o := range c.pinned {
			o.Pinned = true
		}
		m.step.parts = c.step
		if got := m.preemptable(c.needs); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		for _, o := range c.pinned {
			o.Pinned = false
		}
	}
	m.step.parts = nil
	err := m.Reserve(high, func() error {
		if !low.Preempted {
			return kv.ErrFull
		}
		return nil
	})
	if load := m.Load.Now(); err != nil || low.Len() != 0 || middle.Preempted || middle.Len() != page || load.Preempted != 1 {
		t.Errorf("%v: the last in rank has %d tokens, the next one %d, lost %v; %+v", err, low.Len(), middle.Len(), middle.Preempted, load)
	}
}

// idle is a job that needs what take gives.
type idle struct{ take func() error }

func (j idle) Need() (Need, error)    { return Need{TakePages: j.take}, nil }
func (idle) Place(*Step) error        { return nil }
func (idle) Take(*Step) (bool, error) { return true, nil }

// TestFit: a trunk waits for pages while others have some; by itself it fails.
func TestFit(t *testing.T) {
	m := newMaker(t)
	trunk := m.admit(t, 0, 0)
	trunk.job = idle{func() error { return kv.ErrFull }}
	if fits, err := m.fit(trunk); fits || !errors.Is(err, kv.ErrFull) {
		t.Errorf("by itself: %v, %v", fits, err)
	}
	m.admit(t, MaxPriority, page)
	if fits, err := m.fit(trunk); fits || err != nil {
		t.Errorf("beside another: %v, %v", fits, err)
	}
	trunk.job = idle{func() error { return nil }}
	if fits, err := m.fit(trunk); !fits || err != nil {
		t.Errorf("with pages: %v, %v", fits, err)
	}
}

// TestOpenAndClose counts the trunks that are open: those whose slot was taken while nobody called do not count.
func TestOpenAndClose(t *testing.T) {
	m := newMaker(t)
	a, b := m.admit(t, 0, page), m.admit(t, 0, 0)
	a.away = true
	m.Load.Note(func(l *Load) { l.Open-- })
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if load := m.Load.Now(); load.Open != 0 || load.Admitted != 0 || load.Pages.Used != 0 || load.Opened != 2 {
		t.Errorf("%+v", load)
	}
}

// TestPromptRows checks how the rows of a step that are left go to prompts.
func TestPromptRows(t *testing.T) {
	type want struct {
		Rows  int
		Clock float64
	}
	row := func(seconds float64) *plan.Cost { // of so many seconds a row
		return &plan.Cost{Rows: []int{1, 101}, Layers: []float64{seconds, 101 * seconds}}
	}
	for _, c := range []struct {
		name     string
		priority []int
		prompt   []int
		decoding int
		cost     *plan.Cost
		want     []want
	}{
		{"the first one first", []int{0, 0}, []int{10, 10}, 0, row(1e-6), []want{{10, 10}, {6, 6}}},
		{"four steps of priority count half", []int{prioritySteps, -prioritySteps}, []int{8, 8}, 0, row(1e-6), []want{{8, 4}, {8, 16}}},
		{"within the time of a step", []int{0}, []int{16}, 1, row(0.1), []want{{1, 1}}},
		{"a row, however slow", []int{0}, []int{16}, 1, row(10), []want{{1, 1}}},
		{"all by itself", []int{0}, []int{100}, 0, row(10), []want{{16, 16}}},
	} {
		m := newMaker(t)
		m.Costs.Set(c.cost)
		st := &m.step
		for i, n := range c.prompt {
			o := m.admit(t, c.priority[i], 0)
			o.need.Prompt, st.called = n, append(st.called, o)
		}
		st.parts = append(st.parts, st.called...)
		m.schedulePrompts(st, plan.StepSize{Rows: c.decoding, Logits: c.decoding}, c.decoding, st.parts)
		var got []want
		for _, o := range st.parts {
			got = append(got, want{o.Rows, o.clock})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestFixedRows checks which jobs get the rows that they must have.
func TestFixedRows(t *testing.T) {
	for _, c := range []struct {
		name         string
		rows         []int
		want         []int
		tokens, used int
	}{
		{"all", []int{1, 2, 3}, []int{1, 2, 3}, 3, 6},
		{"as many as the step has", []int{8, 8}, []int{8, 8}, 2, 16},
		{"what does not fit waits for the next step", []int{8, 9, 8}, []int{8, 8}, 2, 16},
	} {
		m := newMaker(t)
		st := &m.step
		for _, n := range c.rows {
			o := m.admit(t, 0, 0)
			o.need = Need{Rows: n, Decodes: true}
			st.parts = append(st.parts, o)
		}
		tokens, used := m.scheduleFixed(st)
		var got []int
		for _, o := range st.parts {
			got = append(got, o.Rows)
		}
		if tokens != c.tokens || used != c.used || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v of %d rows for %d tokens, want %v of %d for %d", c.name, got, used, tokens, c.want, c.used, c.tokens)
		}
	}
}

// TestAwaits checks when a trunk leaves a page to another one that is about to compute it.
func TestAwaits(t *testing.T) {
	text := make([]token.ID, 3*page)
	other := append([]token.ID{1}, text[1:]...)
	for _, c := range []struct {
		name       string
		have       int // tokens of both in the cache
		text, mine []token.ID
		change     func(first, t *Trunk)
		want       bool
	}{
		{"the same text", 0, text, text, nil, true},
		{"the same beginning", 0, text, append(slices.Clone(text[:page]), other...), nil, true},
		{"another text", 0, text, other, nil, false},
		{"the other has less than the page", 0, text[:page-1], text, nil, false},
		{"the last token is its own", 0, text, text[:page], nil, false},
		{"within a page", page / 2, text, text, nil, false},
		{"another salt", 0, text, text, func(_, t *Trunk) { t.Terms.Salt = "other" }, false},
		{"another source", 0, text, text, func(_, t *Trunk) { t.Source = &Source{Name: "other"} }, false},
		{"the other has no rows", 0, text, text, func(first, _ *Trunk) { first.Rows = 0 }, false},
	} {
		m := newMaker(t)
		first, trunk := m.admit(t, 0, c.have), m.admit(t, 0, c.have)
		first.need, first.Rows = Need{Prompt: len(c.text), Text: c.text}, 8
		trunk.need = Need{Prompt: len(c.mine), Text: c.mine}
		if c.change != nil {
			c.change(first, trunk)
		}
		m.step.parts = []*Trunk{first, trunk}
		if got := m.awaits(trunk); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if m.awaits(first) {
			t.Errorf("%s: the first one waits", c.name)
		}
	}
}

// TestDraftsLeaveRows: drafts of several rounds share the rows of a step; a quarter of these is left to prompts.
func TestDraftsLeaveRows(t *testing.T) {
	for name, c := range map[string]struct{ prompt, want int }{"decoding": {0, 14}, "beside a prompt": {5, 10}} {
		m := newMaker(t)
		cost := &plan.Cost{Rows: []int{1, 64}, Layers: []float64{1e-3, 1.1e-3}}
		m.Costs.Set(cost)
		st := &m.step
		for range 2 {
			o := m.admit(t, 0, 0)
			tree, p := method.NewTree(32, 100), new(plan.Planner)
			tree.Reset(32, method.NewRates(1))
			for at, n := method.Root, 0; n < 20; n++ {
				at = tree.Add(at, token.ID(n), 0, 1)
			}
			p.Begin(cost, 0)
			p.Choose(tree)
			o.need = Need{Rows: 1, Decodes: true, Drafts: p}
			st.parts, st.rounds = append(st.parts, o), append(st.rounds, o)
		}
		if c.prompt > 0 {
			o := m.admit(t, 0, 0)
			o.need.Prompt = c.prompt
			st.parts = append(st.parts, o)
		}
		m.share(st, 2, 2)
		got := 0
		for _, o := range st.rounds {
			got += len(o.need.Drafts.Chosen())
		}
		if got != c.want {
			t.Errorf("%s: %d drafts in a step of %d rows, want %d", name, got, m.Chunk, c.want)
		}
	}
}
