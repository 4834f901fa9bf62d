package constrain

import (
	"time"

	"grove/constrain/grammar"
	"grove/constrain/schema"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Meter measures constraints with one vocabulary, without a model. It is not safe for concurrent use.
type Meter struct {
	tokenizer  *tokenizer.Tokenizer
	vocabulary *Vocabulary
}

// NewMeter returns a meter for models with a tokenizer.
func NewMeter(t *tokenizer.Tokenizer) (*Meter, error) {
	v, err := NewVocabulary(t, t.Size(), sample.Thinking{})
	if err != nil {
		return nil, err
	}
	return &Meter{t, v}, nil
}

// Figures are the times of a constraint, and its verdicts over texts.
type Figures struct {
	Compile time.Duration // until the grammar is compiled
	First   time.Duration // until the first mask is there, Compile included
	Steps   []time.Duration
	Read    []bool // of each text: all its tokens are legal
	Legal   []bool // of each text: and it may end there
}

// Measure compiles a constraint, and reads the tokens of texts under it, a mask before each. Of a schema, Schema and FreeOrder count, and
// integers may also be written with a fraction of zeros or an exponent. Errors are those of the constraint, and of its budgets; the figures
// hold what was measured before.
func (m *Meter) Measure(c Spec, texts []string) (f Figures, err error) {
	if text := c.Schema; text != nil {
		var o schema.Options
		if c.FreeOrder {
			o.Order = schema.Free
		}
		c = Spec{Source: func() (grammar.Source, error) { return schema.Compile(text, o) }}
	}
	start := time.Now()
	made, err := Compile(c, m.vocabulary, Limits{})
	f.Compile = time.Since(start)
	if err != nil {
		return f, err
	}
	_, err = made.Read(nil)
	f.First = time.Since(start)
	if err != nil {
		return f, err
	}
	var ids []token.ID
	for _, text := range texts {
		if ids, err = m.tokenizer.Encode(ids[:0], text, tokenizer.Options{Plain: true, Inside: true}); err != nil {
			return f, err
		}
		r, err := made.Read(ids)
		f.Steps = append(f.Steps, r.Steps...)
		f.Read = append(f.Read, r.Tokens == len(ids))
		f.Legal = append(f.Legal, r.Ends)
		if err != nil {
			return f, err
		}
	}
	return f, nil
}
