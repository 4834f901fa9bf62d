package method

// Rates counts, for each drafter and class of drafts, how often a draft was accepted, forgetting slowly. It is
// not safe for concurrent use.
type Rates struct {
	Drafters [][2 * Classes]Rate

	recent []Rate // by drafter: drafts of this text that were accepted, and how many the classes' rates promised
}

// Rate is the weight of what was accepted and of all that was tried.
type Rate struct {
	Accepted float32 `json:"h"`
	Tried    float32 `json:"t"`
}

const (
	// keepRate is what each trial leaves of the past: half of it is gone after 34.
	keepRate = 0.98
	// beliefTrials is how many trials a drafter's own belief counts for at first; half as many after beliefHalf trials.
	beliefTrials = 2
	beliefHalf   = 4
	// recentRate is what each round leaves of the drafts of the rounds before; recentTrials is how many accepted drafts weigh as much as what
	// is known of the classes.
	recentRate   = 0.97
	recentTrials = 1
	// carriedTrials bounds what one text's counts weigh in the next.
	carriedTrials = 4
)

// NewRates returns counts of nothing for a number of drafters.
func NewRates(sources int) *Rates {
	return &Rates{make([][2 * Classes]Rate, sources), make([]Rate, sources)}
}

func (r *Rates) at(o *origin, belief float32) float32 {
	c := &r.Drafters[o.source][o.class]
	weight := float32(beliefTrials*beliefHalf) / (beliefHalf + c.Tried)
	o.chance = (c.Accepted + belief*weight) / (c.Tried + weight)
	recent := &r.recent[o.source]
	return o.chance * min(1, (recent.Accepted+recentTrials)/(recent.Tried+recentTrials))
}

// round lets what the drafters' last drafts were worth count less.
func (r *Rates) round() {
	for i := range r.recent {
		r.recent[i].Accepted *= recentRate
		r.recent[i].Tried *= recentRate
	}
}

func (r *Rates) learn(o origin, right bool) {
	recent := &r.recent[o.source]
	recent.Tried += o.chance
	if right {
		recent.Accepted++
	}
	c := &r.Drafters[o.source][o.class]
	c.Accepted *= keepRate
	c.Tried = c.Tried*keepRate + 1
	if right {
		c.Accepted++
	}
}

// Carry takes over the counts of other texts, as the experience that a new text begins with.
func (r *Rates) Carry(from *Rates) {
	for s := range min(len(r.Drafters), len(from.Drafters)) {
		for c, past := range from.Drafters[s] {
			if past.Tried > carriedTrials {
				past.Accepted *= carriedTrials / past.Tried
				past.Tried = carriedTrials
			}
			r.Drafters[s][c] = past
		}
	}
}

// Merge adds what a text has learned, half and half where both know something.
func (r *Rates) Merge(from *Rates) {
	for s := range min(len(r.Drafters), len(from.Drafters)) {
		for c, seen := range from.Drafters[s] {
			own := &r.Drafters[s][c]
			if own.Tried == 0 {
				*own = seen
				continue
			}
			own.Accepted, own.Tried = (own.Accepted+seen.Accepted)/2, (own.Tried+seen.Tried)/2
		}
	}
}

// ClassRate is the acceptance rate of one class of drafts, as it is kept between runs.
type ClassRate struct {
	Class int `json:"c"`
	Rate
}

// Known returns what is known of the classes of a drafter.
func (r *Rates) Known(source int) []ClassRate {
	var known []ClassRate
	for c, rate := range r.Drafters[source] {
		if rate.Tried > 0 {
			known = append(known, ClassRate{c, rate})
		}
	}
	return known
}

// Restore takes over what Known returned. Rates that make no sense are left out.
func (r *Rates) Restore(source int, known []ClassRate) {
	for _, k := range known {
		if k.Class >= 0 && k.Class < 2*Classes && k.Accepted >= 0 && k.Accepted <= k.Tried && k.Tried <= 1/(1-keepRate)+1 {
			r.Drafters[source][k.Class] = k.Rate
		}
	}
}
