package draft

import (
	"context"
	"math"
	"time"

	"grove/method"
	"grove/sample"
	"grove/text/token"
)

// textDrafter drafts by a model that writes texts in other tokens: the target's text is encoded in those of the draft
// model, and what that says behind it is encoded in the target's (universal assisted generation). It guesses the likeliest
// continuation, and of that the tokens that no further text can change. Encoding allocates, for each round and pass
// as much as the text near its end takes.
type textDrafter struct {
	drafter
	bytes  []byte // the text
	target side
	own    side // its ids are the text of the drafter
	same   int  // tokens of the text that are those of the last round
	lost   bool // the draft model cannot write the text

	said  utterance
	ids   []token.ID // the target's, of what was said
	piece []byte
}

func newTextDrafter(d *drafter) *textDrafter {
	target, own := d.words.Tokenizers()
	return &textDrafter{drafter: *d, target: side{t: target}, own: side{t: own}}
}

// Begin implements [method.Drafter].
func (d *textDrafter) Begin(t method.Text) (err error) {
	if d.sampler, err = sample.NewChain(sample.Settings{}, d.vocabulary); err != nil {
		return err
	}
	d.bytes, d.known, d.live, d.same = d.bytes[:0], 0, d.live[:0], math.MaxInt
	d.target.reset(token.None)
	d.own.reset(d.words.Lead())
	d.seen(nil, true)
	d.Extend(t.Prompt)
	return d.branch.Truncate(0)
}

// Extend implements [method.Drafter].
func (d *textDrafter) Extend(ids []token.ID) {
	for _, id := range ids {
		d.bytes = d.target.add(d.bytes, id)
	}
	same, ok := d.own.follow(d.bytes)
	d.text, d.same, d.lost = d.own.ids, min(d.same, same), !ok
	d.seen(d.text[same:], false)
}

// Draft implements [method.Drafter].
func (d *textDrafter) Draft(ctx context.Context, t *method.Tree) error {
	if err := d.align(); err != nil || d.lost {
		return err
	}
	logits, ok, err := d.begin(ctx)
	if !ok || err != nil {
		return err
	}
	d.said.reset()
	prev := d.own.last()
	for row := none; ; row = len(d.live) - 1 {
		best, err := d.sampler.Candidates(d.guess[:1], logits, 0)
		if err != nil {
			return err
		}
		id := best[0].ID
		d.said.over = d.own.t.IsEOG(id)
		if !d.said.over && !d.said.add(d.own.t, prev, id, best[0].P) {
			return nil
		}
		chance, err := d.guessed(t, best[0].P)
		deep := len(d.said.ends) >= deepest || len(d.text)+len(d.said.ends) >= d.runner.Context()
		if err != nil || d.said.over || deep || chance*usual <= t.Throughput*d.pass {
			return nil // what the target cannot write is no guess
		}
		if logits, err = d.step(ctx, id, row); err != nil {
			return err
		}
		prev = id
	}
}

// align cuts from the branch what is written in other tokens now.
func (d *textDrafter) align() error {
	same := d.same
	d.same = math.MaxInt
	if same >= d.known {
		return nil
	}
	d.live = d.live[:0] // rewinding drops them
	return d.rewind(same)
}

// guessed adds what was said to the tree, in tokens of the target, and returns the estimated probability that all
// of it comes; 0 where not all is worth a guess. What the last token spells may go on, so that it is none, unless
// the answer is over; p is then the probability of that.
func (d *textDrafter) guessed(t *method.Tree, p float32) (chance float64, err error) {
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
		if at = add(t, at, id, float32(d.said.chance(to)/d.said.chance(from))); at == method.Root {
			return 0, nil
		}
		from, prev = to, id
	}
	if d.said.over {
		add(t, at, d.target.t.EOS(), p)
	}
	return float64(t.Score(at)) * d.said.chance(len(d.said.text)) / d.said.chance(from), nil
}

// add puts a guess of probability p into the tree.
func add(t *method.Tree, parent int, id token.ID, p float32) int {
	p = min(p, 1)
	return t.Add(parent, id, min(int(p*buckets), buckets-1), belief(0, p))
}

// step runs a token of the draft model behind a live row and returns the logits there.
func (d *textDrafter) step(ctx context.Context, id token.ID, row int) ([]float32, error) {
	start := time.Now()
	r := method.BranchRow{ID: id, Logits: true}
	if row != none {
		r.Parent = d.live[row].handle
	}
	d.rows = append(d.rows[:0], r)
	nodes, logits, err := d.branch.Run(ctx, d.rows)
	if err != nil {
		return nil, err
	}
	d.live = append(d.live, node{id, row, nodes[0]})
	d.took(time.Since(start).Seconds())
	return d.view(logits[0]), nil
}
