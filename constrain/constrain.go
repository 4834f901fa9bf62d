// Package constrain holds texts to grammars while they are drawn. A [Spec] says which texts are legal: those of a JSON schema, a
// regular expression, a grammar, a list. [Compile] makes a [Constraint] of it, for one [Vocabulary] and for any number of texts, and each text gets a [Stage], which
// forbids tokens behind which no legal text goes on, and no others.
package constrain

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"grove/constrain/earley"
	"grove/constrain/grammar"
	"grove/constrain/hmm"
	"grove/internal/sample"
	"grove/internal/text/calls"
)

// Spec says which texts are legal. One of its kinds is set: Schema, Regex, Grammar, Choices, Tree, Check, Monitor, Source.
type Spec struct {
	// Schema is a JSON Schema; the text is JSON that it accepts. docs/constraints.md says which keywords are exact, and which refused.
	Schema json.RawMessage `json:",omitempty"`
	// FreeOrder lets the members of objects come in any order, not in that of the schema's properties, and lets integers be written as
	// any number that is one: 2.0.
	FreeOrder bool `json:",omitempty"`

	// AnyNumbers lets integers be written as JSON Schema takes them, 1.0 and 1e0 among them, and members keep their order: a text is checked, and
	// not made. Only Schema.
	AnyNumbers bool `json:",omitempty"`
	// Whitespace is what may stand between the parts of JSON: "": what encoders write, on one line or indented by up to 20 blanks; "compact": nothing;
	// "spaced": a blank behind each comma and colon; "any": all that JSON allows, and any character may be escaped then.
	Whitespace string `json:",omitempty"`

	Regex   string   `json:",omitempty"` // the whole text matches it; the notation is that of RE2, Rust and Python
	Grammar string   `json:",omitempty"` // a grammar in the notation of llama.cpp (GBNF) or Lark, or one of [Grammars]
	Choices []string `json:",omitempty"` // the text is one of these

	// Tree is a grammar of calls of tools, with JSON by schemas in it.
	Tree *calls.Grammar `json:",omitempty"`

	// Check reports whether an answer's text is the beginning of a legal one, and Ends whether it is legal as it is; nil: every text that
	// passes Check is. Monitor says what may follow the prompt and the answer so far. Both are programs of the caller's, without Triggers.
	Check   func(text []byte) bool `json:"-"`
	Ends    func(text []byte) bool `json:"-"`
	Monitor Monitor                `json:"-"`
	// Weights asks Check for the weights of draws, by which a search resamples: about one check a token more.
	Weights bool `json:"-"`

	// Lookahead, where it is not nil, lets Regex or Choices look ahead: among the legal tokens those are preferred behind which the text is likely to
	// end legally. It changes the distribution towards the model's own, given that the text is legal; see docs/constraints.md.
	Lookahead *Lookahead `json:"-"`

	// Automaton is an automaton over bytes, such as a set of package constrain; a mask costs the same for any number of texts. It is
	// safe for concurrent use.
	Automaton PathMachine `json:"-"`
	// Source makes a grammar of the caller's own. It is called for each compilation, as a grammar serves one of them.
	Source func() (grammar.Source, error) `json:"-"`

	// Triggers are texts that begin the constraint: until one of them comes, all is legal. With Behind the legal text begins behind the
	// trigger, else with it. With Required the text may not end before a trigger. With Repeat the constraint waits for a further trigger where a legal text is
	// complete, which is the end of a token; the text may then end, too. Special tokens that a trigger names, such as <tool_call>, are the tokens.
	Triggers                 []string `json:",omitempty"`
	Behind, Required, Repeat bool     `json:",omitempty"`

	// Thoughts lets the text begin with thoughts between the model's markers, where it has any. All is legal in them, but for the end.
	Thoughts bool `json:",omitempty"`
}

// Limits bound what a constraint may cost. The zero value stands for the defaults.
type Limits struct{ Parser earley.Limits }

// Constraint is a compiled [Spec]. It does not change and is safe for concurrent use.
type Constraint struct {
	succession
	v        *Vocabulary
	rec      recognizer // nil: all is legal behind the triggers
	root     state
	triggers []*trigger // that come one after the other: the end of thoughts, then those of the spec
	thoughts []byte     // the marker that begins thoughts; nil: there are none
	channels bool       // the first trigger begins the answer, whatever comes before
	required bool
	repeats  bool
	program  func() sample.Stage // of Check and Monitor; nil: there is a grammar
	ahead    *hmm.Automaton      // nil: masks alone
	trim     func()              // of the cache that keeps the constraint; nil: none does

	mu    sync.Mutex
	masks map[maskKey]mask
}

// SpecError reports a [Spec] that makes no sense or is beyond a limit, with the place in its schema or grammar.
type SpecError struct{ Err error }

// Error returns what is wrong.
func (e *SpecError) Error() string { return e.Err.Error() }

// Unwrap returns the problem.
func (e *SpecError) Unwrap() error { return e.Err }

// Compile compiles a spec. An error is a [*SpecError].
func Compile(spec Spec, v *Vocabulary, l Limits) (*Constraint, error) {
	c, err := compile(spec, v, l)
	if err != nil {
		return nil, &SpecError{err}
	}
	return c, nil
}

func compile(spec Spec, v *Vocabulary, l Limits) (*Constraint, error) {
	kind, err := spec.kind()
	if err != nil {
		return nil, err
	}
	if spec.Check != nil || spec.Monitor != nil {
		if spec.Lookahead != nil {
			return nil, fmt.Errorf("constrain: Lookahead with %s: only Regex, Choices and Automaton are finite automata", kind)
		}
		return spec.program(kind, v)
	}
	rec, err := spec.recognizer(kind, v, l)
	if err != nil {
		return nil, err
	}
	c, err := newConstraint(spec, v, rec)
	if err != nil {
		return nil, err
	}
	if spec.Lookahead != nil {
		if c.ahead, err = spec.guide(kind, v); err != nil {
			return nil, err
		}
		spec.Lookahead = nil // the automaton does not wear
	}
	c.anew = func() (*Constraint, error) { return compile(spec, v, l) }
	return c, nil
}

// recognizer returns what recognizes the texts of a spec of a kind.
func (spec *Spec) recognizer(kind string, v *Vocabulary, l Limits) (recognizer, error) {
	switch kind {
	case "Automaton":
		return newDirect(v, spec.Automaton), nil
	case "Choices":
		m, err := choices(spec.Choices)
		if err != nil {
			return nil, err
		}
		return newDirect(v, m), nil
	}
	src, err := spec.source(kind, v)
	if err != nil {
		return nil, err
	}
	return newParsed(src, v, l)
}

// Free returns the constraint that allows all texts: those with a head of [Constraint.Stages] begin with it.
func Free(v *Vocabulary) *Constraint { return &Constraint{v: v, masks: map[maskKey]mask{}} }

// newConstraint makes the constraint of a recognizer, behind the triggers of a spec.
func newConstraint(spec Spec, v *Vocabulary, rec recognizer) (*Constraint, error) {
	c := &Constraint{v: v, rec: rec, required: spec.Required, repeats: spec.Repeat, masks: map[maskKey]mask{}}
	var err error
	if rec != nil {
		if c.root, err = rec.start(); err != nil {
			return nil, err
		}
	}
	if spec.Thoughts && v.begin != "" && v.end != "" {
		until := v.end
		if c.channels = v.final != nil; c.channels {
			until = v.spellIDs(v.final)
		} else {
			c.thoughts = []byte(v.begin)
		}
		t, err := newTrigger([]string{until}, true)
		if err != nil {
			return nil, err
		}
		c.triggers = append(c.triggers, t)
	}
	if len(spec.Triggers) == 0 {
		if spec.Behind || spec.Required || spec.Repeat {
			return nil, errors.New("constrain: Behind, Required and Repeat say what triggers do, and there is none")
		}
		return c, nil
	}
	var texts []string
	for _, text := range spec.Triggers {
		spelled, err := v.Spell(text)
		if err != nil {
			return nil, err
		}
		if !spec.Behind && rec != nil {
			if _, n, err := rec.push(c.root, []byte(spelled)); err != nil || n < len(spelled) {
				return nil, fmt.Errorf("constrain: trigger %q: no legal text begins with it, but for its first %d bytes; a grammar that begins behind it says so", text, n)
			}
		}
		texts = append(texts, spelled)
	}
	t, err := newTrigger(texts, spec.Behind)
	if err != nil {
		return nil, err
	}
	c.triggers = append(c.triggers, t)
	return c, nil
}

// program returns the constraint of a program.
func (spec *Spec) program(kind string, v *Vocabulary) (*Constraint, error) {
	if len(spec.Triggers) > 0 || spec.Behind || spec.Required || spec.Repeat || spec.Thoughts {
		return nil, fmt.Errorf("constrain: %s begins with the answer: there are no triggers or thoughts before it", kind)
	}
	c := Free(v)
	if c.program = func() sample.Stage { return NewMonitor(v.trie, spec.Monitor) }; spec.Check != nil {
		o := RejectOptions{Check: spec.Check, Ends: spec.Ends, Weights: spec.Weights}
		c.program = func() sample.Stage { return NewReject(v.trie, o) }
	}
	return c, nil
}

// Stages returns the stages of one text, which must begin with the bytes of head. A program is asked about all of it.
func (c *Constraint) Stages(head []byte) []sample.Stage {
	if c.program != nil {
		if stage := c.program(); len(head) == 0 {
			return []sample.Stage{stage}
		} else {
			return []sample.Stage{stage, &Stage{c: c, head: head}}
		}
	}
	c = c.fresh()
	if c.ahead != nil && len(head) == 0 { // callers refuse healed texts, which are not those of the automaton from its beginning
		return []sample.Stage{&Stage{c: c, head: head}, hmm.NewGuide(c.ahead)}
	}
	return []sample.Stage{&Stage{c: c, head: head}}
}
