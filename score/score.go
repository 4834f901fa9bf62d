package score

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"grove/internal/engine"
)

// Token is a token of a continuation, its log-probability, and whether it is the likeliest one.
type Token = engine.ScoreToken

// Continuation is a text that was scored behind a prompt.
type Continuation struct {
	Text          string
	Tokens        []Token
	Logprob       float64  // the sum of those of the tokens, in their order
	Greedy        bool     // each token is the likeliest one: greedy decoding writes this text
	Unconditional *float64 // the same sum behind the prompt that has no question; nil: it was not asked for
}

// New returns a continuation of scored tokens.
func New(text string, tokens []Token) Continuation {
	c := Continuation{Text: text, Tokens: tokens, Greedy: true}
	for _, t := range tokens {
		c.Logprob += float64(t.Logprob)
		c.Greedy = c.Greedy && t.Greedy
	}
	return c
}

// body is the text without the white space that sets it apart from the prompt, which counts in no length.
func (c *Continuation) body() string { return strings.TrimLeftFunc(c.Text, unicode.IsSpace) }

// Bytes returns the bytes of the text without the white space at its beginning.
func (c *Continuation) Bytes() int { return len(c.body()) }

// Characters returns the code points of the text without the white space at its beginning.
func (c *Continuation) Characters() int { return utf8.RuneCountInString(c.body()) }

// Norm is a way to compare continuations of several lengths. Its name is that of lm-evaluation-harness where that has it.
type Norm string

// The normalisations.
const (
	Plain      Norm = "acc"             // the log-probability
	Characters Norm = "acc_norm"        // by a character
	Bytes      Norm = "acc_bytes"       // by a byte
	Tokens     Norm = "acc_tokens"      // by a token
	Mutual     Norm = "acc_mutual_info" // less the log-probability behind the prompt that has no question
)

// Norms returns the normalisations, in the order of reports. Mutual is among them where continuations have an unconditional score.
func Norms(mutual bool) []Norm {
	all := []Norm{Plain, Characters, Bytes, Tokens}
	if mutual {
		all = append(all, Mutual)
	}
	return all
}

// Score returns the score of a continuation by a normalisation; larger is better. A text of white space alone has a length of 1.
func (c *Continuation) Score(n Norm) float64 {
	switch n {
	case Characters:
		return c.Logprob / float64(max(c.Characters(), 1))
	case Bytes:
		return c.Logprob / float64(max(c.Bytes(), 1))
	case Tokens:
		return c.Logprob / float64(max(len(c.Tokens), 1))
	case Mutual:
		if c.Unconditional != nil {
			return c.Logprob - *c.Unconditional
		}
	}
	return c.Logprob
}

// Best returns the place of the continuation with the highest score, of equal ones the first.
func Best(all []Continuation, n Norm) (best int) {
	for i := range all {
		if all[i].Score(n) > all[best].Score(n) {
			best = i
		}
	}
	return best
}
