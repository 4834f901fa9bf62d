// retokenize.go drafts by a model whose vocabulary differs from the target's: the text is encoded in the draft
// model's tokens, and its continuation in the target's (universal assisted generation, UAG, 2024).

package grow

import (
	"context"
	"math"
	"time"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// drafter drafts the draft model's likeliest continuation: of that the tokens that no further text can change.
// Encoding allocates, for each round and pass as much as the text near its end takes.
type drafter struct {
	branch  *Branch
	passes  Passes
	sampler *sample.Chain // greedy
	best    [1]sample.Candidate

	bytes  []byte // the text
	target side
	own    side // its ids are the branch's text
	same   int  // tokens of the text that are those of the last round
	lost   bool // the draft model cannot write the text

	said  utterance
	ids   []token.ID // the target's, of the continuation
	piece []byte
}

// NewRetokenize returns a drafter that owns a sequence of a draft model, for vocabularies that are related through text.
func NewRetokenize(b *Branch) method.Drafter {
	b.Vocabulary(0)
	target, own := b.VocabMap.Tokenizers()
	return &drafter{branch: b, target: side{t: target}, own: side{t: own}}
}

// Begin implements [method.Drafter].
func (d *drafter) Begin(h *method.History) (err error) {
	if d.sampler, err = sample.NewChain(sample.Settings{}, d.branch.Size.Vocabulary); err != nil {
		return err
	}
	d.bytes, d.same = d.bytes[:0], math.MaxInt
	d.target.reset(token.None)
	d.own.reset(d.branch.VocabMap.Lead())
	if err := d.branch.Begin(h); err != nil {
		return err
	}
	d.extend(h.IDs())
	return nil
}

// Committed implements [method.Drafter].
func (d *drafter) Committed(r method.Update) { d.extend(r.IDs) }

func (d *drafter) extend(ids []token.ID) {
	for _, id := range ids {
		d.bytes = d.target.add(d.bytes, id)
	}
	same, ok := d.own.follow(d.bytes)
	d.same, d.lost = min(d.same, same), !ok
	d.branch.SetText(d.own.ids, same)
}

// Close implements [method.Closer].
func (d *drafter) Close() error { return d.branch.Close() }

// Draft implements [method.Drafter].
func (d *drafter) Draft(ctx context.Context, t *method.Tree) error {
	same := d.same
	d.same = math.MaxInt
	if err := d.branch.Cut(same); err != nil || d.lost {
		return err
	}
	ok, err := d.branch.Root(ctx)
	if !ok || err != nil {
		return err
	}
	d.said.reset()
	prev := d.own.last()
	for row := None; ; row = len(d.branch.Live) - 1 {
		best, err := d.sampler.Candidates(d.best[:], d.branch.Logits(0), 0)
		if err != nil {
			return err
		}
		id := best[0].ID
		d.said.over = d.own.t.IsEOG(id)
		if !d.said.over && !d.said.add(d.own.t, prev, id, best[0].P) {
			return nil
		}
		chance, err := d.add(t, best[0].P)
		_, reach := d.branch.Room()
		deep := len(d.said.ends) >= Depth || len(d.said.ends) >= reach
		if err != nil || d.said.over || deep || !d.passes.Pays(t, chance) {
			return nil // there is no draft where the target cannot write the continuation
		}
		start := time.Now()
		if err = d.branch.Run(ctx, []LiveRow{{ID: id, Parent: row}}); err != nil {
			return err
		}
		d.passes.Observe(time.Since(start))
		prev = id
	}
}

// add adds the continuation to the tree, in tokens of the target, and returns the estimated probability that all of
// it is accepted; 0 where not all of it is worth a draft. What the last token spells may go on, so that it is left
// out, unless the answer is over; p is then the probability of that.
func (d *drafter) add(t *method.Tree, p float32) (chance float64, err error) {
	d.ids, err = d.target.continuation(d.ids[:0], d.bytes, d.said.text)
	if err != nil {
		return 0, err
	}
	if n := len(d.ids); n > 0 && !d.said.over {
		d.ids = d.ids[:n-1]
	}
	at, from, prev := method.Root, 0, d.target.last()
	for _, id := range d.ids {
		d.piece, _ = d.target.t.AppendPieceAfter(d.piece[:0], prev, id, true) // it comes from Encode
		to := from + len(d.piece)
		if at = put(t, at, id, float32(d.said.chance(to)/d.said.chance(from))); at == method.Root {
			return 0, nil
		}
		from, prev = to, id
	}
	if d.said.over {
		put(t, at, d.target.t.EOS(), p)
	}
	return float64(t.Score(at)) * d.said.chance(len(d.said.text)) / d.said.chance(from), nil
}

// put adds a draft of probability p to the tree.
func put(t *method.Tree, parent int, id token.ID, p float32) int {
	p = min(p, 1)
	return t.Add(parent, id, Class(0, p), Belief(0, p))
}
