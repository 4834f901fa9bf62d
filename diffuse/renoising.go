package diffuse

import (
	"fmt"

	"grove/internal/model"
	"grove/internal/text/token"
)

// RenoiseSettings say how the canvases of an answer are filled that begin as random tokens. A pass has the temperature Coldest + (Hottest-Coldest)*left/Steps, where left
// passes are left with it. The last canvas has as many tokens as there is room for, Canvas at most.
type RenoiseSettings struct {
	model.Renoise
	Length     int // tokens of the answer at most
	Room       int // tokens that the context has behind the prompt
	Vocabulary int
	Ends       func(token.ID) bool // reports whether a token ends the text; nil: none does, and loops go on
	Watch      func([]Run)         // is told of the canvas before each pass: its likeliest tokens, before the first as masks; nil: nobody is
	Piece      func(dst []byte, id token.ID) ([]byte, error)
}

// Check returns an error that names a setting that is none.
func (s *RenoiseSettings) Check() error {
	switch {
	case s.Length < 1 || s.Length > MostLength || s.Room < s.Length:
		return &SettingError{"length", fmt.Errorf("diffuse: an answer of %d tokens where there is room for %d; it must have 1 to %d", s.Length, s.Room, MostLength)}
	case s.Canvas < 1 || s.Canvas > MostLength:
		return fmt.Errorf("diffuse: a canvas of %d tokens; it must have 1 to %d", s.Canvas, MostLength)
	case s.Steps < 1 || s.Steps > MostLength:
		return fmt.Errorf("diffuse: %d steps of a canvas; there must be 1 to %d", s.Steps, MostLength)
	case !(s.Coldest > 0 && s.Hottest >= s.Coldest && s.Hottest <= 1e6):
		return fmt.Errorf("diffuse: temperatures from %g down to %g; they must fall, and be above 0", s.Hottest, s.Coldest)
	case !(s.Bound >= 0 && s.Sure >= 0) || s.Stable < 0:
		return fmt.Errorf("diffuse: a bound of entropies of %g, %d stable passes, a mean entropy of %g; none may be below 0", s.Bound, s.Stable, s.Sure)
	case s.Vocabulary < 1:
		return fmt.Errorf("diffuse: a vocabulary of %d tokens; it must have 1 or more", s.Vocabulary)
	}
	return nil
}

// Renoise returns how a model fills the canvases of an answer with room for so many tokens, of what the model says of itself and what a request wishes: Length (0: as
// many as there is room for), Block (of a canvas; 0: the model's), Passes (of a canvas; 0: the model's), Policy, and Ends. Errors name a wish that cannot be met.
func Renoise(own *model.Renoise, wish *Settings, room, vocabulary int) (*RenoiseSettings, error) {
	for _, not := range []struct {
		is            bool
		setting, what string
	}{
		{wish.Left, "constraint", "a constraint, or what a draw reads of the text before its token,"}, {wish.Likely, "logprobs", "the likeliest tokens beside each"},
		{wish.Cache != "" && wish.Cache != "none", "cache", "a cache (the keys before a canvas are exact, and always kept)"}, {wish.Drafts != 0, "drafts", "drafts of a canvas"},
		{wish.Blocks != "", "blocks", "blocks that end by themselves"}, {wish.Early != "", "early", "an early end (a canvas ends when it is settled)"},
	} {
		if not.is {
			return nil, wish.fault(not.setting, "canvases begin as random tokens, for which %s is not supported", not.what)
		}
	}
	if wish.Block < 0 || wish.Block > own.Canvas {
		return nil, wish.fault("block", "blocks of %d tokens; a canvas has 1 to %d", wish.Block, own.Canvas)
	}
	bound, err := BoundOf(wish.Policy, own.Bound)
	if err != nil {
		return nil, &SettingError{"policy", err}
	}
	s := &RenoiseSettings{Renoise: *own, Length: wish.Length, Room: room, Vocabulary: vocabulary, Ends: wish.Ends, Piece: wish.Piece}
	if s.Bound = bound; s.Length == 0 {
		s.Length = min(room, MostLength)
	}
	if wish.Block > 0 {
		s.Canvas = wish.Block
	}
	if wish.Passes != 0 {
		s.Steps = wish.Passes
	}
	return s, s.Check()
}
