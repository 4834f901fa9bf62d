package grow

import (
	"slices"
	"unicode/utf8"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// side is a text in the tokens of one vocabulary.
type side struct {
	t     *tokenizer.Tokenizer
	ids   []token.ID
	ends  []int32 // the place in the text behind each token; unknown where the tokens do not spell it
	lead  int     // tokens before the text
	fresh []token.ID
	piece []byte
}

// unknown is no place in a text.
const unknown = -1

// Tokens behind the place from which a text is encoded again: further text may change them. From mostBehind on the
// place need not be the beginning of a word.
const (
	leastBehind = 4
	mostBehind  = 24
)

func (s *side) reset(lead token.ID) {
	s.ids, s.ends, s.lead = s.ids[:0], s.ends[:0], 0
	if lead != token.None {
		s.ids, s.ends, s.lead = append(s.ids, lead), append(s.ends, 0), 1
	}
}

// add adds a token to the side, and its spelling to the text. Tokens that begin and end texts spell nothing.
func (s *side) add(text []byte, id token.ID) []byte {
	if id != s.t.BOS() && !s.t.IsEOG(id) { // an id that no tokenizer knows spells nothing
		text, _ = s.t.AppendPieceAfter(text, s.last(), id, s.t.Type(id) == tokenizer.Control)
	}
	s.ids, s.ends = append(s.ids, id), append(s.ends, int32(len(text)))
	if id == s.t.BOS() && s.lead == len(s.ids)-1 {
		s.lead++
	}
	return text
}

// last returns the last token, [token.None] where there is none that the tokenizer knows.
func (s *side) last() token.ID {
	if n := len(s.ids); n > 0 && int(s.ids[n-1]) < s.t.Size() {
		return s.ids[n-1]
	}
	return token.None
}

// anchor returns how many tokens of the text stay when it is encoded again, and the place behind them: the end of
// a character some tokens back, at the beginning of a word if one is near.
func (s *side) anchor(text []byte) (keep, at int) {
	for keep = len(s.ids) - leastBehind; keep > s.lead; keep-- {
		at = int(s.ends[keep-1])
		if at == unknown || at >= len(text) || !utf8.RuneStart(text[at]) {
			continue
		}
		if beginsWord(text, at) || len(s.ids)-keep >= mostBehind {
			return keep, at
		}
	}
	return s.lead, 0
}

func beginsWord(text []byte, at int) bool {
	white := func(b byte) bool { return b == ' ' || b == '\n' }
	return at > 0 && white(text[at]) && !white(text[at-1])
}

// follow encodes the end of a text that has grown, and returns how many tokens are those of before. Where the
// vocabulary cannot write the text ok is false, and the side ends before the part that it cannot write.
func (s *side) follow(text []byte) (same int, ok bool) {
	keep, at := s.anchor(text)
	var err error
	s.fresh, err = s.t.Encode(s.fresh[:0], string(text[at:]), tokenizer.Options{Inside: keep > s.lead})
	if err != nil {
		s.ids, s.ends = s.ids[:keep], s.ends[:keep]
		return keep, false
	}
	same = keep
	for same < len(s.ids) && same-keep < len(s.fresh) && s.ids[same] == s.fresh[same-keep] {
		same++
	}
	s.ids = append(s.ids[:keep], s.fresh...)
	s.measure(text, keep, at)
	return same, true
}

// measure finds the places behind the tokens from keep on, which stand for text[at:].
func (s *side) measure(text []byte, keep, at int) {
	s.ends = s.ends[:keep]
	for i := keep; i < len(s.ids); i++ {
		prev := token.None
		if i > 0 {
			prev = s.ids[i-1]
		}
		s.piece, _ = s.t.AppendPieceAfter(s.piece[:0], prev, s.ids[i], true) // it comes from Encode
		if at != unknown && len(s.piece) <= len(text)-at && string(text[at:at+len(s.piece)]) == string(s.piece) {
			at += len(s.piece)
		} else {
			at = unknown
		}
		s.ends = append(s.ends, int32(at))
	}
	if n := len(s.ends); n > s.lead {
		s.ends[n-1] = int32(len(text))
	}
}

// continuation appends the tokens of more, which goes on with the text, to dst: as they are written behind the
// text's last tokens, or else by themselves, where the tokenizer writes other tokens there.
func (s *side) continuation(dst []token.ID, text, more []byte) ([]token.ID, error) {
	keep, at := s.anchor(text)
	n := len(dst)
	dst, err := s.t.Encode(dst, string(text[at:])+string(more), tokenizer.Options{Plain: true, Inside: keep > s.lead})
	if behind := s.ids[keep:]; err == nil && len(dst)-n >= len(behind) && slices.Equal(dst[n:n+len(behind)], behind) {
		return slices.Delete(dst, n, n+len(behind)), nil
	}
	return s.t.Encode(dst[:n], string(more), tokenizer.Options{Plain: true, Inside: len(s.ids) > s.lead})
}

// utterance is the draft model's continuation of the text.
type utterance struct {
	text []byte
	ends []int     // the place behind each of its tokens
	p    []float64 // the probability of all up to each
	over bool      // it ends the answer
}

func (u *utterance) reset() { u.text, u.ends, u.p, u.over = u.text[:0], u.ends[:0], u.p[:0], false }

// add adds a token; false where it spells nothing.
func (u *utterance) add(t *tokenizer.Tokenizer, prev, id token.ID, p float32) bool {
	n := len(u.text)
	u.text, _ = t.AppendPieceAfter(u.text, prev, id, false)
	if len(u.text) == n {
		return false
	}
	u.ends, u.p = append(u.ends, len(u.text)), append(u.p, u.chance(n)*float64(p))
	return true
}

// chance returns the probability of the continuation up to a place.
func (u *utterance) chance(at int) float64 {
	if at == 0 || len(u.p) == 0 {
		return 1
	}
	i, _ := slices.BinarySearch(u.ends, at)
	return u.p[min(i, len(u.p)-1)]
}
