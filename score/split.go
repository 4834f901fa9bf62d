// Package score compares texts by the log-probabilities that a model gives them behind a prompt: the tokens at the border of prompt and
// continuation, the customary normalisations, and the accuracy over questions with several answers.
package score

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Split returns the tokens of a prompt and those of each continuation behind it, as lm-evaluation-harness cuts them. White space at the end of
// the prompt moves to the beginning of each continuation. The prompt is encoded by itself, with the tokens that begin a text;
// prompt and continuation are encoded together, and the tokens behind as many as the prompt has are the continuation's. A prompt without text is
// the token that begins a text, or the one that ends texts where there is no such token. encode encodes a text without tokens around it. Errors: a continuation
// without a token of its own, a vocabulary with neither token, those of encode.
func Split(t *tokenizer.Tokenizer, prompt string, texts []string, encode func(text string) ([]token.ID, error)) (prefix []token.ID, all [][]token.ID, err error) {
	trimmed := strings.TrimRightFunc(prompt, unicode.IsSpace)
	moved := prompt[len(trimmed):]
	around, _ := t.Around(tokenizer.Continue)
	begin := around[:len(around):len(around)]
	ids, err := encode(trimmed)
	if err != nil {
		return nil, nil, err
	}
	if prefix = append(begin, ids...); len(prefix) == 0 {
		if prefix, err = alone(t); err != nil {
			return nil, nil, err
		}
		begin = prefix
	}
	for i, c := range texts {
		if ids, err = encode(trimmed + moved + c); err != nil {
			return nil, nil, &Error{continuations, fmt.Errorf("continuation %d: %w", i, err)}
		}
		whole := append(begin[:len(begin):len(begin)], ids...)
		if len(whole) <= len(prefix) {
			return nil, nil, &Error{continuations, fmt.Errorf("continuation %d: %.40q has no token of its own behind the prompt, whose last word it may end; end the prompt at the end of a word", i, c)}
		}
		all = append(all, whole[len(prefix):])
	}
	return prefix, all, nil
}

// alone returns the token that stands for a prompt without text.
func alone(t *tokenizer.Tokenizer) ([]token.ID, error) {
	for _, id := range []token.ID{t.BOS(), t.EOS()} {
		if id != token.None {
			return []token.ID{id}, nil
		}
	}
	return nil, &Error{"prompt", errors.New("the prompt is empty, and the vocabulary has no token that begins or ends a text; give a prompt")}
}

// Bodies returns continuations without the white space that sets them apart from a prompt.
func Bodies(continuations []string) []string {
	all := make([]string, len(continuations))
	for i, c := range continuations {
		all[i] = strings.TrimLeftFunc(c, unicode.IsSpace)
	}
	return all
}

// continuations is the name of the continuations in an [Error].
const continuations = "continuations"

// Error blames a part of what is to be scored: its prompt, its continuations, or the unconditional prompt.
type Error struct {
	Part string // prompt, continuations or unconditional
	Err  error
}

// Error returns the problem, as one line.
func (e *Error) Error() string { return "score: " + e.Err.Error() }

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Err }

// Unconditional returns an error of the unconditional prompt.
func Unconditional(err error) error {
	return &Error{"unconditional", fmt.Errorf("the unconditional prompt: %w", err)}
}

// CheckLengths returns an error where a prompt, or a continuation behind it, has more tokens than the context. full is what the error is.
func CheckLengths(prefix []token.ID, all [][]token.ID, context int, full error) error {
	if n := len(prefix); n > context {
		return &Error{"prompt", fmt.Errorf("the prompt has %d tokens: %w of %d tokens", n, full, context)}
	}
	for i, ids := range all {
		if n := len(prefix) + len(ids); n > context {
			return &Error{continuations, fmt.Errorf("continuation %d and the prompt have %d tokens: %w of %d tokens", i, n, full, context)}
		}
	}
	return nil
}
