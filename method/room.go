package method

import (
	"unsafe"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// Memory is the bytes that a drafter has for each draft of a round, by what they hold.
type Memory struct {
	Trees         int // drafts that only the drafter sees
	Distributions int // that drafts are drawn from
	Logits        int // and final states, of rows that draft: those of a pass, and the copies that the drafter reads
}

// Sized is a drafter with such room.
type Sized interface {
	Drafter
	// MemoryFor returns what rounds of so many drafts take at most, of a text that is drawn by p.
	MemoryFor(drafts int, p sample.Params) Memory
	// Held returns what the drafter has made; the logits of a pass, which the models have, are not among it.
	Held() Memory
}

// Support returns how many tokens have a chance at most where tokens of a vocabulary are drawn by p.
func Support(p sample.Params, vocabulary int) int {
	switch {
	case p.Greedy():
		return 1
	case p.TopK == 0 || p.Mirostat.Version != 0:
		return vocabulary
	}
	return min(p.TopK, vocabulary)
}

// DistributionBytes returns what a number of distributions over so many tokens take.
func DistributionBytes(n, support int) int {
	const entry = unsafe.Sizeof(token.ID(0)) + unsafe.Sizeof(float32(0))
	return n * support * int(entry)
}

// RowBytes returns what the logits and final states of so many rows of a model take.
func (s Size) RowBytes(rows int) int { return 4 * rows * (s.Vocabulary + s.Width) }
