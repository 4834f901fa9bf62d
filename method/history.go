package method

import "grove/internal/text/token"

// History is the text of one sequence as its drafters read it, with what they all need of it: one n-gram index a
// length. Drafters keep no copy of the text. It is for one goroutine.
type History struct {
	// Prediction is what the user expects of the answer; nil: nothing.
	Prediction []token.ID
	// SourceLen is how many of the text's first tokens are the source of an encoder-decoder: the answer's own text, whose indices
	// [Noise] counts, begins behind them.
	SourceLen int
	// Remote gives drafts that are made elsewhere; nil: there are none.
	Remote Remote
	// Noise is the random numbers of the text's draws.
	Noise Noise

	ids     []token.ID
	prompt  int
	indexes [maxNgram]*Index
}

// maxNgram bounds the n-grams of [History.Index].
const maxNgram = 16

// Begin makes h the history of a text, of which the first prompt tokens are not of the answer. The history reads ids
// and does not change them.
func (h *History) Begin(ids []token.ID, prompt int) {
	h.prompt = prompt
	for _, x := range h.indexes {
		if x != nil {
			x.Reset()
		}
	}
	h.Extend(ids)
}

// Extend tells that the text has grown: ids is all of it.
func (h *History) Extend(ids []token.ID) {
	h.ids = ids
	for _, x := range h.indexes {
		if x != nil {
			x.Cover(ids)
		}
	}
}

// IDs returns the text. The caller does not change it and does not keep it.
func (h *History) IDs() []token.ID { return h.ids }

// PromptLen returns how many of the text's tokens came before the answer.
func (h *History) PromptLen() int { return h.prompt }

// Last returns the token that is back tokens from the end, 0 being the last one; [token.None] where there is none.
func (h *History) Last(back int) token.ID {
	if back >= len(h.ids) {
		return token.None
	}
	return h.ids[len(h.ids)-1-back]
}

// Index returns the index of the text's n-grams of n tokens, 1 to 16, that the text's drafters share. It grows with
// the text.
func (h *History) Index(n int) *Index {
	x := &h.indexes[n-1]
	if *x == nil {
		*x = NewIndex(n)
		(*x).Cover(h.ids)
	}
	return *x
}
