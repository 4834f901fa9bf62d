package plan

import "slices"

// Share lets the drafts of all rounds of a step compete for rows, the likeliest first whosever it is, for as long as
// a further row promises more tokens a second, and returns how many got one. The step gives tokens without them, and
// takes seconds(n) with n of them. [Planner.Chosen] then has each round's. Rounds that are run whole take no part.
func Share(rounds []*Planner, rows int, tokens float64, seconds func(more int) float64) int {
	for _, p := range rounds {
		p.taken, p.worth = 0, 0
	}
	worth, most := 0, (1+gainNeeded)*tokens/seconds(0)
	for more := 1; more <= min(rows, MaxDraft); more++ {
		best := likeliest(rounds)
		if best == nil {
			break
		}
		tokens += float64(best.next())
		best.taken++
		if rate := tokens / seconds(more); rate > most {
			worth, most = more, rate
			for _, p := range rounds {
				p.worth = p.taken
			}
		}
	}
	for _, p := range rounds {
		if !p.RunsAll() {
			p.chosen = append(p.chosen[:0], p.order[:p.worth]...)
			slices.Sort(p.chosen) // parents first
		}
	}
	return worth
}

// Chosen returns the drafts to run that [Share] or [Planner.Choose] picked last, parents first.
func (p *Planner) Chosen() []int32 { return p.chosen }

// likeliest returns the round whose next draft has the highest score, nil where none has any left.
func likeliest(rounds []*Planner) (best *Planner) {
	score := float32(0)
	for _, p := range rounds {
		if p.RunsAll() {
			continue
		}
		if next := p.next(); next > score {
			best, score = p, next
		}
	}
	return best
}

// next returns the score of the best draft that has no row, 0 where there is none.
func (p *Planner) next() float32 {
	if p.taken == min(len(p.order), p.most()) {
		return 0
	}
	return p.tree.Nodes()[p.order[p.taken]].Score
}
