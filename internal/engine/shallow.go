package engine

import (
	"errors"
	"fmt"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/text/token"
	"grove/method/layers"
)

// ErrPlaces reports a sequence whose tokens cannot skip layers.
var ErrPlaces = errors.New("tokens cannot skip layers")

// CheckPlaces returns places with all their numbers, or an error where the tokens of a text of this model cannot skip layers by them: an [ErrPlaces] where
// they read, besides the keys of their own layers, what other layers or a source left.
func (e *Engine) CheckPlaces(p layers.Places) (layers.Places, error) {
	if !p.On() {
		return p, nil
	}
	info := e.steps.Model.Info()
	if p.Period > 0 && e.steps.Cache.Forest.Substitutable() == (forest.Layers{}) {
		return p, fmt.Errorf("engine: %w: nothing stands for the layers that are substituted between them; open the model with adapters for that (--skip-adapters)", ErrPlaces)
	}
	if info.Source != nil {
		return p, fmt.Errorf("engine: %w: %s reads its prompt by an encoder", ErrPlaces, info.Arch)
	}
	for i, l := range info.Layers {
		if len(l.States) > 0 {
			return p, fmt.Errorf("engine: %w: layer %d of %s is recurrent, and its state would lack them", ErrPlaces, i, info.Arch)
		}
		if l.Keeps.Kind == kv.Shared {
			return p, fmt.Errorf("engine: %w: layer %d of %s reads the keys of layer %d", ErrPlaces, i, info.Arch, l.Keeps.From)
		}
	}
	p, err := p.Fits(len(info.Layers))
	if err != nil {
		err = fmt.Errorf("engine: %w", err)
	}
	return p, err
}

// given returns the tokens of the text that run all layers, whose pages have names: those of the first prompt where later ones skip some.
func (s *Sequence) given() []token.ID {
	if s.answer.Places.On() {
		return s.text[:min(s.first, len(s.text))]
	}
	return s.text
}

// shallow makes the row of a token of the text skip the layers that its place skips.
func (s *Sequence) shallow(r *forest.Row, index int) {
	switch p := s.answer.Places; {
	case !p.On() || index < s.first:
	case p.Period > 0:
		r.Substitute, r.Anchor = p.Substitutes(index-s.first), p.Period > 1 && !p.Substitutes(index-s.first)
	default:
		r.Skip, r.Lasting = p.Skip(s.e.steps.Cache.Forest.Layers(), index-s.first), true
	}
}

// reanchor cuts a trunk behind which a row would substitute layers whose anchor is gone, by a fork or a cut, so that the anchor's row runs again. The caller holds the maker's lock.
func (s *Sequence) reanchor() error {
	p, c := s.answer.Places, s.e.steps.Cache
	for at := s.trunk.Len(); at > s.first && p.Substitutes(at-s.first) && !c.Forest.Anchored(s.trunk.Seq); at = s.trunk.Len() {
		if _, err := c.Rewind(s.trunk.Seq, max(s.first, at-(at-s.first)%p.Period)); err != nil {
			return err
		}
	}
	return nil
}
