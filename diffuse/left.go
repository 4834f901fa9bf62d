package diffuse

import (
	"errors"
	"fmt"
	"slices"

	"grove/internal/text/token"
)

// Follower is a [Sampler] that knows the text before a place, which constraints and penalties of repetitions need. It is for one goroutine.
type Follower interface {
	Sampler
	// Follow returns the token that the random numbers of an index of the answer, that behind the text, and a pass draw from logits, of those that may follow the text.
	Follow(logits []float32, index, pass int) (token.ID, error)
	// Must returns the token that follows the text because no other text may; [token.None]: there is a choice.
	Must() token.ID
	// Add adds a token to the text.
	Add(id token.ID)
	// Ended reports whether nothing but the end may follow the text.
	Ended() bool
}

// following fills a canvas from the left: the generator's follower knows all that is before the first mask.
type following struct {
	text Follower // nil: places are filled in any order
	over bool     // the text has ended
}

// followable returns an error where a canvas cannot be filled from the left.
func (s *Settings) followable(p Policy, c cache) error {
	_, explores := p.(explorer)
	_, groups := c.(*recap)
	switch {
	case !s.Left:
		return nil
	case explores:
		return s.fault("policy", "policy %s fixes places of all blocks, and a constraint or a penalty of repetitions needs the text before each place; choose another, such as static:order=left or threshold", s.Policy)
	case groups:
		return s.fault("cache", "the cache %s chooses the places of several passes together, and a constraint or a penalty of repetitions needs the text before each place; choose another", s.Cache)
	case p.Revises():
		return s.fault("policy", "policy %s changes tokens that are fixed, and a constraint or a penalty of repetitions needs the text before each place; choose another, such as static:order=left or threshold", s.Policy)
	case s.Drafts > 0:
		return s.fault("drafts", "%d drafts of a canvas, which is filled from the left for a constraint or a penalty of repetitions; choose no drafts", s.Drafts)
	case s.Early != "":
		return s.fault("early", "early %s fixes or drops places in any order, and a constraint or a penalty of repetitions needs the text before each; leave it out", s.Early)
	}
	return nil
}

// lookUp looks up what the settings need of the sampler.
func (g *Generator) lookUp() error {
	follows, judges := true, true
	if g.s.Left {
		g.following.text, follows = g.sampler.(Follower)
	}
	if g.s.Likely {
		g.judging, judges = g.sampler.(Judge)
	}
	if !follows || !judges {
		return errors.New("diffuse: the sampler cannot do what the settings ask for; give New a Follower to fill from the left, and a Judge for likely tokens")
	}
	return nil
}

// fixLeft fixes the first mask, and of the places behind it the run that the policy chose, as long as what follows the text is what it chose; or what must follow.
func (g *Generator) fixLeft(chosen []int) error {
	first := len(g.Finished())
	for at := first; at < g.end && !g.following.over; at++ {
		p := &g.proposals[at]
		want := g.following.text.Must()
		if want == token.None && slices.Contains(chosen, at) {
			want = p.ID
		}
		id, err := g.following.text.Follow(p.Logits, at, g.step)
		if err != nil {
			return fmt.Errorf("diffuse: place %d: %w", at, err)
		}
		if at > first && id != want {
			return nil
		}
		p.P, p.ID = p.probabilityOf(id), id
		g.fix(at, p)
		g.following.text.Add(id)
		g.following.over = at < g.s.Length && (g.s.Ends(id) || g.following.text.Ended())
	}
	return nil
}

// Ended reports whether [Generator.Next] has given all of a text that has ended before the canvas is full.
func (g *Generator) Ended() bool { return g.following.over && g.given == len(g.Finished()) }
