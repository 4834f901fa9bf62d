package grove

import (
	"fmt"
	"strings"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// Penalties change logits before tokens are drawn: biases, penalties, DRY, a minimum length. The zero value changes
// nothing.
type Penalties = sample.Penalties

// Order says whether truncation (top-k, top-p, min-p) sees the probabilities before or after the temperature.
type Order = sample.Order

// The values of [Sampling]'s Order.
const (
	TruncateFirst = sample.TruncateFirst // top-k, top-p, min-p, then temperature: the order of llama.cpp
	TemperFirst   = sample.TemperFirst   // temperature, min-p, top-k, then top-p: the order of vLLM
)

// Bias is a number that is added to the logit of a token; minus infinity forbids it. See [Penalties].
type Bias = sample.Bias

// XTC is the setting of [Sampling] that excludes the likeliest tokens.
type XTC = sample.XTC

// DynamicTemperature is the setting of [Sampling] by which the temperature follows the entropy.
type DynamicTemperature = sample.DynamicTemperature

// Mirostat is the setting of [Sampling] that holds the surprise of tokens.
type Mirostat = sample.Mirostat

// DRY is the setting of [Penalties] against repetitions; [Model.Breakers] makes its breakers of texts.
type DRY = sample.DRY

// RandomSeed returns an unpredictable seed, for a [Request] whose caller must know its seed beforehand.
func RandomSeed() uint64 { return sample.RandomSeed() }

// The bounds of [Model.Breakers].
const (
	MaxBreakers = 16 // texts
	MaxBreaker  = 40 // bytes of one

	maxBreakerTokens = 1 << 16 // sequences, as many as [DRY] takes
)

// DefaultBreakers returns the texts that interrupt repetitions in llama.cpp.
func DefaultBreakers() []string { return []string{"\n", ":", "\"", "*"} }

// Breakers returns the tokens that texts are, for the breakers of [DRY]: each token that contains a text, and each that
// ends with the beginning of one, followed by the tokens of its rest. Nil stands for [DefaultBreakers]. It returns an
// [*OptionError] for too many texts, and for one that is empty or too long.
func (m *Model) Breakers(texts []string) (all [][]token.ID, err error) {
	if texts == nil {
		texts = DefaultBreakers()
	}
	if len(texts) > MaxBreakers {
		return nil, &OptionError{Err: fmt.Errorf("grove: DRY has %d breakers; it must have at most %d", len(texts), MaxBreakers)}
	}
	rests := make([][][]token.ID, len(texts)) // of each text, behind so many bytes
	for i, text := range texts {
		if text == "" || len(text) > MaxBreaker {
			return nil, &OptionError{Err: fmt.Errorf("grove: a breaker has %d bytes; it must have 1 to %d", len(text), MaxBreaker)}
		}
		rests[i] = make([][]token.ID, len(text))
		for n := 1; n < len(text); n++ {
			if rests[i][n], err = m.Tokenize(text[n:], false, true); err != nil {
				return nil, err
			}
		}
	}
	var piece []byte
	for id := range token.ID(m.tokenizer.Size()) {
		if piece, err = m.tokenizer.AppendPiece(piece[:0], id, true); err != nil {
			return nil, err
		}
		for i, text := range texts {
			all = appendBreakers(all, id, string(piece), text, rests[i])
		}
		if len(all) > maxBreakerTokens {
			return nil, &OptionError{Err: fmt.Errorf("grove: the breakers are more than %d sequences of tokens; give fewer or rarer texts", maxBreakerTokens)}
		}
	}
	return all, nil
}

// appendBreakers appends the ways in which a breaker begins in a token.
func appendBreakers(all [][]token.ID, id token.ID, piece, text string, rests [][]token.ID) [][]token.ID {
	if strings.Contains(piece, text) {
		return append(all, []token.ID{id})
	}
	for n := min(len(piece), len(text)-1); n > 0; n-- {
		if strings.HasSuffix(piece, text[:n]) {
			all = append(all, append([]token.ID{id}, rests[n]...))
		}
	}
	return all
}

// Advice has the settings that a model's file recommends for the draw of tokens. A field that is nil is not recommended, or the file's
// value cannot be honoured. The zero value recommends nothing.
type Advice = sample.Advice

// Advice returns what the model's file recommends for the draw of tokens, as [Info] has it.
func (m *Model) Advice() Advice { return m.advice }

// DefaultSampling returns the settings of `grove run` for the model: those of [DefaultSampling], where the model's file
// recommends none.
func (m *Model) DefaultSampling() Sampling {
	s, p := DefaultSampling(), Penalties{}
	if d := m.resident.Model.Info().Diffusion; d != nil && d.Renoise != nil {
		s = Sampling{Temperature: 1, Order: s.Order} // the file's schedule of temperatures is the draw
	}
	m.advice.Apply(&s, &p)
	return s
}

// DefaultPenalties returns the penalties of `grove run` for the model: those that the model's file recommends, if any.
func (m *Model) DefaultPenalties() Penalties {
	s, p := Sampling{}, Penalties{}
	m.advice.Apply(&s, &p)
	return p
}
