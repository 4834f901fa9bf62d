package self

import "grove/method/grow"

// The paper's values.
const (
	firstGreedy  = 0.8  // threshold of a text that is decoded greedily, at first
	firstSampled = 0.5  // of another one
	aim          = 0.9  // share of drafts that is to be accepted
	keepShare    = 0.5  // of the share, what a round leaves of those before
	keepLeast    = 0.9  // the same of the threshold
	change       = 0.01 // by which the threshold is to rise or fall
)

// threshold ends a chain behind a draft whose probability is below least. Where fewer drafts are accepted than is aimed at it rises, and chains become
// shorter; else it falls, unless the chain was as long as one may be. It implements [grow.Stop].
type threshold struct {
	depth  int // drafts of a chain at most
	greedy bool
	least  float64
	share  float64 // of drafts that were accepted, averaged
}

// Begin implements [grow.Stop].
func (s *threshold) Begin() {
	s.share, s.least = 0, firstSampled
	if s.greedy {
		s.least = firstGreedy
	}
}

// Ends implements [grow.Stop].
func (s *threshold) Ends(d grow.ChainDraft) bool {
	return d.Depth >= s.depth || float64(d.P) < s.least
}

// Followed implements [grow.Stop]. Of a chain that was not verified to its end, what was not compared does not count.
func (s *threshold) Followed(drafts, judged, accepted int) {
	of := drafts
	if judged == accepted {
		of = judged
	}
	s.share = keepShare*s.share + (1-keepShare)*float64(accepted)/float64(of)
	to := s.least
	switch {
	case s.share < aim:
		to += change
	case drafts < s.depth:
		to -= change
	}
	s.least = keepLeast*s.least + (1-keepLeast)*to
}
