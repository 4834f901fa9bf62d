package plan

import (
	"time"

	"grove/method"
)

// Stats has the counts and times of a sequence's drafting.
type Stats struct {
	Rounds   int           // steps that drew tokens
	Tokens   int           // drawn by these
	Drafted  int           // drafts that were run
	Accepted int           // of these
	Drafting time.Duration // making drafts
	Stepping time.Duration // of the rounds, drafting aside
	Ran      method.Ran    // passes that drafters ran
	// RanByRank and AcceptedByRank count the drafts by the rank of their score in their round: those that were run, and those that were accepted.
	RanByRank, AcceptedByRank [MaxDraft]int
}

// Since returns what drafting did after the sequence's earlier figures were taken.
func (s Stats) Since(earlier Stats) Stats {
	s.add(earlier, -1)
	return s
}

// Add adds the figures of another sequence.
func (s *Stats) Add(o Stats) { s.add(o, 1) }

// add adds figures so many times.
func (s *Stats) add(o Stats, times int) {
	s.Rounds += times * o.Rounds
	s.Tokens += times * o.Tokens
	s.Drafted += times * o.Drafted
	s.Accepted += times * o.Accepted
	s.Drafting += time.Duration(times) * o.Drafting
	s.Stepping += time.Duration(times) * o.Stepping
	if times > 0 {
		s.Ran = s.Ran.Add(o.Ran)
	} else {
		s.Ran = s.Ran.Since(o.Ran)
	}
	for i := range o.RanByRank {
		s.RanByRank[i] += times * o.RanByRank[i]
		s.AcceptedByRank[i] += times * o.AcceptedByRank[i]
	}
}

// Count adds a round that gave so many tokens in some time. ran tells of a place in the tree whether its draft was
// run; accepted are the places of those that were accepted.
func (s *Stats) Count(p *Planner, tokens int, accepted []int, ran func(place int32) bool, drafting, stepping time.Duration) {
	s.Rounds++
	s.Tokens += tokens
	s.Accepted += tokens - 1
	s.Drafting += drafting
	s.Stepping += stepping
	for rank, place := range p.order[:len(p.chosen)] {
		s.RanByRank[rank]++
		for _, a := range accepted {
			if int32(a) == place {
				s.AcceptedByRank[rank]++
			}
		}
	}
	for _, place := range p.chosen {
		if ran(place) {
			s.Drafted++
		}
	}
}
