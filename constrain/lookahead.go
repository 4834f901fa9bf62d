package constrain

import (
	"errors"
	"fmt"
	"sync"

	"grove/constrain/hmm"
	"grove/constrain/regex"
)

// A Lookahead is a hidden Markov model of a model's texts, see [hmm.Model], and the tokens that an answer may have. Prompts are
// not healed beside it: the model knows no text that begins in the middle of a prompt.
type Lookahead struct {
	Model  *hmm.Model
	Tokens int
}

// OpenLookahead reads the model of a GGUF file that [hmm.Model.Write] wrote, for answers of at most tokens tokens.
// Errors are those of the file.
func OpenLookahead(path string, tokens int) (*Lookahead, error) {
	model, err := hmm.Open(path)
	if err != nil {
		return nil, err
	}
	return &Lookahead{Model: model, Tokens: tokens}, nil
}

// guide returns the automaton by which a spec of a kind looks ahead.
func (spec *Spec) guide(kind string, v *Vocabulary) (*hmm.Automaton, error) {
	if spec.Lookahead.Model == nil || spec.Lookahead.Tokens < 1 {
		return nil, fmt.Errorf("constrain: Lookahead has no model, or %d tokens; it needs both", spec.Lookahead.Tokens)
	}
	if len(spec.Triggers) > 0 || spec.Thoughts {
		return nil, errors.New("constrain: Lookahead begins with the answer: there are no triggers or thoughts before it")
	}
	var machine hmm.Machine
	switch kind {
	case "Choices":
		var err error
		if machine, err = choices(spec.Choices); err != nil {
			return nil, err
		}
	case "Automaton":
		machine = spec.Automaton
	case "Regex":
		s := regex.New(regex.Limits{})
		id, err := regex.Whole(s, spec.Regex)
		if err != nil {
			return nil, fmt.Errorf("constrain: the regular expression: %w", err)
		}
		machine = &expression{store: s, start: id}
	default:
		return nil, fmt.Errorf("constrain: Lookahead with %s: only Regex, Choices and Automaton are finite automata", kind)
	}
	a, err := hmm.Compile(v.trie, machine, spec.Lookahead.Model, spec.Lookahead.Tokens)
	if err != nil {
		return nil, fmt.Errorf("constrain: Lookahead: %w", err)
	}
	return a, nil
}

// expression is a regular expression as a machine: a state is a derivative, 0 the expression itself. It is safe for
// concurrent use.
type expression struct {
	mu    sync.Mutex
	store *regex.Store
	start regex.ID
}

// id returns the derivative of a state; a live one is never [regex.Nothing], which is 0.
func (e *expression) id(state int) regex.ID {
	if state == 0 {
		return e.start
	}
	return regex.ID(state)
}

// Step implements [hmm.Machine].
func (e *expression) Step(state int, b byte) (next int, alive bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := e.store.Derive(e.id(state), b)
	return int(id), id != regex.Nothing
}

// Final implements [hmm.Machine].
func (e *expression) Final(state int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.store.Nullable(e.id(state))
}
