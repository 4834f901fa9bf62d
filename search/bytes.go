package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/search/bytewise"
)

// Bytes draws an answer byte by byte, from the mean of what one or several views of bytes expect. The first one is behind the problem's first sequence. It is for one
// goroutine.
type Bytes struct {
	Views   []*bytewise.TreeView
	Weights []float64 // of the views; they sum to 1

	p     *Problem
	noise *rand.Rand
	heat  float64 // the temperature; 0: the likeliest symbol
	text  []byte
	ids   int // tokens of the text, when it was encoded last
	first int // bytes of the text then
}

// encodeEvery is how many bytes come between two encodings of the text, by which stop strings and the bound of tokens are found: an answer may be computed that
// many bytes too far, and is cut.
const encodeEvery = 8

// mostBytes bounds an answer without a bound of tokens, beside the context.
const mostBytes = 1 << 20

// CheckBytes returns an error where the model of a problem has no view of bytes, or the answer cannot be drawn by bytes.
func (p *Problem) CheckBytes(program string) error {
	if p.Weighed {
		return fmt.Errorf("search: %s: the constraint weighs tokens, and %s draws bytes; leave the weights out", program, program)
	}
	if _, err := p.Words(); err != nil {
		return fmt.Errorf("search: %s: %w", program, err)
	}
	return nil
}

// Draw draws the answer and closes the views. Its tokens are those in which the tokenizer writes its text, with the probabilities that the model gives to
// them. Figures count bytes, steps and rows.
func (b *Bytes) Draw(ctx context.Context, p *Problem) (*Result, error) {
	b.p, b.noise = p, p.Rand()
	if a := p.Answer(); !p.Greedy {
		b.heat = float64(a.Sampling.Temperature)
	}
	ss, err := Fork(ctx, p, 0, 1)
	ended := false
	if err == nil {
		ended, err = b.write(ctx)
	}
	var cost bytewise.TreeCost
	for _, v := range b.Views {
		c := v.Cost()
		cost.Forwards, cost.Rows = cost.Forwards+c.Forwards, cost.Rows+c.Rows
		err = errors.Join(err, v.Close())
	}
	if err != nil {
		return nil, err
	}
	if err := b.spell(ctx, ss, ended); err != nil {
		return nil, err
	}
	one, n := &ss.All[0], float64(max(1, len(b.text)))
	return &Result{Tokens: one.Drawn, Index: p.Index, Attempts: []Attempt{one.Attempt()}, Figures: map[string]float64{
		"bytes": float64(len(b.text)), "steps_a_byte": float64(cost.Forwards) / n, "rows_a_byte": float64(cost.Rows) / n,
	}}, nil
}

// write draws bytes until the text ends, and reports whether that was drawn.
func (b *Bytes) write(ctx context.Context) (ended bool, err error) {
	for len(b.text) < mostBytes {
		if len(b.text)-b.first >= encodeEvery {
			if over, err := b.over(); over || err != nil {
				return false, err
			}
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		symbol, err := b.next(ctx)
		switch {
		case errors.Is(err, engine.ErrContext):
			return false, nil
		case err != nil || symbol == bytewise.End:
			return err == nil, err
		}
		b.text = append(b.text, byte(symbol))
	}
	return false, nil
}

// over reports whether the answer is as long as it may be, or has a stop string.
func (b *Bytes) over() (bool, error) {
	ids, n, err := b.tokens()
	if err != nil {
		return false, err
	}
	b.p.Watch.Drew(max(0, len(ids)-b.ids))
	b.ids, b.first = len(ids), len(b.text)
	return n < len(ids), nil // what follows may change the last one
}

// tokens returns those in which the tokenizer writes the text, and how many of them are the answer: up to the bound, or the one that ends it.
func (b *Bytes) tokens() (ids []token.ID, n int, err error) {
	if ids, err = b.p.Encode(string(b.text)); err != nil {
		return nil, 0, err
	}
	most, ends := len(ids), b.p.Ender()
	if b.p.MaxTokens > 0 {
		most = min(most, b.p.MaxTokens)
	}
	for ended := false; n < most && !ended; n++ {
		var d engine.SampledToken
		d.ID = ids[n]
		ended = ends(d)
	}
	return ids, n, nil
}

// next draws a symbol, and tells it to all views.
func (b *Bytes) next(ctx context.Context) (int, error) {
	all, err := b.expected(ctx)
	if err != nil {
		return 0, err
	}
	var mean [bytewise.End + 1]float64
	for i := range all {
		for s, p := range all[i].P {
			mean[s] += b.Weights[i] * p
		}
	}
	if all[0].P[bytewise.End] == 0 {
		mean[bytewise.End] = 0 // the request forbids it, or the model's text is not whole
	}
	u := b.noise.Float64()
	for {
		s := b.pick(&mean, u)
		if s < 0 {
			return 0, fmt.Errorf("search: bytes: no byte can come next by all models; their tokenizers have no text in common: %w", bytewise.ErrText)
		}
		if s == bytewise.End {
			return s, nil
		}
		spelled, err := b.push(byte(s), all)
		if spelled || err != nil {
			return s, err
		}
		mean[s] = 0 // a model cannot write it there
	}
}

// expected returns what each view expects, computed side by side.
func (b *Bytes) expected(ctx context.Context) ([]bytewise.Distribution, error) {
	all, errs := make([]bytewise.Distribution, len(b.Views)), make([]error, len(b.Views))
	done := make(chan struct{})
	for i, v := range b.Views[1:] {
		go func() {
			all[i+1], errs[i+1] = v.Next(ctx)
			done <- struct{}{}
		}()
	}
	all[0], errs[0] = b.Views[0].Next(ctx)
	for range b.Views[1:] {
		<-done
	}
	return all, errors.Join(errs...)
}

// push tells a byte to all views, and reports whether all can write it: those that give it no probability are asked first.
func (b *Bytes) push(s byte, all []bytewise.Distribution) (bool, error) {
	for _, likely := range []bool{false, true} {
		for i, v := range b.Views {
			if (all[i].P[s] > 0) != likely {
				continue
			}
			err := v.Push(s)
			if errors.Is(err, bytewise.ErrByte) && !likely {
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// pick returns the symbol at u of the distribution's mass, at the temperature, or the likeliest one; -1: there is none.
func (b *Bytes) pick(p *[bytewise.End + 1]float64, u float64) int {
	most, sum := -1, 0.0
	for s := range p {
		if p[s] > 0 && (most < 0 || p[s] > p[most]) {
			most = s
		}
	}
	if most < 0 || b.heat == 0 {
		return most
	}
	var tempered [bytewise.End + 1]float64
	for s := range p {
		if p[s] > 0 {
			tempered[s] = math.Pow(p[s]/p[most], 1/b.heat)
			sum += tempered[s]
		}
	}
	u *= sum
	last := most
	for s, q := range tempered {
		if q > 0 {
			if last = s; u < q {
				break
			}
			u -= q
		}
	}
	return last
}

// spell gives the sample the tokens of the text, and the one that ends it where that was drawn: the likeliest that does.
func (b *Bytes) spell(ctx context.Context, ss *Samples, ended bool) error {
	ids, n, err := b.tokens()
	if err != nil {
		return err
	}
	one := &ss.All[0]
	if err = ss.FollowAll(ctx, 0, ids[:n]); err != nil || !ended || !one.GoesOn() {
		return err
	}
	row, err := one.Seq.Probs(ctx, nil)
	if err != nil {
		return err
	}
	end := token.None
	for id := range row {
		if b.p.Ends(token.ID(id)) && (end == token.None || row[id] > row[end]) {
			end = token.ID(id)
		}
	}
	if end == token.None {
		return nil
	}
	d, err := one.Seq.Describe(ctx, end)
	if err == nil {
		ss.take(one, d)
	}
	return err
}

// OpenText opens a sequence of a guide behind the text of a problem's prompt, in the guide's own tokens, for the caller to close. Errors besides those of [Guide.Open]: a prompt with control
// tokens but one at its beginning, which other vocabularies do not have.
func (g *Guide) OpenText(ctx context.Context, p *Problem) (*engine.Sequence, error) {
	var text []byte
	for i, id := range p.Prompt {
		n := len(text)
		var err error
		if text, err = p.Piece(text, id, false); err != nil {
			return nil, err
		}
		if len(text) == n && i > 0 {
			return nil, fmt.Errorf("search: guide %s: token %d of the prompt is a control token: %w; guides with other vocabularies go on with texts alone, so give a plain prompt", g.Name, i, ErrPrompt)
		}
	}
	ids, err := g.Tokenizer.Encode(nil, string(text), tokenizer.Options{Special: true, Plain: true})
	if err != nil {
		return nil, err
	}
	of := *p
	of.Prompt = ids
	return g.Open(ctx, &of, engine.Answer{})
}
