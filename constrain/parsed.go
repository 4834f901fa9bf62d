package constrain

import (
	"errors"
	"fmt"

	"grove/constrain/earley"
	"grove/constrain/grammar"
	"grove/internal/text/token"
)

// parsed is the recognizer of a grammar.
type parsed struct{ engine *earley.Engine }

func newParsed(src grammar.Source, v *Vocabulary, l Limits) (*parsed, error) {
	e, err := earley.New(src, v.trie, l.Parser)
	if err != nil {
		return nil, fmt.Errorf("constrain: %w", err)
	}
	return &parsed{e}, nil
}

func (p *parsed) start() (state, error) {
	s, err := p.engine.Start()
	return state{of: s}, err
}

func (p *parsed) next(s state, id token.ID) (state, error) {
	to, err := p.engine.Next(s.of, id)
	if errors.Is(err, earley.ErrIllegal) {
		err = errIllegal
	}
	return state{of: to}, err
}

func (p *parsed) push(s state, text []byte) (state, int, error) {
	to, n, err := p.engine.Push(s.of, text)
	if errors.Is(err, earley.ErrIllegal) {
		err = nil
	}
	return state{of: to}, n, err
}

func (p *parsed) allows(s state, id token.ID) (bool, error) { return p.engine.Allows(s.of, id) }

func (p *parsed) mask(s state) (mask, error) {
	m, err := p.engine.Mask(s.of)
	return mask(m), err
}

func (p *parsed) ends(s state) bool                { return p.engine.Ends(s.of) }
func (p *parsed) forced(s state, limit int) []byte { return p.engine.Forced(s.of, limit) }
func (p *parsed) expected(s state) string          { return p.engine.Expected(s.of) }
func (p *parsed) worn() bool                       { return p.engine.Worn() }
func (p *parsed) held() int                        { return p.engine.Held() }
