package remote

import (
	"slices"

	"grove/internal/text/token"
)

// MaxDrafts bounds the drafts of a text that wait.
const MaxDrafts = 128

// Waiting is the drafts of one text that wait for their turn. Those that no longer follow the text are dropped. It is for one
// goroutine at a time.
type Waiting struct {
	text   []token.ID
	digest []uint64   // of the text's beginnings: digest[n] is that of n tokens
	drafts []token.ID // behind the text
}

// Begin starts a text.
func (w *Waiting) Begin(text []token.ID) {
	w.text, w.digest, w.drafts = w.text[:0], append(w.digest[:0], 0), w.drafts[:0]
	w.extend(text)
}

func (w *Waiting) extend(ids []token.ID) {
	w.text = append(w.text, ids...)
	for i := range ids {
		w.digest = append(w.digest, Digest(w.digest[len(w.digest)-1], ids[i:i+1]))
	}
}

// Commit adds tokens to the text, and returns how many of the drafts that waited they were. Where they differ from the drafts, these are dropped.
func (w *Waiting) Commit(ids []token.ID) int {
	n := 0
	for n < len(ids) && n < len(w.drafts) && ids[n] == w.drafts[n] {
		n++
	}
	if n == len(ids) {
		w.drafts = append(w.drafts[:0], w.drafts[n:]...)
	} else {
		w.drafts = w.drafts[:0]
	}
	w.extend(ids)
	return n
}

// Len returns the number of tokens of the text.
func (w *Waiting) Len() int { return len(w.text) }

// Digest returns the digest of the text.
func (w *Waiting) Digest() uint64 { return w.digest[len(w.digest)-1] }

// Drafts returns the drafts behind the text, valid until the next call.
func (w *Waiting) Drafts() []token.ID { return w.drafts }

// Add takes drafts that came, and reports whether any of them can follow the text now. They may begin before its end, where they were made behind drafts of
// their own that have become text since, and behind drafts that wait.
func (w *Waiting) Add(d Drafts) bool {
	ids, behind := d.IDs, len(w.text)
	switch {
	case d.At > behind+len(w.drafts):
		return false
	case d.At > behind:
		if Digest(w.Digest(), w.drafts[:d.At-behind]) != d.Digest {
			return false
		}
		ids = slices.Concat(w.drafts[:d.At-behind], ids)
	case w.digest[d.At] != d.Digest:
		return false
	default:
		passed := w.text[d.At:]
		if len(passed) >= len(ids) || !slices.Equal(passed, ids[:len(passed)]) {
			return false
		}
		ids = ids[len(passed):]
	}
	w.drafts = append(w.drafts[:0], ids[:min(len(ids), MaxDrafts)]...)
	return true
}
