// icn.go is iterative in-context navigation (Correlation and Navigation in the Vocabulary Key Representation Space of Language Models, 2024): several answers that begin with different
// tokens. Each round shows the model a list of the answers so far with an open place behind them, takes the likeliest token there that begins none of them, and completes it greedily behind the
// prompt itself, without the list. The answer is the first one, or the one whose final answer is the most common. Nothing is random. It is lossy.

package programs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grove/internal/engine"
	"grove/internal/options"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "icn", Paper: "Correlation and Navigation in the Vocabulary Key Representation Space, 2024", Options: `n=4,top=100,ask="",list="N. ",answer=first`,
		Open: func(o *options.Options) search.Program {
			return icn{
				n: o.Int("n", 4, 2, 64), top: o.Int("top", 100, 2, 4096), ask: o.Text("ask", ""), item: o.Text("list", "N. "),
				extract: search.Extractors[o.Word("answer", "first", "number", "line", "boxed", "text")],
			}
		},
	})
}

type icn struct {
	n       int    // rounds
	top     int    // tokens at the open place that are considered
	ask     string // before the list
	item    string // before an answer of the list, with N for its number
	extract func(text string) string
}

// Samples implements [search.Program]: the rounds have one slot.
func (icn) Samples() int { return 1 }

// Check implements [search.Program].
func (icn) Check(*search.Problem) error { return nil }

// Run implements [search.Program]. There are fewer rounds where no token is left, or no place for the list.
func (c icn) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.Fork(ctx, p, 0, 1)
	if err != nil {
		return nil, err
	}
	r := &icnRun{icn: c, p: p, b: b, result: search.Result{Index: p.Index, Figures: map[string]float64{"rounds": 0, "list_tokens": 0}}}
	more := true
	for range c.n {
		if more, err = r.round(ctx); err != nil || !more {
			break
		}
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return nil, err
	}
	return r.choose()
}

// A icnRun is a search on its way.
type icnRun struct {
	icn
	p      *search.Problem
	b      *search.Samples
	used   []token.ID // that begin an answer
	drawn  [][]engine.SampledToken
	result search.Result
	full   bool // the context has no place for the list
}

// round adds an answer, and returns false where there is no further one.
func (r *icnRun) round(ctx context.Context) (more bool, err error) {
	first, err := r.navigate(ctx)
	if err != nil || first == token.None {
		return false, err
	}
	s := &r.b.All[0]
	for err = r.b.Follow(ctx, 0, first); err == nil && s.GoesOn(); {
		list, e := s.Seq.Likeliest(ctx, 1)
		if err = e; err == nil {
			err = r.b.Follow(ctx, 0, list[0].ID)
		}
	}
	if err != nil {
		return false, err
	}
	a := s.Attempt()
	a.Perplexity = math.Exp(-a.Logprob / float64(a.Tokens))
	if r.extract != nil {
		a.Answer = r.extract(r.p.Text(a.IDs))
	}
	r.used, r.drawn, r.result.Attempts = append(r.used, first), append(r.drawn, slices.Clone(s.Drawn)), append(r.result.Attempts, a)
	r.result.Figures["rounds"]++
	return true, r.b.Rewind(0, nil)
}

// navigate returns the likeliest token behind the list of the answers that begins none of them; none where there is none, or no place for the list.
func (r *icnRun) navigate(ctx context.Context) (token.ID, error) {
	ids, err := r.p.Encode(r.list())
	if err != nil {
		return token.None, err
	}
	s := r.b.All[0].Seq
	prompt := s.Len()
	if err := s.Append(ctx, ids); errors.Is(err, engine.ErrContext) {
		r.full = true
		return token.None, nil
	} else if err != nil {
		return token.None, err
	}
	r.result.Figures["list_tokens"] += float64(len(ids))
	list, err := s.Likeliest(ctx, r.top)
	if err != nil {
		return token.None, err
	}
	for _, t := range list {
		if !slices.Contains(r.used, t.ID) && r.begins(t.ID) {
			return t.ID, s.Truncate(prompt)
		}
	}
	return token.None, s.Truncate(prompt)
}

// list returns the text of the list with an open place at its end. An answer is one line of it.
func (r *icnRun) list() string {
	var b strings.Builder
	b.WriteString(r.ask)
	for i := range len(r.drawn) + 1 {
		b.WriteString(strings.ReplaceAll(r.item, "N", strconv.Itoa(i+1)))
		if i < len(r.drawn) {
			b.WriteString(strings.Join(strings.Fields(r.p.Text(r.result.Attempts[i].IDs)), " ") + "\n")
		}
	}
	return b.String()
}

// begins reports whether a token may begin an answer: it has a text that is not blank, and does not end one.
func (r *icnRun) begins(id token.ID) bool {
	text, err := r.p.Piece(nil, id, false)
	return err == nil && !r.p.Ends(id) && strings.TrimSpace(string(text)) != ""
}

// choose chooses the answer.
func (r *icnRun) choose() (*search.Result, error) {
	switch {
	case len(r.drawn) == 0 && r.full:
		return nil, fmt.Errorf("search: icn: the list behind the prompt does not fit: %w of %d tokens", engine.ErrContext, r.b.All[0].Seq.Engine().Context())
	case len(r.drawn) == 0:
		return nil, fmt.Errorf("search: icn: no token can begin an answer at the open place of the list: %w", sample.ErrAllMasked)
	}
	at := 0
	if r.extract != nil {
		var votes int
		at, votes = search.Vote(r.result.Attempts, false)
		r.result.Figures["votes"] = float64(votes)
	}
	r.result.Tokens = r.drawn[at]
	return &r.result, nil
}
