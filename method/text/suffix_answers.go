package text

import (
	"sync"

	"grove/internal/text/token"
)

// maxTokens bounds the tokens of past answers: with the tree they take 10 MB at most.
const maxTokens = 1 << 16

// answers are past answers, of which the oldest are forgotten. It is safe for concurrent use.
type answers struct {
	mu      sync.Mutex
	tree    *SuffixTree
	max     int        // tokens
	log     []token.ID // the answers behind each other, from the place base on
	base    int
	lengths []int // of the answers that are not forgotten
	from    int   // the place of the first of them
}

func newAnswers(max int) *answers { return &answers{tree: NewSuffixTree(), max: max} }

// add adds an answer of no more than max tokens.
func (a *answers) add(ids []token.ID) {
	if len(ids) < 2 {
		return // nothing follows
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old := 0
	for ; a.base+len(a.log)-a.from+len(ids) > a.max; old++ {
		a.tree.Forget(a.from, a.from+a.lengths[old])
		a.from += a.lengths[old]
	}
	a.lengths = a.lengths[:copy(a.lengths, a.lengths[old:])]
	if dead := a.from - a.base; dead > a.max {
		a.log = a.log[:copy(a.log, a.log[dead:])]
		a.base = a.from
	}
	at := a.base + len(a.log)
	a.log, a.lengths = append(a.log, ids...), append(a.lengths, len(ids))
	a.tree.Use(a.log, a.base)
	for i := range ids {
		a.tree.Extend(at + i)
	}
	a.tree.End()
}

// match lets a drafter try the suffixes of its text that an answer has and that may promise more than it has drafted so far, the longest
// first.
func (a *answers) match(d *suffixDrafter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var places [SuffixDeepest + 1]SuffixPlace
	text := d.history.IDs()
	shortest := int(d.score) + 1
	n := shortest
	for ; n <= min(len(text), SuffixDeepest); n++ {
		p, ok := a.tree.Find(text[len(text)-n:])
		if !ok {
			break // no answer has a longer one either
		}
		places[n] = p
	}
	for n--; n >= shortest && float32(n) > d.score; n-- {
		d.try(a.tree, places[n], n, true)
	}
}
