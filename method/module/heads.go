package module

import (
	"context"

	"grove/internal/forest"
	"grove/method"
	"grove/method/grow"
)

// Heads runs the heads of a draft module behind a text. A head reads the last feature of the text that is known, which is that of the token before the
// text's last one, or what the module's first layers make of the features so far, where it has such layers (Prefix): its trunk then follows the
// text as that of a [Source], and is empty otherwise. A row of a head runs that head's layer alone, hangs from the trunk's end and is dropped in
// the next round. It is for one goroutine.
//
// Where the feature is not known, as behind a prompt that the cache gave, nothing is drafted.
type Heads struct {
	Source
	state []float32 // what heads read
	heads []method.Row
	at    int // place in the text of the token whose feature state is, of a module without prefix layers; [grow.None]
}

// NewHeads returns the heads of a module for a target's vocabulary. The sequence is opened by the first round for which a slot is free.
func NewHeads(m *method.Module, vocabulary int) *Heads {
	h := &Heads{Source: *NewSource(m, vocabulary), at: grow.None}
	if m.Prefix > 0 {
		h.Like.Want = forest.Want{Hidden: forest.Layers{}.With(m.Prefix - 1)}
	}
	return h
}

// Begin begins a text, none of whose features are known.
func (h *Heads) Begin(text *method.History) error {
	h.at = grow.None
	return h.Source.Begin(text)
}

// Committed takes the features of an update of the text.
func (h *Heads) Committed(r method.Update) error {
	if h.module.Prefix > 0 {
		return h.Source.Committed(r)
	}
	ids := h.text.IDs()
	for i := len(r.Rows) - 1; i >= 0; i-- {
		if row := &r.Rows[i]; row.Accepted { // the last one: rows come parents first
			h.at = grow.None
			if at := int(row.At); at < len(ids) && ids[at] == row.ID {
				h.state, _ = h.module.Feature(h.state[:0], row)
				h.at = at
			}
			return nil
		}
	}
	return nil
}

// Read makes what heads read ready for a round, and drops the rows of the round before. It returns false where there is nothing to draft from: the feature
// is not known, or no slot is free.
func (h *Heads) Read(ctx context.Context) (ok bool, err error) {
	if h.module.Prefix == 0 {
		if h.at == grow.None || h.at != len(h.text.IDs())-2 {
			return false, nil
		}
		return h.fresh()
	}
	if ok, err = h.Source.Root(ctx); !ok || err != nil {
		return false, err
	}
	h.state = append(h.state[:0], h.own...)
	return true, nil
}

// Row returns a row of head k, without further ids. Its vector is valid until the next Read.
func (h *Heads) Row(k int) method.Row {
	at := h.module.Prefix + k
	return method.Row{Row: forest.Row{Vector: h.state, Skip: forest.LayerRange(0, at), To: at + 1, Want: forest.Want{Logits: true}}}
}

// Run runs rows of heads; [Source.Logits] returns what they give. They live until the next Read.
func (h *Heads) Run(ctx context.Context, rows []method.Row) error {
	if err := h.Grow(ctx, rows); err != nil {
		return err
	}
	for i := range rows {
		h.Live = append(h.Live, grow.LiveRow{Parent: grow.None, Node: h.Result(i).Node})
	}
	return nil
}

// Room implements [grow.LogitSource]: a draft is expanded by the head behind that which gave it.
func (h *Heads) Room() (drafts, depth int) {
	if h.known >= h.Size.Context {
		return 0, 0
	}
	return h.Rows.Room(), h.module.Heads - 1
}

// Depths implements [Ranked]: the heads run behind the text alone, and each gives the logits of a depth.
func (h *Heads) Depths(ctx context.Context, depth int) (first, n int, err error) {
	if ok, err := h.Read(ctx); !ok || err != nil {
		return 0, 0, err
	}
	room, _ := h.Room()
	if n = min(h.module.Heads, depth, room); n < 1 {
		return 0, 0, nil
	}
	h.heads = h.heads[:0]
	for k := range n {
		h.heads = append(h.heads, h.Row(k))
	}
	return 0, n, h.Run(ctx, h.heads)
}

// Most implements [Ranked].
func (h *Heads) Most() int { return h.module.Heads }
