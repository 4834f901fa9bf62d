package methodtest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/sample"
	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/method"
)

// alone draws by every promised sampling with every draft run, and with those that pay by one of the samplings; the long run by every one.
func alone(s *subject) error {
	for _, p := range s.samplings() {
		for _, how := range []drafts{eager, planned} {
			if how == planned && !slices.Contains(s.turn(0), p) {
				continue
			}
			if err := s.compare("alone", engine.Config{}, p, how, []move{{s.prompt(), brief(150, 100)}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// accepts expects drafts to be accepted in a text that repeats: what is never accepted is never tested.
func accepts(s *subject) error {
	_, st, err := s.tell(engine.Config{}, sample.Params{}, eager, []move{{s.prompt(), 100}})
	if err != nil {
		return err
	}
	if s.free && st.Drafted == 0 {
		return nil // it drafts from a given text alone, which the answer does not follow
	}
	if st.Accepted < 20 || st.Rounds == 0 || st.Tokens != st.Rounds+st.Accepted || st.Drafted < st.Accepted {
		return fmt.Errorf("%d of %d drafts accepted in %d rounds that drew %d tokens", st.Accepted, st.Drafted, st.Rounds, st.Tokens)
	}
	return nil
}

// forks forks a text in the middle of rounds, cuts texts back, and expects of each what plain decoding gives behind
// the same tokens.
func forks(s *subject) error {
	p := s.samplings()[len(s.samplings())-1]
	story := func(how drafts) (all []sample.Token, err error) {
		e := s.engine(engine.Config{Seqs: 3})
		var d *engine.Drafting
		if how != plain {
			if d, err = s.open(e, how == eager); err != nil {
				return nil, err
			}
		}
		q, err := s.begin(e, d, p, 0)
		if err != nil {
			return nil, err
		}
		draw := func(q *engine.Sequence, story ...move) {
			got, e := s.follow(q, story)
			all, err = append(all, got...), errors.Join(err, e)
		}
		draw(q, move{s.prompt(), 23})
		f, e2 := q.Fork(7)
		if e2 != nil {
			return nil, errors.Join(err, e2, q.Close())
		}
		draw(q, move{nil, 9})
		draw(f, move{nil, 30})
		err = errors.Join(err, q.Truncate(q.Len()-12))
		draw(q, move{nil, 15}, move{s.cycle(3, 2), 20})
		g, e2 := f.Fork(2)
		if e2 != nil {
			return nil, errors.Join(err, e2, q.Close(), f.Close())
		}
		draw(g, move{nil, 11})
		return all, errors.Join(err, q.Close(), f.Close(), g.Close())
	}
	want, err := s.once(fmt.Sprint("forks ", p), func() ([]sample.Token, error) { return story(plain) })
	if err != nil {
		return err
	}
	for _, how := range []drafts{eager, planned} {
		if how == planned && s.held != nil && !long {
			continue // drafts that pay are verified as all are
		}
		got, err := story(how)
		if err := errors.Join(err, differ("forks", got, want)); err != nil {
			return err
		}
	}
	return nil
}

// interleaved draws from two sequences of the same drafting in turns.
func interleaved(s *subject) error {
	for _, p := range s.turn(0) {
		draws := brief(60, 40)
		stories := [2][]move{{{s.prompt(), draws}}, {{s.cycle(42, 33), draws}}}
		var want [2][]sample.Token
		for i := range stories {
			var err error
			if want[i], err = s.plainly(engine.Config{}, p, stories[i]); err != nil {
				return err
			}
		}
		e := s.engine(engine.Config{Seqs: 2})
		d, err := s.open(e, true)
		if err != nil {
			return err
		}
		var got [2][]sample.Token
		var seqs [2]*engine.Sequence
		for i := range seqs {
			if seqs[i], err = s.begin(e, d, p, 0); err != nil {
				return err
			}
			if err := seqs[i].Append(s.ctx, stories[i][0].add); err != nil {
				return err
			}
		}
		for range draws {
			for i := range seqs {
				c, err := seqs[i].Next(s.ctx)
				if err != nil {
					return err
				}
				got[i] = append(got[i], c.Token)
			}
		}
		for i := range seqs {
			if err := errors.Join(differ(fmt.Sprintf("sequence %d, %+v", i, p), got[i], want[i]), seqs[i].Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// appends adds to the text between the tokens of rounds, one token and many.
func appends(s *subject) error {
	story := []move{{s.prompt(), 7}, {s.cycle(3, 1), 4}, {s.cycle(24, 40), 1}, {s.prompt(), 13}, {nil, 5}, {s.cycle(55, 3), 30}}
	for _, p := range s.turn(1) {
		if err := s.compare("appending", engine.Config{}, p, eager, story); err != nil {
			return err
		}
	}
	return nil
}

// contextEnd fills the context, which ends inside of drafts.
func contextEnd(s *subject) error {
	for n := 45; n < 60; n += brief(2, 3) {
		for _, p := range s.turn(n / brief(2, 3)) {
			if err := s.compare("the context's end", engine.Config{Context: n}, p, eager, []move{{s.prompt(), 100}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// smallSteps leaves little room for drafts.
func smallSteps(s *subject) error {
	for i, chunk := range []int{1, 2, 5} {
		for _, p := range s.turn(i) {
			if err := s.compare("small steps", engine.Config{Chunk: chunk}, p, eager, []move{{s.prompt(), 60}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// edges begins with texts of one token, and of the first and last tokens of the vocabulary.
func edges(s *subject) error {
	for i, text := range [][]token.ID{{0}, {vocabulary - 1}, {0, 0, 0, 0}, {vocabulary - 1, 0, vocabulary - 1, 0, vocabulary - 1}} {
		for _, p := range s.turn(i) {
			if err := s.compare(fmt.Sprintf("behind %v", text), engine.Config{}, p, eager, []move{{text, 40}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// atOnce draws texts from several goroutines by the same drafting, in steps of two threads. The other checks have one: the bits do
// not depend on their number.
func atOnce(s *subject) error {
	const workers = 3
	p := s.samplings()[len(s.samplings())-1]
	want, err := s.plainly(engine.Config{}, p, []move{{s.prompt(), 50}})
	if err != nil {
		return err
	}
	threads := *s.lab
	threads.pool, threads.helpers = s.two, map[model.Model]*engine.Engine{}
	many := *s
	many.lab = &threads
	e := many.engine(engine.Config{Seqs: workers})
	d, err := many.open(e, true)
	if err != nil {
		return err
	}
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for range brief(3, 2) {
				q, err := s.begin(e, d, p, 0)
				if err != nil {
					errs[w] = err
					return
				}
				got, err := s.follow(q, []move{{s.prompt(), 50}})
				errs[w] = errors.Join(errs[w], err, differ("at once", got, want), q.Close())
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// distribution draws many texts of three tokens by a method that promises the distribution alone, one after the other
// and then several at a time, and compares with the exact distribution of the model by a chi-square test. A quarter of the draws
// shows what sharing steps and constraints can change. The short run draws several at a time under the constraint alone.
func distribution(s *subject) error {
	if s.info.Grade != method.SameDistribution {
		return nil
	}
	p := sample.Params{Temperature: 1.5, TopK: 3, Seed: 5}
	prompt := s.prompt()[:8] // short: every draw computes it anew
	for _, workers := range []int{1, 4} {
		if !long && (workers > 1) != (s.held != nil) {
			continue
		}
		e := s.engine(engine.Config{Context: len(prompt) + 4, Seqs: workers}) // no longer drafts than texts
		want, err := s.enumerate(e, p, prompt, 3)
		if err != nil {
			return err
		}
		draws := s.draws
		if workers > 1 || s.held != nil {
			draws = max(few, draws/4)
		}
		counts, err := s.count(e, p, prompt, workers, draws)
		if err != nil {
			return err
		}
		var drawn, expected []float64
		for text, p := range want {
			drawn, expected = append(drawn, counts[text]), append(expected, p*float64(draws))
		}
		if err := stat.ChiSquare(drawn, expected); err != nil {
			return fmt.Errorf("%d texts at a time: %w", workers, err)
		}
	}
	return nil
}

// count draws texts of three tokens, some at a time, and counts them.
func (s *subject) count(e *engine.Engine, p sample.Params, prompt []token.ID, workers, draws int) (map[[3]token.ID]float64, error) {
	d, err := s.open(e, true)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	counts, accepted := map[[3]token.ID]float64{}, 0
	draw := func(index int) error {
		q, err := s.begin(e, d, p, index)
		if err != nil {
			return err
		}
		got, err := s.follow(q, []move{{prompt, 3}})
		mu.Lock()
		defer mu.Unlock()
		accepted += q.SpecStats().Accepted
		if err := errors.Join(err, q.Close()); err != nil {
			return err
		}
		counts[[3]token.ID{got[0].ID, got[1].ID, got[2].ID}]++
		return nil
	}
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for index := w; index < draws && errs[w] == nil; index += workers {
				errs[w] = draw(index)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if accepted == 0 {
		return nil, errors.New("no draft was accepted")
	}
	return counts, nil
}

// enumerate returns the probabilities of all texts of three tokens behind a prompt.
func (s *subject) enumerate(e *engine.Engine, p sample.Params, prompt []token.ID, n int) (map[[3]token.ID]float64, error) {
	sampler, err := sample.NewChain(sample.Settings{Params: p, Stages: s.stages()}, vocabulary)
	if err != nil {
		return nil, err
	}
	all := map[[3]token.ID]float64{}
	var walk func(text []token.ID, mass float64) error
	walk = func(text []token.ID, mass float64) error {
		if len(text) == n {
			all[[3]token.ID(text)] = mass
			return nil
		}
		sampler.Begin(prompt)
		sampler.Append(text, false)
		dist := make([]float64, vocabulary)
		last := make([]float32, vocabulary)
		err := e.Logits(s.ctx, append(append([]token.ID{}, prompt...), text...), 0, func(row []float32) error {
			copy(last, row)
			return nil
		})
		if err := errors.Join(err, sampler.Probs(dist, 0, last, len(prompt)+len(text))); err != nil {
			return err
		}
		for id, q := range dist {
			if q > 0 {
				if err := walk(append(append([]token.ID{}, text...), token.ID(id)), mass*q); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return all, walk(nil, 1)
}

// allocations expects drafters of texts and logits to allocate nothing when a text of the size was there before.
func allocations(s *subject) error {
	if s.info.RunsRows || s.info.Kind == method.KindModel || s.info.Kind == method.KindHeads {
		return nil // their passes are the engine's
	}
	m, err := s.info.Open(method.Env{Vocabulary: vocabulary, Datastore: s.store})
	if err != nil {
		return err
	}
	d, err := m.NewDrafter(nil)
	if err != nil {
		return err
	}
	text, tree, rates := s.cycle(0, 600), method.NewTree(128, vocabulary), method.NewRates(1)
	for i := range text {
		text[i] = (text[i] + token.ID(i*i%7)) % vocabulary
	}
	prompt := s.prompt()
	whole := append(append([]token.ID{}, prompt...), text...)
	h, at := &method.History{Prediction: text[:200]}, 0
	step := func() {
		at++
		h.Extend(whole[:len(prompt)+at])
		d.Committed(method.Update{IDs: text[at-1 : at], Before: whole[len(prompt)+at-2]})
		tree.Reset(64, rates)
		if e := d.Draft(s.ctx, tree); e != nil {
			err = e
		}
	}
	var measured float64
	for range 2 {
		h.Begin(prompt, len(prompt))
		if err := d.Begin(h); err != nil {
			return err
		}
		at = 0
		measured = testing.AllocsPerRun(400, step)
	}
	if measured > 0 {
		return errors.Join(err, fmt.Errorf("%v allocations a token", measured))
	}
	return err
}

// memory expects what is kept across texts to be bounded.
func memory(s *subject) error {
	e := s.engine(engine.Config{Context: len(s.prompt()) + 14})
	d, err := s.open(e, true)
	if err != nil {
		return err
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const most = 2 << 10 // bytes of each text
	const warm = 30      // what some methods learn is whole after 30
	texts := brief(60, 42)
	before := int64(0)
	for i := range texts {
		if i == warm {
			before = heap()
		}
		q, err := s.begin(e, d, sample.Params{Temperature: 1, Seed: uint64(i)}, 0)
		if err != nil {
			return err
		}
		_, err = s.follow(q, []move{{s.prompt(), brief(10, 6)}})
		if err := errors.Join(err, q.Close()); err != nil {
			return err
		}
	}
	grown := heap() - before
	runtime.KeepAlive(d)
	if grown > int64(most*(texts-warm)) {
		return fmt.Errorf("%d texts leave %d bytes behind", texts-warm, grown)
	}
	return nil
}
