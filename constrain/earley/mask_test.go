package earley

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"grove/constrain/grammar"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// A trial is a grammar, a vocabulary, and what they must give.
type trial struct {
	ref    *reference
	src    grammar.Source
	tokens []vocab.Token
	vocab  *vocab.Vocabulary
}

// newTrial draws a trial; nil where no text follows the grammar.
func newTrial(seed uint64, greedy bool) (*trial, error) {
	rng := rand.New(rand.NewPCG(seed, 7))
	k := maker{rng, []string{"ab", "abc ", "a\xc3\xa9 ", "ab\" 1", "1+ "}[rng.IntN(5)]}
	r := &trial{ref: k.reference(greedy), tokens: k.tokens()}
	var err error
	if r.vocab, err = vocab.New(r.tokens, len(r.tokens)+2); err != nil {
		return nil, err
	}
	r.src, err = r.ref.source()
	if errors.Is(err, grammar.ErrNoText) {
		if r.ref.live[r.ref.rules["s"]] {
			return nil, fmt.Errorf("%v, and there is one", err)
		}
		return nil, nil
	}
	return r, err
}

// spelling returns the bytes of a token in the trie.
func spelling(t vocab.Token) string {
	switch t.Kind {
	case vocab.Ordinary:
		return string(t.Bytes)
	case vocab.Special:
		return vocab.Spelling(t.ID)
	}
	return ""
}

// want returns the mask behind a text, by the reference.
func (r *trial) want(text string) []bool {
	m := make([]bool, r.vocab.Size())
	for _, t := range r.tokens {
		word := spelling(t)
		switch {
		case t.Kind == vocab.End:
			_, m[t.ID] = r.ref.decide(text)
		case word != "":
			m[t.ID], _ = r.ref.decide(text + word)
		}
	}
	return m
}

// compare compares masks of an engine with the reference: breadth first over sequences of tokens, then again in random order.
func (r *trial) compare(e *Engine, most, states int) error {
	start, err := e.Start()
	if err != nil {
		return err
	}
	type place struct {
		text  string
		state State
		want  []bool
	}
	known := map[string]int{"": 0}
	places := []place{{"", start, r.want("")}}
	for i := 0; i < len(places); i++ {
		at := places[i]
		if err := r.check(e, at.state, at.text, at.want); err != nil {
			return err
		}
		for _, t := range r.tokens {
			word := spelling(t)
			if word == "" || !at.want[t.ID] {
				continue
			}
			next, err := e.Next(at.state, t.ID)
			if err != nil {
				return fmt.Errorf("behind %q: token %d %q: %w", at.text, t.ID, word, err)
			}
			text := at.text + word
			if j, ok := known[text]; ok {
				if next != places[j].state && e.limits.Bytes > 1 {
					return fmt.Errorf("behind %q: two states by two spellings", text)
				}
			} else if len(text) <= most && len(places) < states {
				known[text] = len(places)
				places = append(places, place{text, next, r.want(text)})
			}
		}
	}
	rng := rand.New(rand.NewPCG(uint64(len(places)), 1))
	for range len(places) {
		at := places[rng.IntN(len(places))]
		if err := r.check(e, at.state, at.text, at.want); err != nil {
			return fmt.Errorf("again: %w", err)
		}
	}
	return nil
}

func (r *trial) check(e *Engine, s State, text string, want []bool) error {
	m, err := e.Mask(s)
	if err != nil {
		return fmt.Errorf("behind %q: %w", text, err)
	}
	for id := range want {
		if m.Has(token.ID(id)) != want[id] {
			word := ""
			if id < len(r.tokens) {
				word = spelling(r.tokens[id])
			}
			return fmt.Errorf("behind %q: token %d %q: got %v, want %v", text, id, word, m.Has(token.ID(id)), want[id])
		}
		if ok, err := e.Allows(s, token.ID(id)); err != nil || ok != want[id] {
			return fmt.Errorf("behind %q: allows token %d: got %v, %v", text, id, ok, err)
		}
	}
	return nil
}

func (r *trial) String() string {
	text := fmt.Sprintf("greedy %v, ignored %v", r.ref.greedy, r.ref.ignored)
	for name, body := range r.ref.rules {
		text += fmt.Sprintf("\n%s: %v", name, body)
	}
	for _, t := range r.tokens {
		text += fmt.Sprintf(" %q", t.Bytes)
	}
	return text
}

// trials is the number of random grammars of a test.
func trials(n uint64) uint64 {
	if os.Getenv("GROVE_LONG") != "" {
		return 3 * n
	}
	return n
}

// TestOracle compares all masks behind short texts of random grammars with the slow reference, bit for bit.
func TestOracle(t *testing.T) {
	for _, greedy := range []bool{false, true} {
		made := 0
		for seed := range trials(60) {
			r, err := newTrial(seed, greedy)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if r == nil {
				continue
			}
			made++
			for i, l := range []Limits{{}, {Bytes: 1, MaskBytes: 1}, {}} {
				e, err := New(r.src, r.vocab, l)
				if err != nil {
					t.Fatalf("seed %d: %v\n%v", seed, err, r)
				}
				e.noSlices = i == 2
				if err := r.compare(e, 5, 25); err != nil {
					t.Fatalf("seed %d, engine %d: %v\n%v", seed, i, err, r)
				}
			}
		}
		if made < 20 {
			t.Errorf("greedy %v: %d grammars only", greedy, made)
		}
	}
}

// A faulty source is a grammar with a fault.
type faulty struct {
	grammar.Source
	edges func(all []grammar.Edge) []grammar.Edge
	final func(bool) bool
}

func (f faulty) Edges(dst []grammar.Edge, n grammar.Node) ([]grammar.Edge, error) {
	all, err := f.Source.Edges(nil, n)
	return append(dst, f.edges(all)...), err
}
func (f faulty) Final(n grammar.Node) bool { return f.final(f.Source.Final(n)) }

// TestPlanted plants faults, and checks that the comparison with the reference finds each of them in some trial.
func TestPlanted(t *testing.T) {
	same := func(all []grammar.Edge) []grammar.Edge { return all }
	token := func(change func(all []vocab.Token)) func(r *trial, e *Engine) {
		return func(r *trial, e *Engine) {
			all := slices.Clone(r.tokens)
			change(all)
			e.vocab, _ = vocab.New(all, e.vocab.Size())
		}
	}
	for name, plant := range map[string]func(r *trial, e *Engine){
		"a duplicate is dropped": token(func(all []vocab.Token) {
			for i := range all {
				for j := range i {
					if all[j].Kind == vocab.Ordinary && len(all[j].Bytes) > 0 && string(all[i].Bytes) == string(all[j].Bytes) {
						all[i].Kind = vocab.Unused
					}
				}
			}
		}),
		"a node is left too late": token(func(all []vocab.Token) {
			all[len(all)-1].Bytes = append([]byte{all[len(all)-2].Bytes[0]}, all[len(all)-1].Bytes...)
		}),
		"an end token is not allowed": token(func(all []vocab.Token) { all[1].Kind = vocab.Unused }),
		"a special token is text":     token(func(all []vocab.Token) { all[2].Kind, all[2].Bytes = vocab.Ordinary, []byte("a") }),
		"a slice is one too long": func(_ *trial, e *Engine) {
			e.first.configs[0].lex.clean = &cleanStep{all: true, next: []*lexState{e.first.configs[0].lex}}
		},
		"the text ends one byte early": func(_ *trial, e *Engine) {
			e.first.final = yes
		},
		"a lexeme that ends is missed": func(_ *trial, e *Engine) {
			e.src = faulty{e.src, func(all []grammar.Edge) []grammar.Edge { return all[:(len(all)+1)/2] }, func(f bool) bool { return f }}
			e.forget()
		},
		"a rule does not end": func(_ *trial, e *Engine) {
			e.src = faulty{e.src, same, func(bool) bool { return false }}
			e.forget()
		},
		"rules that hold the empty text are not stepped over": func(_ *trial, e *Engine) {
			for _, n := range e.nodes {
				n.nullable = no
			}
			clear(e.rows)
			e.first = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range trials(200) {
				r, err := newTrial(seed, seed%2 == 0)
				if err != nil {
					t.Fatal(err)
				}
				if r == nil {
					continue
				}
				e, err := New(r.src, r.vocab, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if len(e.first.configs) == 0 || e.first.configs[0].lex == nil {
					continue
				}
				plant(r, e)
				if err := r.compare(e, 5, 25); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("the fault was not found")
		})
	}
}
