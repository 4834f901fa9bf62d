package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"grove"
	"grove/text/token"
	"grove/text/tokenizer"
)

// PerplexityOptions says what [Model.Perplexity] measures.
type PerplexityOptions struct {
	Context int    // tokens of a chunk; 0: 512, or what the model has room for
	Chunks  int    // at most; 0: all of the text
	Base    *Model // compared with, token by token; nil: none
}

// PerplexityReport is how well a model predicts a text. Errors are standard errors of means.
type PerplexityReport struct {
	Chunks  int `json:"chunks"`
	Context int `json:"context"`
	Tokens  int `json:"tokens"` // scored
	Bytes   int `json:"bytes"`  // that the scored tokens stand for

	Perplexity       float64 `json:"perplexity"`
	PerplexityError  float64 `json:"perplexity_error"`
	BitsPerByte      float64 `json:"bits_per_byte"` // 0 where the tokens stand for no bytes
	BitsPerByteError float64 `json:"bits_per_byte_error"`

	Base *DivergenceReport `json:"base,omitempty"`
}

// Perplexity measures how well the model predicts a text, as llama.cpp does: the text's tokens are cut into
// chunks of o.Context, each computed by itself, its first token replaced by the one that begins a text where
// the model asks for that; scored are the tokens of the second half, each given all before it in its chunk.
// What is left of the text behind the last whole chunk is not used. With a base model, which must have the same
// vocabulary, the distributions behind the scored tokens' predecessors are compared. progress, where it is
// not nil, is told of chunks done and of all.
func (m *Model) Perplexity(ctx context.Context, text string, o PerplexityOptions, progress func(done, all int)) (*PerplexityReport, error) {
	t, err := tokenizer.FromGGUF(m.file)
	if err != nil {
		return nil, err
	}
	if o.Context == 0 {
		o.Context = min(defaultChunk, m.engine.Context())
	}
	if err := o.check(t); err != nil {
		return nil, &grove.OptionError{Err: err}
	}
	chunks, err := cutText(t, text, o)
	if err != nil {
		return nil, err
	}
	var s score
	for i, ids := range chunks {
		if err := m.scoreChunk(ctx, o.Base, ids, &s); err != nil {
			return nil, err
		}
		for _, id := range ids[len(ids)/2+1:] {
			s.piece, err = t.AppendPiece(s.piece[:0], id, true)
			s.bytes += len(s.piece)
			if err != nil {
				return nil, err
			}
		}
		if progress != nil {
			progress(i+1, len(chunks))
		}
	}
	r := s.report(o.Base != nil)
	r.Chunks, r.Context = len(chunks), o.Context
	if math.IsInf(r.Perplexity, 0) {
		return nil, fmt.Errorf("bench: the mean log-probability of a token is %g: the perplexity is beyond the range of numbers", -s.nll.mean)
	}
	return r, nil
}

// Tokens of a chunk.
const (
	defaultChunk = 512
	minChunk     = 3 // one of them is scored
)

func (o PerplexityOptions) check(t *tokenizer.Tokenizer) error {
	if o.Context < minChunk {
		return fmt.Errorf("bench: a chunk of %d tokens; %d are the fewest of which one can be scored", o.Context, minChunk)
	}
	if o.Base == nil {
		return nil
	}
	base, err := tokenizer.FromGGUF(o.Base.file)
	if err != nil {
		return err
	}
	if base.Size() != t.Size() {
		return fmt.Errorf("bench: the base model has a vocabulary of %d tokens and the model %d: they cannot be compared", base.Size(), t.Size())
	}
	for id := range token.ID(t.Size()) {
		if ours, theirs := t.Text(id), base.Text(id); ours != theirs {
			return fmt.Errorf("bench: token %d is %q in the base model and %q in the model: they cannot be compared", id, theirs, ours)
		}
	}
	return nil
}

// cutText returns the chunks of a text.
func cutText(t *tokenizer.Tokenizer, text string, o PerplexityOptions) ([][]token.ID, error) {
	begin, err := t.Encode(nil, "", tokenizer.Options{Special: true})
	if err != nil {
		return nil, err
	}
	begins := len(begin) > 0 && begin[0] == t.BOS()
	ids, err := t.Encode(begin[:0:0], text, tokenizer.Options{Plain: true})
	if err != nil {
		return nil, err
	}
	if begins {
		ids = append([]token.ID{t.BOS()}, ids...)
	}
	n := len(ids) / o.Context
	if n == 0 {
		return nil, fmt.Errorf("bench: the text has %d tokens, less than one chunk of %d", len(ids), o.Context)
	}
	if o.Chunks > 0 {
		n = min(n, o.Chunks)
	}
	chunks := make([][]token.ID, n)
	for i := range chunks {
		chunks[i] = ids[i*o.Context : (i+1)*o.Context]
		if begins {
			chunks[i][0] = t.BOS()
		}
	}
	return chunks, nil
}

// scoreChunk scores the second half of a chunk.
func (m *Model) scoreChunk(ctx context.Context, base *Model, ids []token.ID, s *score) error {
	first := len(ids) / 2
	ask, predicted := ids[:len(ids)-1], ids[first+1:]
	baseRow := func() ([]float32, error, bool) { return nil, nil, true }
	if base != nil {
		next, stop := iter.Pull2(base.rows(ctx, ask, first))
		defer stop()
		baseRow = next
	}
	for row, err := range m.rows(ctx, ask, first) {
		if err != nil {
			return err
		}
		other, err, _ := baseRow()
		if err != nil {
			return err
		}
		s.add(row, other, predicted[0])
		predicted = predicted[1:]
	}
	return nil
}

// errEnough ends the computation of rows that nobody wants.
var errEnough = errors.New("enough")

// rows yields the logits behind each token from index first on, or an error at the end.
func (m *Model) rows(ctx context.Context, ids []token.ID, first int) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		err := m.engine.Logits(ctx, ids, first, func(row []float32) error {
			if !yield(row, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// WriteText writes the report for a person; base names the model compared with.
func (r *PerplexityReport) WriteText(w io.Writer, base string) error {
	_, err := fmt.Fprintf(w, "perplexity %.4f ± %.4f\nbits a byte %.4f ± %.4f\nscored %d tokens, %d bytes: the second halves of %d chunks of %d tokens\n",
		r.Perplexity, r.PerplexityError, r.BitsPerByte, r.BitsPerByteError, r.Tokens, r.Bytes, r.Chunks, r.Context)
	if r.Base == nil || err != nil {
		return err
	}
	b := r.Base
	_, err = fmt.Fprintf(w, `
against %s, perplexity %.4f ± %.4f:
ln of the ratio of perplexities %.6f ± %.6f
KL divergence %.6f ± %.6f; median %.6f, 99 %% %.6f, 99.9 %% %.6f, largest %.6f
same likeliest token %.3f ± %.3f %%
`, base, b.Perplexity, b.PerplexityError, b.LogRatio, b.LogRatioError, b.KL, b.KLError, b.KLMedian, b.KL99, b.KL999, b.KLMax,
		100*b.Agreement, 100*b.AgreementError)
	return err
}

// WriteJSON writes the report as one object.
func (r *PerplexityReport) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
