package engine

import (
	"context"
	"crypto/rand"
	"errors"

	"grove/internal/engine/plan"
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// ScoreRequest asks for the scores of continuations, each of one token or more, behind a prefix of one or more.
type ScoreRequest struct {
	Prefix        []token.ID
	Continuations [][]token.ID
	Terms         step.Terms
	Progress      func(done, all int) // is told how many tokens of the prefix are computed; nil: nothing is. It must not wait
}

// Score returns the tokens of the continuations, each with its score, and how many tokens of the prefix the cache had. A score has the bits of
// the continuation alone, and of the log-probability that plain decoding reports. The tokens are of the vocabulary and fit in the context.
// Errors: [step.ErrBusy], ctx's, the model's.
func Score(ctx context.Context, m *step.Maker, r ScoreRequest) (scores [][]ScoreToken, reused int, err error) {
	chain, err := sample.NewChain(sample.Settings{}, m.Model.Info().Vocabulary)
	if err != nil {
		return nil, 0, err
	}
	j := &job{m: m, prefix: r.Prefix, told: r.Progress, chain: chain, batches: planBatches(r.Continuations, min(plan.MaxDraft, m.Chunk))}
	for _, ids := range r.Continuations {
		scored := make([]ScoreToken, len(ids))
		for i, id := range ids {
			scored[i].ID = id
		}
		j.scores = append(j.scores, scored)
	}
	if err := m.Open(&j.trunk, m.MaxOpen); err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, j.trunk.Close()) }()
	if j.trunk.Terms = r.Terms; r.Terms.Private {
		j.trunk.Terms.Salt = rand.Text()
	}
	j.trunk.Terms.Activate(r.Prefix)
	if err := j.trunk.Do(ctx, j); err != nil {
		return nil, 0, err
	}
	return j.scores, j.reused, nil
}

// job computes a prefix and then one batch after the other. What is lost of the prefix, where other sequences take pages or where a trunk
// cannot be cut inside a page, is computed anew.
type job struct {
	m       *step.Maker
	trunk   step.Trunk
	prefix  []token.ID
	told    func(done, all int)
	chain   *sample.Chain
	batches []batch
	next    int // the batch that is run next
	scores  [][]ScoreToken
	reused  int
	begun   bool
	rooted  bool // the first tokens are scored
	reads   bool // the step computes the prefix
	end     forest.Node
}

// Need implements [step.Job].
func (j *job) Need() (step.Need, error) {
	j.trunk.Drop()
	j.trunk.Preempted = false
	at, err := j.cut()
	if err != nil {
		return step.Need{}, err
	}
	if j.reads = at < len(j.prefix) || !j.rooted; j.reads {
		return j.needPrefix(at)
	}
	b := &j.batches[j.next]
	if b.commit {
		at += len(b.rows)
	}
	return step.Need{Rows: len(b.rows), PageTokens: at, WindowTokens: at}, nil
}

// cut takes back what a long continuation has committed where the next batch is another's, and returns the trunk's length. Where the
// trunk has lost its pages, a long continuation begins anew.
func (j *job) cut() (at int, err error) {
	all := len(j.prefix)
	at = j.trunk.Len()
	if at > all && at != all+j.batches[j.next].before {
		at, err = j.m.Cache.Rewind(j.trunk.Seq, all)
	}
	for at < all && j.next < len(j.batches) && j.batches[j.next].before > 0 {
		j.next--
	}
	return at, err
}

// needPrefix returns what the rest of the prefix needs, behind the tokens that the cache has.
func (j *job) needPrefix(at int) (step.Need, error) {
	all := len(j.prefix)
	if at < all-1 {
		var err error
		if at, err = j.m.Cache.Reuse(j.trunk.Seq, j.prefix); err != nil {
			return step.Need{}, err
		}
	}
	if !j.begun {
		j.begun, j.reused = true, at
		j.progress(at)
	}
	return step.Need{Prompt: all - at, Text: j.prefix, PageTokens: all, WindowTokens: min(all, at+j.m.Chunk)}, nil
}

// progress tells how many tokens of the prefix are computed.
func (j *job) progress(done int) {
	if j.told != nil && !j.rooted {
		j.told(done, len(j.prefix))
	}
}

// Place implements [step.Job].
func (j *job) Place(st *step.Step) (err error) {
	if j.reads {
		at, rows := j.trunk.Len(), st.Rows()
		j.end, err = st.Path(rows, func(i int) forest.Row {
			last := at+i == len(j.prefix)-1
			return forest.Row{ID: j.prefix[at+i], Transient: i < rows-1, Want: forest.Want{Logits: last && !j.rooted}}
		})
		return err
	}
	b := &j.batches[j.next]
	for i, r := range b.rows {
		last := b.commit && i == len(b.rows)-1
		row := forest.Row{ID: r.id, Transient: !last, Want: forest.Want{Logits: true}}
		if r.parent != trunk {
			row.Parent = st.Placed(r.parent).Node
		}
		if j.end, err = st.Add(row); err != nil {
			return err
		}
	}
	return nil
}

// Take implements [step.Job].
func (j *job) Take(st *step.Step) (done bool, err error) {
	if j.reads {
		return j.takePrefix(st)
	}
	b := &j.batches[j.next]
	for _, r := range b.reads {
		j.score(r.continuation, r.at, st.Result(r.row).Logits)
	}
	if b.commit {
		err = j.m.Cache.Commit(j.trunk.Seq, j.end)
	} else {
		j.trunk.Drop()
	}
	j.next++
	return j.next == len(j.batches), err
}

// takePrefix commits rows of the prefix, and scores first tokens by the last one.
func (j *job) takePrefix(st *step.Step) (done bool, err error) {
	rows := st.Rows()
	if err := j.m.Cache.Commit(j.trunk.Seq, j.end); err != nil {
		return true, err
	}
	at := j.trunk.Len()
	if j.progress(at); at < len(j.prefix) || j.rooted {
		return false, nil
	}
	logits := st.Result(rows - 1).Logits
	for c := range j.scores {
		j.score(c, 0, logits)
	}
	j.rooted = true
	return len(j.batches) == 0, nil
}

// score writes the score of a token, by the logits before it.
func (j *job) score(continuation, at int, logits []float32) {
	t := &j.scores[continuation][at]
	t.Logprob = j.chain.Logprob(logits, t.ID)
	t.Greedy = likeliest(logits, t.ID)
}

// likeliest reports whether a token is the first of the likeliest ones: the one that greedy decoding draws.
func likeliest(logits []float32, id token.ID) bool {
	for i, x := range logits {
		if x > logits[id] || x == logits[id] && token.ID(i) < id {
			return false
		}
	}
	return true
}
