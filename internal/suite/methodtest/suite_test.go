package methodtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"grove/constrain"
	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
	_ "grove/method/all" // links the methods
)

// suite runs every check on the n-th method, with the models of a lab that other methods share. The short run leaves out every other one of those that
// repeat a path which another check takes too, by turns.
func suite(t *testing.T, l *lab, info method.Info, n int) {
	for i, c := range checks {
		if long || !c.repeats || (i+n)%2 == 0 {
			c.test(t, l, info)
		}
	}
}

// share is suite with one of every other checks, from the first one on; the long run does all.
func share(t *testing.T, l *lab, info method.Info, first, every int) {
	for i, c := range checks {
		if !long && (i+first)%every != 0 {
			continue
		}
		c.test(t, l, info)
	}
}

// check is a test of the suite.
type check struct {
	name    string
	run     func(*subject) error
	repeats bool // a path of other checks, with other texts
}

func (c check) test(t *testing.T, l *lab, info method.Info) {
	t.Run(c.name, func(t *testing.T) {
		if err := c.run(&subject{lab: l, info: info, ctx: t.Context()}); err != nil {
			t.Error(err)
		}
	})
}

var checks = []check{
	{"alone", alone, false},
	{"accepts", accepts, false},
	{"interleaved", interleaved, true},
	{"append", appends, true},
	{"truncate and fork", forks, false},
	{"context end", contextEnd, true},
	{"small steps", smallSteps, true},
	{"edges", edges, true},
	{"at once", atOnce, false},
	{"constrained", constrained, false},
	{"distribution", distribution, false},
	{"allocations", allocations, false},
	{"memory", memory, true},
}

// subject is a method under test.
type subject struct {
	*lab
	info    method.Info
	ctx     context.Context
	held    *constrain.Constraint // that texts are held to; nil: none
	typical bool                  // drafts are accepted by a lossy rule, as by a wrong verifier
}

// samplings returns the ways of drawing that the method's grade promises equality for.
func (s *subject) samplings() []sample.Params {
	all := []sample.Params{{}, {Temperature: 1, Seed: 3}, {Temperature: 0.7, TopK: 9, TopP: 0.9, Seed: 4}}
	if s.info.Grade != method.Exact {
		return all[:1]
	}
	return all
}

// turn returns one of the samplings, by turns over a check's cases and the methods; the long run takes each with every case.
func (s *subject) turn(i int) []sample.Params {
	all := s.samplings()
	if long {
		return all
	}
	return all[(i+len(s.info.Name))%len(all):][:1]
}

// open opens the method for an engine.
func (s *subject) open(e *engine.Engine, eager bool) (*engine.Drafting, error) {
	env := method.Env{Datastore: s.store}
	if s.info.Kind == method.KindModel {
		env.Draft, env.Middle = s.helper(s.other), s.helper(s.between)
		if s.info.Name == "deer" {
			env.Draft = s.canvas()
		}
		env.AcceptHead = doubtful(env.Draft.Size().Width)
	}
	if s.info.Kind == method.KindHeads {
		env.Modules = s.heads(e)
	}
	d, err := e.OpenDrafting(s.ctx, []method.Info{s.info}, env)
	if err == nil && eager {
		d.Eager()
	}
	return d, err
}

// begin opens a sequence that drafts, or not where d is nil.
func (s *subject) begin(e *engine.Engine, d *engine.Drafting, p sample.Params, choice int) (*engine.Sequence, error) {
	q, err := e.NewSequence(engine.Answer{Sampling: p, SampleIndex: choice, Stages: s.stages()})
	if err != nil || d == nil {
		return q, err
	}
	if err := q.SetDrafting(d, s.cycle(s.after(), 60)); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	q.SetRemote(&elsewhere{})
	if s.typical {
		return q, q.SetRule(verify.Typical)
	}
	return q, nil
}

// elsewhere drafts what the models expect behind the text, as another program would. It implements [method.Remote].
type elsewhere struct{ last token.ID }

// Begin implements [method.Remote].
func (r *elsewhere) Begin(h *method.History) { r.last = h.Last(0) }

// Committed implements [method.Remote].
func (r *elsewhere) Committed(ids []token.ID, _, _ int, _ time.Duration) { r.last = ids[len(ids)-1] }

// Drafts implements [method.Remote].
func (r *elsewhere) Drafts(_ context.Context, dst []token.ID) []token.ID {
	for id := r.last; len(dst) < 6; {
		id = next(id)
		dst = append(dst, id)
	}
	return dst
}

// move is a part of a text's story: tokens that are appended, then a number that are drawn.
type move struct {
	add  []token.ID
	draw int
}

// follow plays a story, and returns what was drawn; err where the story ends early.
func (s *subject) follow(q *engine.Sequence, story []move) (got []sample.Token, err error) {
	for _, m := range story {
		if len(m.add) > 0 {
			if err := q.Append(s.ctx, m.add); err != nil {
				return got, err
			}
		}
		for range m.draw {
			c, err := q.Next(s.ctx)
			if err != nil {
				return got, err
			}
			got = append(got, c.Token)
		}
	}
	return got, nil
}

// tell plays a story on an engine of its own and returns what drafting did besides.
func (s *subject) tell(c engine.Config, p sample.Params, d drafts, story []move) (got []sample.Token, st engine.SpecStats, err error) {
	e := s.engine(c)
	var all *engine.Drafting
	if d != plain {
		if all, err = s.open(e, d == eager); err != nil {
			return nil, st, err
		}
	}
	q, err := s.begin(e, all, p, 0)
	if err != nil {
		return nil, st, err
	}
	got, err = s.follow(q, story)
	return got, q.SpecStats(), errors.Join(err, q.Close())
}

// drafts says whether a story is told with drafts.
type drafts int

const (
	plain   drafts = iota
	eager          // every draft is run
	planned        // those that pay
)

// compare tells a story plainly and with drafts, and expects the same.
func (s *subject) compare(what string, c engine.Config, p sample.Params, how drafts, story []move) error {
	want, wantErr := s.plainly(c, p, story)
	got, _, err := s.tell(c, p, how, story)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		return fmt.Errorf("%s, %+v: error %v, want %v", what, p, err, wantErr)
	}
	return differ(fmt.Sprintf("%s, %+v", what, p), got, want)
}

// plainly tells a story without drafts.
func (s *subject) plainly(c engine.Config, p sample.Params, story []move) ([]sample.Token, error) {
	return s.once(fmt.Sprint(c, p, story), func() ([]sample.Token, error) {
		got, _, err := s.tell(c, p, plain, story)
		return got, err
	})
}

// once returns what plain decoding gives, which is the same for every method: the lab computes it once for each key.
func (s *subject) once(key string, compute func() ([]sample.Token, error)) ([]sample.Token, error) {
	if s.held != nil {
		key = "held " + key
	}
	text, ok := s.texts[key]
	if !ok {
		text.tokens, text.err = compute()
		s.texts[key] = text
	}
	return text.tokens, text.err
}

// differ returns the first difference of two texts as an error.
func differ(what string, got, want []sample.Token) error {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("%s: token %d is %v, want %v", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d tokens, want %d", what, len(got), len(want))
	}
	return nil
}
