package programs

import (
	"math"

	"grove/internal/text/token"
	"grove/method/datastore"
)

// weights are those of n-grams, by the tokens of their context, from one on.
var weights = [...]float64{0.01, 0.04, 0.15, 0.18, 0.12}

// grams scores tokens by the n-grams of a datastore.
type grams struct {
	store  *datastore.Store
	before []token.ID // the last tokens of the text
	tail   []token.ID
}

// newGrams makes the n-grams behind a text.
func newGrams(s *datastore.Store, text []token.ID) *grams {
	return &grams{store: s, before: append([]token.ID(nil), text[max(0, len(text)-len(weights)):]...)}
}

// weigh turns the choices behind each draft into scores: (1-alpha) ln p + alpha ln g, with g the weighted frequencies of the n-grams that
// a token ends. A draft all of whose choices have g = 0 gets (1-alpha) ln p less a penalty. Errors: the datastore's file has become
// shorter.
func (g *grams) weigh(scores [][]superposedChoice, drafts []draft, alpha float64) error {
	return g.store.Read(func() error {
		for i := range scores {
			contexts := g.contexts(&drafts[i])
			known := false
			shares := make([]float64, len(scores[i]))
			for j, c := range scores[i] {
				shares[j] = g.share(contexts, c.id)
				known = known || shares[j] > 0
			}
			for j := range scores[i] {
				score := (1 - alpha) * scores[i][j].logprob
				if known {
					score += alpha * math.Log(shares[j])
				} else {
					score -= penalty
				}
				scores[i][j].logprob = score
			}
		}
		return nil
	})
}

// contexts returns the occurrences of a draft's last tokens, from one on, of as many as occur.
func (g *grams) contexts(d *draft) (found []datastore.Range) {
	g.tail = append(g.tail[:0], g.before...)
	for _, t := range d.drawn[max(0, len(d.drawn)-len(weights)):] {
		g.tail = append(g.tail, t.ID)
	}
	for n := 1; n <= min(len(weights), len(g.tail)); n++ {
		r := g.store.Longest(g.tail, n, n)
		if r.Count() == 0 {
			break // longer ones do not occur either
		}
		found = append(found, r)
	}
	return found
}

// share returns the weighted frequencies of a token behind contexts.
func (g *grams) share(contexts []datastore.Range, id token.ID) (sum float64) {
	for i, r := range contexts {
		sum += weights[i] * float64(g.store.Then(r, id).Count()) / float64(r.Count())
	}
	return sum
}
