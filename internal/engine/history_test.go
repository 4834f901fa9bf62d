package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/engine/adapters"
	"grove/internal/engine/plan"
	"grove/internal/history"
	"grove/internal/model/synthetic"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// verbs are the operations on an engine with few slots and pages. Sequences have numbers; an operation on a sequence that is not open, and
// one that opens an open one, is passed over.
var verbs = history.Verbs{
	"engine":   {About: 0, Names: "model seqs tokens rows"}, // the first one; model 1 has layers with a window
	"open":     {About: 1, Names: "story tokens seed heat priority salt draft stages adapter"},
	"next":     {About: -1, Names: "tokens"}, // tokens of several sequences, whose first ones share a step
	"append":   {About: 1, Names: "story tokens"},
	"fork":     {About: 2, Names: "index"},
	"truncate": {About: 1, Names: "back"},  // by so many tokens; one is left
	"cancel":   {About: 1, Names: "after"}, // a token under a context that ends when it has been asked so often
	"siblings": {About: 1},                 // ends the calls of the sequences that it was forked from or into
	"refused":  {About: 1},                 // tokens that do not fit, and one that is none
	"close":    {About: 1},
}

// named is how many sequences random histories name; engines are made for fewer.
const named = 6

// TestHistories replays the histories of testdata.
func TestHistories(t *testing.T) { histories(t).Replay(t) }

// TestRandomHistories makes histories up, and expects of each sequence what it gives alone.
func TestRandomHistories(t *testing.T) {
	n := 60
	if long {
		n = 1000
	}
	histories(t).Check(t, n)
}

// histories are the kind of history of an engine: each sequence must give the tokens that it gives alone, without drafts, and nothing may be
// left in the end.
func histories(t *testing.T) history.Kind {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var beds []*bed
	var sets [][]*adapters.Set // by bed: none, and two
	for _, spec := range []modeltest.Spec{{Context: 300}, {Arch: "gemma3", Layers: 7, Context: 300}} {
		file := spec.File(t)
		b := newBed(t, 1, file)
		beds, sets = append(beds, b), append(sets, adapted(t, b, file))
	}
	return history.Kind{Verbs: verbs, Random: randomHistory, Run: func(h history.History) error {
		ctx, end := context.WithTimeout(t.Context(), 20*time.Second) // for what waits for ever
		defer end()
		p := &player{t: t, ctx: ctx, open: map[int]*told{}}
		first := history.Op{}
		if len(h) > 0 && h[0].Verb == "engine" {
			first = h[0]
		}
		p.bed, p.sets = beds[first.Get("model", 0)&1], sets[first.Get("model", 0)&1]
		seqs := min(max(1, first.Get("seqs", 3)), named)
		p.begin(engine.Config{Seqs: seqs, Queue: named, Tokens: max(300, first.Get("tokens", 300)), Chunk: max(1, first.Get("rows", 40))})
		for i, o := range h {
			if err := p.do(o); err != nil {
				return fmt.Errorf("operation %d: %s: %w", i+1, o, err)
			}
		}
		return p.finish()
	}}
}

// adapted returns no set of adapters and two with one each.
func adapted(t *testing.T, b *bed, base *gguf.File) []*adapters.Set {
	t.Helper()
	all, registry := []*adapters.Set{nil}, &adapters.Registry{Base: adapters.Base{File: base, Info: b.m.Info(), Pool: b.pool}}
	for seed := range uint64(2) {
		metadata, tensors, err := synthetic.Adapter(base, seed, 2, tensor.F32, func(name string) bool { return strings.Contains(name, "attn_q") }, nil)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := gguf.Write(&file, metadata, tensors); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), fmt.Sprint(seed, ".gguf"))
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := registry.Load(adapters.File{Name: fmt.Sprint(seed), Path: path, Scale: 1})
		if err != nil {
			t.Fatal(err)
		}
		set, err := registry.Set([]adapters.Scale{{ID: a.ID, Scale: 3}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, set)
	}
	return all
}

// randomHistory makes a history up.
func randomHistory(r *rand.Rand) (h history.History) {
	add := func(verb string, about []int, named ...history.Named) {
		h = append(h, history.Op{Verb: verb, About: about, Named: named})
	}
	is := func(name string, n int) history.Named { return history.Named{Name: name, Number: n} }
	add("engine", nil, is("model", r.IntN(4)/3), is("seqs", 1+r.IntN(5)), is("tokens", 300+r.IntN(2)*200), is("rows", []int{9, 40, 200}[r.IntN(3)]))
	open := []int{}
	for range 10 + r.IntN(30) {
		free := slices.DeleteFunc([]int{1, 2, 3, 4, 5, 6}, func(n int) bool { return slices.Contains(open, n) })
		verb := r.IntN(20)
		if len(open) == 0 || len(free) > 0 && verb < 3 {
			add("open", free[:1], is("story", r.IntN(3)), is("tokens", 1+r.IntN([]int{30, 160, 260}[r.IntN(3)])), is("seed", 1+r.IntN(9)), is("heat", r.IntN(3)),
				is("priority", r.IntN(3)-1), is("salt", r.IntN(4)/3), is("draft", r.IntN(3)), is("stages", r.IntN(3)), is("adapter", max(0, r.IntN(5)-2)))
			open = append(open, free[0])
			continue
		}
		at := r.IntN(len(open))
		one := open[at : at+1 : at+1]
		switch {
		case verb < 8:
			add("next", one, is("tokens", 1+r.IntN(15)))
		case verb < 12:
			r.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
			add("next", slices.Clone(open[:1+r.IntN(len(open))]), is("tokens", 1+r.IntN(10)))
		case verb < 14:
			add("append", one, is("story", r.IntN(3)), is("tokens", 1+r.IntN(40)))
		case verb == 14 && len(free) > 0:
			add("fork", []int{one[0], free[0]}, is("index", r.IntN(3)))
			open = append(open, free[0])
		case verb < 17:
			add("truncate", one, is("back", []int{r.IntN(20), r.IntN(200)}[r.IntN(2)]))
		case verb == 17:
			add("cancel", one, is("after", r.IntN(12)))
		case verb == 18:
			add([]string{"refused", "siblings", "refused"}[r.IntN(3)], one)
		case verb == 19:
			add("close", one)
			open = slices.Delete(open, at, at+1)
		}
	}
	return h
}

// part is what was done to a text: tokens were appended, or followed, or drawn.
type part struct {
	ids     []token.ID
	follows bool
	drawn   []sample.Token
	index   int // of the draws
}

// told is a sequence, and its text as it came to be.
type told struct {
	*engine.Sequence
	answer    engine.Answer
	adapters  *adapters.Set
	parts     []part
	text      []token.ID
	prompt    int // tokens of the text when some were appended last
	index     int
	family    *int // shared by forks
	cancelled bool
}

func (s *told) add(p part) {
	s.parts = append(s.parts, p)
	s.text = append(s.text, p.ids...)
	for _, d := range p.drawn {
		s.text = append(s.text, d.ID)
	}
}

// player replays a history on an engine.
type player struct {
	*bed
	t      *testing.T
	ctx    context.Context
	e      *engine.Engine
	drafts []*engine.Drafting
	sets   []*adapters.Set
	open   map[int]*told
}

func (p *player) begin(c engine.Config) {
	p.e = p.engine(p.t, c)
	p.e.Impatient()
	p.e.SetCost(&engine.Cost{
		Rows: []int{1, 32}, Layers: []float64{1e-4, 3e-4}, Head: plan.Curve{X: []int{1, 32}, Y: []float64{0, 0}}, Correction: []float64{1, 1},
	})
	p.drafts = []*engine.Drafting{nil, openDrafters(p.t, p.e, false, oracles), openDrafters(p.t, p.e, true, oracles)}
}

// passage returns the tokens of a story between two indices; different stories part after 70 tokens.
func passage(n, from, to int) (ids []token.ID) {
	for i := from; i < to; i++ {
		id := i*17 + 5
		if i >= 70 {
			id += 7 * n
		}
		ids = append(ids, token.ID(id%48))
	}
	return ids
}

// do does an operation.
func (p *player) do(o history.Op) error {
	switch o.Verb {
	case "engine":
		return nil
	case "next":
		return p.next(o)
	}
	n := o.About[0]
	s := p.open[n]
	if (s == nil) != (o.Verb == "open") {
		return nil
	}
	if s != nil && s.cancelled && o.Verb != "close" {
		if _, err := s.Next(p.ctx); !errors.Is(err, engine.ErrCancelled) && !errors.Is(err, engine.ErrContext) {
			return fmt.Errorf("a cancelled sequence gives %v", err)
		}
		return nil
	}
	switch o.Verb {
	case "open":
		return p.start(n, o)
	case "append":
		ids := passage(o.Get("story", 0)&3, len(s.text), min(len(s.text)+max(0, o.Get("tokens", 0)), p.e.Context()))
		if err := s.Append(p.ctx, ids); err != nil {
			return err
		}
		s.add(part{ids: ids})
		s.prompt = len(s.text)
	case "fork":
		return p.fork(s, o)
	case "truncate":
		to := max(1, len(s.text)-max(0, o.Get("back", 0)))
		if err := s.Truncate(to); err != nil {
			return err
		}
		whole := s.text[:to]
		s.prompt = min(s.prompt, to)
		s.parts, s.text = nil, nil
		s.add(part{ids: whole[:s.prompt]})
		s.add(part{ids: whole[s.prompt:], follows: true})
	case "cancel":
		return p.draw(&countdown{p.ctx, o.Get("after", 0)}, s, 1)
	case "siblings":
		s.CancelSiblings()
		for _, other := range p.open {
			other.cancelled = other.cancelled || other != s && other.family == s.family
		}
	case "refused":
		if err := s.Append(p.ctx, passage(0, 0, p.e.Context())); !errors.Is(err, engine.ErrContext) {
			return fmt.Errorf("too many tokens: %v", err)
		}
		if err := s.Append(p.ctx, []token.ID{48}); err == nil {
			return errors.New("a token that is none is taken")
		}
	case "close":
		return p.end(n)
	}
	return nil
}

// start opens a sequence with a prompt.
func (p *player) start(n int, o history.Op) error {
	s := &told{family: new(int), adapters: p.sets[min(max(0, o.Get("adapter", 0)), 2)], answer: engine.Answer{Sampling: sample.Params{Temperature: 0.7 * float32(o.Get("heat", 0)), Seed: uint64(o.Get("seed", 1))}}}
	switch o.Get("stages", 0) {
	case 1:
		s.answer.Penalties = sample.Penalties{Presence: 1, Repeat: 1.3}
	case 2:
		all := make([]token.ID, 40)
		for i := range all {
			all[i] = token.ID(i)
		}
		s.answer.Stages = []sample.Stage{words{legal: all, forced: map[token.ID][]token.ID{7: {3}, 3: {4}}}}
	}
	var err error
	if s.Sequence, err = p.e.NewSequence(s.answer); err != nil {
		return skipBusy(err)
	}
	p.open[n] = s
	if err := s.SetTerms(engine.Terms{Priority: min(max(engine.MinPriority, o.Get("priority", 0)), engine.MaxPriority), Salt: []string{"", "other"}[o.Get("salt", 0)&1], Adapters: s.adapters}); err != nil {
		return err
	}
	ids := passage(o.Get("story", 0)&3, 0, min(max(1, o.Get("tokens", 1)), p.e.Context()))
	if d := min(max(0, o.Get("draft", 0)), 2); d > 0 {
		alone, err := p.alone(s, []part{{ids: ids}, {drawn: make([]sample.Token, min(60, p.e.Context()-len(ids)))}})
		if err != nil {
			return err
		}
		whole := slices.Clone(ids)
		for _, c := range alone {
			whole = append(whole, c.ID)
		}
		if err := s.SetDrafting(p.drafts[d], whole); err != nil {
			return err
		}
	}
	if err := s.Append(p.ctx, ids); err != nil {
		return err
	}
	s.add(part{ids: ids})
	s.prompt = len(s.text)
	return nil
}

func skipBusy(err error) error {
	if errors.Is(err, engine.ErrBusy) {
		return nil
	}
	return err
}

func (p *player) fork(s *told, o history.Op) error {
	if p.open[o.About[1]] != nil {
		return nil
	}
	f, err := s.Fork(max(0, o.Get("index", 0)))
	if err != nil {
		return skipBusy(err)
	}
	y := &told{Sequence: f, answer: s.answer, adapters: s.adapters, parts: slices.Clone(s.parts), text: slices.Clone(s.text), prompt: s.prompt, index: max(0, o.Get("index", 0)), family: s.family}
	p.open[o.About[1]] = y
	return nil
}

// next draws tokens of several sequences at once: all wait before the first step is made.
func (p *player) next(o history.Op) error {
	var all sync.WaitGroup
	errs := make([]error, len(o.About))
	called, n := 0, min(max(0, o.Get("tokens", 1)), 40)
	p.e.Lock()
	for i, name := range o.About {
		s := p.open[name]
		if s == nil || s.cancelled || slices.Contains(o.About[:i], name) {
			continue
		}
		called++
		all.Go(func() { errs[i] = p.draw(p.ctx, s, n) })
	}
	for start := time.Now(); p.e.Load().Waiting < called && time.Since(start) < 2*time.Millisecond; {
		time.Sleep(20 * time.Microsecond)
	}
	p.e.Unlock()
	all.Wait()
	return errors.Join(errs...)
}

// draw draws tokens, as many as the context has room for.
func (p *player) draw(ctx context.Context, s *told, n int) error {
	var got []sample.Token
	var err error
	for range min(n, p.e.Context()-len(s.text)) {
		var d engine.SampledToken
		if d, err = s.Next(ctx); err != nil {
			break
		}
		got = append(got, d.Token)
	}
	if len(got) > 0 {
		s.add(part{drawn: got, index: s.index})
	}
	if errors.Is(err, context.Canceled) && ctx != p.ctx {
		return nil
	}
	return err
}

// end closes a sequence and compares what it gave with what it gives alone.
func (p *player) end(n int) error {
	s := p.open[n]
	delete(p.open, n)
	if err := s.Close(); err != nil {
		return err
	}
	var got []sample.Token
	for _, x := range s.parts {
		got = append(got, x.drawn...)
	}
	if len(got) == 0 {
		return nil
	}
	want, err := p.alone(s, s.parts)
	if err != nil {
		return err
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("sequence %d: token %d of %d that were drawn is %v; alone it is %v", n, i+1, len(got), got[i], want[i])
		}
	}
	return nil
}

// alone returns what a text draws on an engine of its own, without drafts.
func (p *player) alone(x *told, parts []part) (got []sample.Token, err error) {
	s, err := p.engine(p.t, engine.Config{}).NewSequence(x.answer)
	if err == nil {
		err = s.SetTerms(engine.Terms{Adapters: x.adapters})
	}
	if err != nil {
		return nil, err
	}
	for _, x := range parts {
		for _, id := range x.ids {
			if !x.follows {
				break
			}
			if err := s.Follow(id); err != nil {
				return nil, err
			}
		}
		if len(x.ids) > 0 && !x.follows {
			if err := s.Append(p.ctx, x.ids); err != nil {
				return nil, err
			}
		}
		if len(x.drawn) > 0 {
			s.SetSampleIndex(x.index)
		}
		for range x.drawn {
			d, err := s.Next(p.ctx)
			if err != nil {
				return nil, err
			}
			got = append(got, d.Token)
		}
	}
	return got, s.Close()
}

// finish closes all sequences, and expects slots, pages and rows back.
func (p *player) finish() error {
	for n := range named + 1 {
		if p.open[n] != nil {
			if err := p.end(n); err != nil {
				return fmt.Errorf("in the end: %w", err)
			}
		}
	}
	for n := range p.open { // a history may name any number
		if err := p.end(n); err != nil {
			return fmt.Errorf("in the end: %w", err)
		}
	}
	if u, live, open := p.e.Held(); u.Used != 0 || live != 0 || open != 0 {
		return fmt.Errorf("%d pages, %d rows and %d slots are left", u.Used, live, open)
	}
	return nil
}
