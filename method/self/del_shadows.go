package self

import (
	"context"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
	"grove/method/layers"
)

// maxShadows bounds the rows of the head that one trial gives.
const maxShadows = 16

// shadows holds what a trial's rows had behind the exits before its own, until the head has turned that into tokens. They are evaluated beside the
// text's last token of a later round, for positions of which it is known what followed: up to the first draft that was rejected.
type shadows struct {
	width   int           // of the model
	all     forest.Layers // the same
	exits   int           // before the trial's
	index   int           // length of the text at the first position
	streams []float32
	told    int // positions to evaluate
	next    [maxShadows]token.ID
}

// forget drops what is kept.
func (s *shadows) forget() { s.streams, s.told = s.streams[:0], 0 }

// begin begins a trial behind a text.
func (s *shadows) begin(exits, index int) {
	s.forget()
	s.exits, s.index = exits, index
}

// keep keeps the streams of the next position, where there is room.
func (s *shadows) keep(streams [][]float32) {
	if s.exits == 0 || (len(s.streams)/s.width+s.exits) > maxShadows {
		return
	}
	for _, one := range streams {
		s.streams = append(s.streams, one...)
	}
}

// tell tells what followed the first positions.
func (s *shadows) tell(ids []token.ID) {
	if s.exits > 0 {
		s.told = copy(s.next[:], ids[:min(len(ids), len(s.streams)/s.width/s.exits)])
	}
}

// rows appends the rows whose logits are the shadows: of so many positions as room and time allow.
func (s *shadows) rows(dst []method.Row, m layers.Model, room int) []method.Row {
	whole := 1 / m.Plain()
	for s.told > 0 && (s.told*s.exits > room || s.told > 1 && m.HeadSeconds(1+s.told*s.exits)-m.HeadSeconds(1) > whole/2) {
		s.told--
	}
	for i := range s.told * s.exits {
		vector := s.streams[i*s.width : (i+1)*s.width]
		dst = append(dst, method.Row{Row: forest.Row{Vector: vector, Skip: s.all, Want: forest.Want{Logits: true}}})
	}
	return dst
}

// Root implements [grow.LogitSource]. The shadows of an earlier round run beside the text's last token.
func (d *delDrafter) Root(ctx context.Context) (bool, error) {
	s := &d.shadows
	if ok, err := d.Exit.Root(ctx); !ok || err != nil {
		s.forget()
		return ok, err
	}
	for exit := range s.exits {
		hits := 0
		for i, next := range s.next[:s.told] {
			id, err := d.grower.First(d.Logits(1+i*s.exits+exit), s.index+i)
			if err != nil {
				return false, err
			}
			if id == next {
				hits++
			}
		}
		if s.told > 0 {
			d.shares.Learn(exit, hits, s.told)
		}
	}
	s.forget()
	if d.trial {
		s.begin(d.exit, d.At())
		s.keep(d.Result(0).Hidden)
	}
	return true, nil
}

// Expand implements [grow.LogitSource].
func (d *delDrafter) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	if err := d.Exit.Expand(ctx, t, drafts); err != nil {
		return err
	}
	if d.trial {
		d.shadows.keep(d.Result(0).Hidden)
	}
	return nil
}

// MemoryFor implements [method.Sized].
func (d *delDrafter) MemoryFor(drafts int, p sample.Params) method.Memory {
	r := d.Exit.MemoryFor(drafts, p)
	r.Logits += 4 * d.Size.Width * (layers.MostExits + maxShadows)
	return r
}

// Held implements [method.Sized].
func (d *delDrafter) Held() method.Memory {
	r := d.Exit.Held()
	r.Logits += 4 * cap(d.shadows.streams)
	return r
}

var _ grow.LogitSource = (*delDrafter)(nil)
