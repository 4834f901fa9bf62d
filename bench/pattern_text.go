package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"grove/internal/forest"
	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/method"
)

// PatternTextOptions is the options of [PatternText].
type PatternTextOptions struct {
	PatternOptions
	Own bool // what is predicted is the model's own likeliest token, not the one of the text
}

// PatternTextReport is how well a model predicts a text where each token runs some of its layers.
type PatternTextReport struct {
	Chunks  int  `json:"chunks"`
	Context int  `json:"context"` // tokens of a chunk
	Own     bool `json:"own"`     // see [PatternTextOptions]
	PatternReport
}

// PatternText searches which layers of a model each token of a text needs ([PatternStudy]). The text is chunks of one length, of 3 tokens or more; every second one is for the
// search of a fixed set. At each token of the second half of a chunk, rows of it run beside each other, each with other layers; all of
// them read the keys that the rows of all layers left of the tokens before. So a set changes the prediction behind its own token alone. Errors:
// fewer than two chunks, an option out of range, ctx's, the model's.
func PatternText(ctx context.Context, m method.Model, chunks [][]token.ID, o PatternTextOptions) (r *PatternTextReport, err error) {
	o.Layers = m.Size().Layers
	if err := o.Check(); err != nil {
		return nil, err
	}
	if len(chunks) < 2 {
		return nil, fmt.Errorf("patterns: the text has %d chunk; two are needed, one to search a fixed set in and one to compare in", len(chunks))
	}
	p := &textPass{chunks: chunks, size: m.Size(), own: o.Own}
	if p.branch, err = m.Open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.branch.Close()) }()
	found, err := PatternStudy(ctx, o.PatternOptions, p.run)
	if err != nil {
		return nil, err
	}
	return &PatternTextReport{Chunks: len(chunks), Context: len(chunks[0]), Own: o.Own, PatternReport: *found}, nil
}

// textPass computes the chunks of a text.
type textPass struct {
	chunks [][]token.ID
	size   method.Size
	branch method.Branch
	own    bool
	rows   []method.Row
	scores []PatternScore
	best   []token.ID // the likeliest ones, by set
}

// run is a [PatternPass]: part 0 is the chunks of even numbers.
func (p *textPass) run(ctx context.Context, part int, ask func(int) []PatternSet, tell func(int, PatternScore, []PatternScore)) error {
	place := 0
	for c := part; c < len(p.chunks); c += 2 {
		ids := p.chunks[c]
		half := len(ids) / 2
		if err := p.begin(ctx, ids[:half]); err != nil {
			return err
		}
		for at := half; at < len(ids)-1; at++ {
			full, err := p.place(ctx, ids[at], ids[at+1], ask(place))
			if err != nil {
				return err
			}
			tell(place, full, p.scores)
			place++
		}
	}
	return nil
}

// begin makes tokens the trunk.
func (p *textPass) begin(ctx context.Context, ids []token.ID) error {
	if err := p.branch.Truncate(0); err != nil {
		return err
	}
	for n := 0; len(ids) > 0; ids = ids[n:] {
		n = min(len(ids), p.most())
		p.rows = p.rows[:0]
		for i, id := range ids[:n] {
			p.rows = append(p.rows, method.Row{Row: forest.Row{ID: id}, After: i})
		}
		if err := p.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// most returns how many rows a step has at most.
func (p *textPass) most() int { return min(p.size.Rows, p.size.MostLive()) }

// commit runs rows and makes the last one the trunk's end.
func (p *textPass) commit(ctx context.Context) error {
	got, err := p.branch.Grow(ctx, p.rows)
	if err != nil {
		return err
	}
	return p.branch.Commit(got[len(got)-1].Node)
}

// place runs a token with each set of layers, and scores what they predict; then it goes on behind the token.
func (p *textPass) place(ctx context.Context, id, next token.ID, sets []PatternSet) (full PatternScore, err error) {
	all := forest.LayerRange(0, p.size.Layers)
	row := method.Row{Row: forest.Row{ID: id, Want: forest.Want{Logits: true, Top: 1}}}
	p.scores, p.best = p.scores[:0], p.best[:0]
	if p.own {
		if next, err = p.likeliest(ctx, row); err != nil {
			return full, err
		}
	}
	for n := 0; len(sets) > 0; sets = sets[n:] {
		n = min(len(sets), p.most())
		p.rows = p.rows[:0]
		for _, set := range sets[:n] {
			row.Skip = all.Minus(set)
			p.rows = append(p.rows, row)
		}
		got, err := p.branch.Grow(ctx, p.rows)
		if err != nil {
			return full, err
		}
		for i := range got {
			p.score(&got[i], next)
		}
		if err := p.branch.Drop(); err != nil {
			return full, err
		}
	}
	row.Skip = forest.Layers{}
	p.rows = append(p.rows[:0], row)
	got, err := p.branch.Grow(ctx, p.rows)
	if err != nil {
		return full, err
	}
	p.score(&got[0], next)
	last := len(p.scores) - 1
	for i := range p.scores {
		p.scores[i].Same = p.best[i] == p.best[last]
	}
	full, p.scores = p.scores[last], p.scores[:last]
	return full, p.branch.Commit(got[0].Node)
}

// likeliest returns the model's own likeliest token behind a row.
func (p *textPass) likeliest(ctx context.Context, row method.Row) (token.ID, error) {
	p.rows = append(p.rows[:0], row)
	got, err := p.branch.Grow(ctx, p.rows)
	if err != nil {
		return token.None, err
	}
	return got[0].Top[0].ID, p.branch.Drop()
}

func (p *textPass) score(r *method.Result, next token.ID) {
	p.scores = append(p.scores, PatternScore{Loss: stat.LogSumExp(r.Logits) - float64(r.Logits[next])})
	p.best = append(p.best, r.Top[0].ID)
}

// WriteText writes the report as a table.
func (r *PatternTextReport) WriteText(w io.Writer) error {
	of := "of the text"
	if r.Own {
		of = "of the model's own"
	}
	fmt.Fprintf(w, "all %d layers: %.4f nats a token %s\n\n| layers | random | best random | first | fixed | oracle | kept: random | best random | first | fixed | oracle | searched | fixed layers |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n", r.Layers, r.Full, of)
	for _, b := range r.Budgets {
		ways := []PatternMean{b.Random, b.Best, b.First, b.Fixed, b.Oracle}
		fmt.Fprintf(w, "| %d |", b.Layers)
		for _, m := range ways {
			fmt.Fprintf(w, " %.4f |", m.Loss)
		}
		for _, m := range ways {
			fmt.Fprintf(w, " %.1f %% |", 100*m.Kept)
		}
		all := ""
		if b.All {
			all = " (all)"
		}
		fmt.Fprintf(w, " %d%s | %s |\n", b.Searched, all, strings.Trim(fmt.Sprint(b.Set), "[]"))
	}
	_, err := fmt.Fprintf(w, "\nthe likeliest token is kept by %.2f layers a token, where these are known\ncompared at %d tokens: the second halves of every second of %d chunks of %d tokens\n",
		r.Needed, r.Places, r.Chunks, r.Context)
	return err
}

// WriteJSON writes the report as one object.
func (r *PatternTextReport) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
