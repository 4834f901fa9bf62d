package grove

import (
	"strings"

	"grove/text/token"
	"grove/text/tokenizer"
)

// textStream turns tokens into text: whole runes, nothing of a stop string, and nothing that could
// still become one.
type textStream struct {
	runes *tokenizer.Stream
	stop  []string
	held  string // text that could begin a stop string
	deaf  bool   // no stop string begins yet
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

// next returns the text that a token sets free, and the stop string that is complete, if one is.
func (s *textStream) next(id token.ID) (text, stopped string, err error) {
	piece, err := s.runes.Next(id)
	if err != nil {
		return "", "", err
	}
	if s.deaf {
		return piece, "", nil
	}
	text, stopped = s.add(piece)
	return text, stopped, nil
}

func (s *textStream) add(piece string) (text, stopped string) {
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
func (s *textStream) find(text string) (first int, stop string) {
	for _, w := range s.stop {
		if at := strings.Index(text, w); at >= 0 && (stop == "" || at < first) {
			first, stop = at, w
		}
	}
	return first, stop
}

// flush returns what is still held when the text ends.
func (s *textStream) flush() string {
	text, _ := s.add(s.runes.Flush())
	return text + s.release()
}

// release returns the text that could begin a stop string, when none does.
func (s *textStream) release() (held string) {
	held, s.held = s.held, ""
	return held
}
