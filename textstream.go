package grove

import (
	"strings"

	"grove/token"
	"grove/tokenizer"
)

// textStream turns tokens into text: whole runes, nothing of a stop string, and nothing that could
// still become one.
type textStream struct {
	runes *tokenizer.Stream
	stop  []string
	held  string // text that could begin a stop string
}

func newTextStream(t *tokenizer.Tokenizer, prev token.ID, stop []string) (*textStream, error) {
	runes, err := t.Stream(prev, false)
	if err != nil {
		return nil, err
	}
	s := &textStream{runes: runes}
	for _, w := range stop {
		if w != "" {
			s.stop = append(s.stop, w)
		}
	}
	return s, nil
}

// next returns the text that a token sets free, and true where a stop string is complete.
func (s *textStream) next(id token.ID) (string, bool, error) {
	piece, err := s.runes.Next(id)
	if err != nil {
		return "", false, err
	}
	text, stopped := s.add(piece)
	return text, stopped, nil
}

func (s *textStream) add(piece string) (string, bool) {
	text := s.held + piece
	if at := s.find(text); at >= 0 {
		s.held = ""
		return text[:at], true
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
	return text[:len(text)-keep], false
}

// find returns where the earliest stop string begins, or -1.
func (s *textStream) find(text string) int {
	first := -1
	for _, w := range s.stop {
		if at := strings.Index(text, w); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// flush returns what is still held when the text ends.
func (s *textStream) flush() string {
	text, _ := s.add(s.runes.Flush())
	held := s.held
	s.held = ""
	return text + held
}
