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
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/search/programs"
)

// PerplexityOptions is the options of [Model.Perplexity].
type PerplexityOptions struct {
	Context int                     // tokens of a chunk; 0: 512, or the context of the model where that is less
	Chunks  int                     // at most; 0: all of the text
	Base    *Model                  // base model to compare with, token by token; nil: none
	Units   float64                 // probability above which tokens are of lexical units; 0: units are not looked for
	Pauses  *programs.AdadecLearner // learns at which entropy [adadec] pauses; nil: nothing does

	BaseName string // describes the base model in the report
}

// PerplexityReport is how well a model predicts a text. Errors are standard errors of means.
type PerplexityReport struct {
	Chunks  int `json:"chunks"`
	Context int `json:"context"`
	Tokens  int `json:"tokens"` // scored
	Bytes   int `json:"bytes"`  // of the scored tokens

	Perplexity       float64 `json:"perplexity"`
	PerplexityError  float64 `json:"perplexity_error"`
	BitsPerByte      float64 `json:"bits_per_byte"` // 0: the tokens have no bytes
	BitsPerByteError float64 `json:"bits_per_byte_error"`

	Base   *DivergenceReport       `json:"base,omitempty"`
	Units  *UnitReport             `json:"units,omitempty"`
	Pauses *programs.AdadecLearner `json:"pauses,omitempty"`
}

// Perplexity measures how well the model predicts a text, as llama.cpp does. It cuts the tokens of the text into chunks of
// o.Context and computes each chunk by itself. The token that begins a text replaces the first token of a chunk, if the
// model asks for it. Perplexity scores the tokens of the second half, each given all tokens before it in its chunk. It
// ignores the tokens after the last whole chunk. With a base model, which must have the same vocabulary, it compares the
// distributions of both models for each scored token.
func (m *Model) Perplexity(ctx context.Context, text string, o PerplexityOptions, progress Progress) (*PerplexityReport, error) {
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
	s := score{units: UnitFinder{Threshold: o.Units}, learner: o.Pauses}
	for i, ids := range chunks {
		if err := m.scoreChunk(ctx, o.Base, ids, &s); err != nil {
			return nil, err
		}
		s.units.End()
		for _, id := range ids[len(ids)/2+1:] {
			s.piece, err = t.AppendPiece(s.piece[:0], id, true)
			s.bytes += len(s.piece)
			if err != nil {
				return nil, err
			}
		}
		progress.show(i+1, len(chunks))
	}
	r := s.report(o.Base != nil)
	r.Chunks, r.Context, r.Pauses = len(chunks), o.Context, o.Pauses
	if r.Base != nil {
		r.Base.Name = o.BaseName
	}
	if o.Units > 0 {
		r.Units = s.units.Report()
	}
	if math.IsInf(r.Perplexity, 0) {
		return nil, fmt.Errorf("bench: the mean log-probability of a token is %g: the perplexity overflows", -s.nll.Mean)
	}
	return r, o.Pauses.Learn()
}

// Tokens of a chunk.
const (
	defaultChunk = 512
	minChunk     = 3 // one of them is scored
)

func (o PerplexityOptions) check(t *tokenizer.Tokenizer) error {
	if o.Context < minChunk {
		return fmt.Errorf("bench: a chunk of %d tokens; it must have at least %d, so that one is scored", o.Context, minChunk)
	}
	if !(o.Units >= 0 && o.Units < 1) {
		return fmt.Errorf("bench: lexical units above the probability %v; it must be below 1", o.Units)
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

// Layers searches which layers each token of a text needs, which is cut as for [Model.Perplexity]. Errors: an [*grove.OptionError], those of [PatternText].
func (m *Model) Layers(ctx context.Context, text string, cut PerplexityOptions, o PatternTextOptions) (*PatternTextReport, error) {
	o.Layers = m.engine.Model().Size().Layers
	t, err := tokenizer.FromGGUF(m.file)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.Check(), cut.check(t)); err != nil {
		return nil, &grove.OptionError{Err: err}
	}
	chunks, err := cutText(t, text, cut)
	if err != nil {
		return nil, err
	}
	return PatternText(ctx, m.engine.Model(), chunks, o)
}

// errEnough ends the computation of rows that are not needed.
var errEnough = errors.New("enough")

// rows yields the logits of each token from index first on, or an error at the end.
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

// WriteText writes the report as text.
func (r *PerplexityReport) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "perplexity %.4f ± %.4f\nbits a byte %.4f ± %.4f\nscored %d tokens, %d bytes: the second halves of %d chunks of %d tokens\n",
		r.Perplexity, r.PerplexityError, r.BitsPerByte, r.BitsPerByteError, r.Tokens, r.Bytes, r.Chunks, r.Context)
	err = errors.Join(err, r.Pauses.WriteText(w))
	if r.Units != nil && err == nil {
		err = r.Units.WriteText(w)
	}
	if r.Base == nil || err != nil {
		return err
	}
	b := r.Base
	_, err = fmt.Fprintf(w, `
against %s, perplexity %.4f ± %.4f:
ln of the ratio of perplexities %.6f ± %.6f
KL divergence %.6f ± %.6f; median %.6f, 99 %% %.6f, 99.9 %% %.6f, largest %.6f
same likeliest token %.3f ± %.3f %%
`, b.Name, b.Perplexity, b.PerplexityError, b.LogRatio, b.LogRatioError, b.KL, b.KLError, b.KLMedian, b.KL99, b.KL999, b.KLMax,
		100*b.Agreement, 100*b.AgreementError)
	return err
}

// WriteJSON writes the report as one object.
func (r *PerplexityReport) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
