package score

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Question is a prompt with choices, one of which may be known to be right.
type Question struct {
	Prompt  string   `json:"prompt"`
	Choices []string `json:"choices"`
	Answer  *int     `json:"answer"` // the place of the right choice, from 0; nil: it is not known
}

// maxChoices bounds the choices of a question.
const maxChoices = 1024

// ParseQuestions reads questions, a JSON object on each line; empty lines are left out. Errors name the line: no JSON of that form, no
// choices or too many, an answer that is none of them.
func ParseQuestions(text string) (all []Question, err error) {
	n := 0
	for line := range strings.Lines(text) {
		if n++; strings.TrimSpace(line) == "" {
			continue
		}
		var q Question
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		err := d.Decode(&q)
		if _, more := d.Token(); err == nil && more != io.EOF {
			err = errors.New("there is more behind the object; write one on each line")
		}
		if err == nil {
			err = q.check()
		}
		if err != nil {
			return nil, fmt.Errorf("score: line %d: %w", n, err)
		}
		all = append(all, q)
	}
	if len(all) == 0 {
		return nil, errors.New(`score: there are no questions; write one on each line: {"prompt":"...","choices":["...","..."],"answer":0}`)
	}
	return all, nil
}

// check returns what is wrong with a question.
func (q *Question) check() error {
	switch n := len(q.Choices); {
	case n == 0 || n > maxChoices:
		return fmt.Errorf("choices: there are %d; there must be from 1 to %d", n, maxChoices)
	case q.Answer != nil && (*q.Answer < 0 || *q.Answer >= n):
		return fmt.Errorf("answer is %d; it must be the place of a choice, from 0 to %d", *q.Answer, n-1)
	}
	return nil
}

// Continuations returns the choices as they stand behind the prompt: with a delimiter between, unless the prompt is empty or ends with white space or the
// choice begins with it.
func (q *Question) Continuations(delimiter string) []string {
	apart := func(s string, cut func(string, func(rune) bool) string) bool { return cut(s, unicode.IsSpace) != s }
	all := make([]string, len(q.Choices))
	for i, c := range q.Choices {
		if all[i] = delimiter + c; q.Prompt == "" || apart(q.Prompt, strings.TrimRightFunc) || apart(c, strings.TrimLeftFunc) {
			all[i] = c
		}
	}
	return all
}

// Tally is the accuracy over questions, by normalisation.
type Tally struct {
	Norms      []Norm
	Accuracies []Accuracy // of each of Norms
}

// NewTally returns a tally of no questions.
func NewTally(norms []Norm) *Tally { return &Tally{norms, make([]Accuracy, len(norms))} }

// Add counts a question by its scored choices and the place of the right one.
func (t *Tally) Add(choices []Continuation, answer int) {
	for i, n := range t.Norms {
		t.Accuracies[i].Add(Best(choices, n) == answer)
	}
}
