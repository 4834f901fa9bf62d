// stream.go turns the tokens of an answer into its text.

package tokenizer

import (
	"strings"

	"grove/internal/text/token"
)

// Pieces turns tokens into text: whole runes, nothing of a stop string, and nothing that could still become one. It is for one goroutine.
type Pieces struct {
	runes *Stream
	stop  []string
	held  string // text that could begin a stop string

	Deaf bool // no stop string begins yet
	Skip int  // bytes of the text to come that are left out: they are the prompt's
}

// NewStream returns the stream of the tokens that follow prev; the text ends before the first of the stop strings.
func NewStream(t *Tokenizer, prev token.ID, stop []string) (*Pieces, error) {
	runes, err := t.Stream(prev, false)
	if err != nil {
		return nil, err
	}
	s := &Pieces{runes: runes}
	for _, w := range stop {
		if w != "" {
			s.stop = append(s.stop, w)
		}
	}
	return s, nil
}

// Next returns the text that a token sets free, and the stop string that is complete, if one is.
func (s *Pieces) Next(id token.ID) (text, stopped string, err error) {
	piece, err := s.runes.Next(id)
	if err != nil {
		return "", "", err
	}
	cut := min(s.Skip, len(piece))
	s.Skip -= cut
	piece = piece[cut:]
	if s.Deaf {
		return piece, "", nil
	}
	text, stopped = s.add(piece)
	return text, stopped, nil
}

func (s *Pieces) add(piece string) (text, stopped string) {
	text = s.held + piece
	if at, w := s.find(text); w != "" {
		s.held = ""
		return text[:at], w
	}
	keep := 0
	for _, w := range s.stop {
		for n := min(len(w)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, w[:n]) {
				keep = n
			}
		}
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep], ""
}

// find returns the stop string that begins earliest, and where; "" where there is none.
func (s *Pieces) find(text string) (first int, stop string) {
	for _, w := range s.stop {
		if at := strings.Index(text, w); at >= 0 && (stop == "" || at < first) {
			first, stop = at, w
		}
	}
	return first, stop
}

// Flush returns what is still held when the text ends.
func (s *Pieces) Flush() string {
	text, _ := s.add(s.runes.Flush())
	return text + s.Release()
}

// Release returns the text that could begin a stop string, when none does.
func (s *Pieces) Release() (held string) {
	held, s.held = s.held, ""
	return held
}
