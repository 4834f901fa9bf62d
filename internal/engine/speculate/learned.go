// learned.go keeps what methods learn across texts: their own memory, how often their drafts are accepted, and whether their
// passes pay. Texts of different salts learn apart: no text drafts by what another one's taught, unless their salts are equal.

package speculate

import (
	"fmt"
	"slices"
	"sync"

	"grove/internal/engine/plan"
	"grove/method"
)

// MaxSalts is the number of salts whose texts are remembered; the one that was used least recently is forgotten first.
const MaxSalts = 16

// LearnedStore keeps what texts have taught, those of each salt apart. It is safe for concurrent use.
type LearnedStore struct {
	infos  []method.Info
	env    method.Env
	path   string        // of the file that keeps what texts without a salt taught; "": there is no place for it
	shared *LearnedTexts // those without a salt
	primed [][]byte      // what methods begin with, for texts of any salt; nil: nothing

	mu     sync.Mutex
	salted []salted // the one that was used last is last
}

type salted struct {
	salt  string
	texts *LearnedTexts
}

// NewLearned opens methods. What they learn of texts without a salt is kept in the file of a path, "" for none, by [LearnedStore.Save]. Its
// errors are those of methods that cannot be opened.
func NewLearned(infos []method.Info, env method.Env, path string) (s *LearnedStore, err error) {
	s = &LearnedStore{infos: infos, env: env, path: path, primed: make([][]byte, len(infos))}
	s.shared, err = s.open()
	return s, err
}

// Of returns what texts of a salt have taught. A private text learns from itself alone, whatever its salt, and teaches none.
func (s *LearnedStore) Of(salt string, private bool) (*LearnedTexts, error) {
	if private {
		return s.open()
	}
	if salt == "" {
		return s.shared, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.salted, func(o salted) bool { return o.salt == salt })
	if i >= 0 {
		found := s.salted[i]
		s.salted = append(slices.Delete(s.salted, i, i+1), found)
		return found.texts, nil
	}
	t, err := s.open()
	if err != nil {
		return nil, err
	}
	if len(s.salted) == MaxSalts {
		s.salted = slices.Delete(s.salted, 0, 1)
	}
	s.salted = append(s.salted, salted{salt, t})
	return t, nil
}

// open opens the methods for texts of which nothing is known.
func (s *LearnedStore) open() (*LearnedTexts, error) {
	t := &LearnedTexts{rates: method.NewRates(len(s.infos) + 1), turns: make([]plan.Backoff, len(s.infos)), credits: make([]plan.Credit, len(s.infos))}
	for n, i := range s.infos {
		m, err := i.Open(s.env)
		if err != nil {
			return nil, fmt.Errorf("engine: method %s: %w", i.Name, err)
		}
		begin(m, s.primed[n])
		t.Methods = append(t.Methods, m)
	}
	return t, nil
}

// LearnedTexts holds the methods of some texts, and what they have learned of these. It is safe for concurrent use.
type LearnedTexts struct {
	Methods []method.Method // opened for these texts

	mu      sync.Mutex
	rates   *method.Rates
	turns   []plan.Backoff // of methods that run rows
	credits []plan.Credit  // of others
	taught  bool           // since it was saved
}

// Begin gives a new text what is known: it changes rates, and returns the turns and the credits.
func (t *LearnedTexts) Begin(rates *method.Rates) ([]plan.Backoff, []plan.Credit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rates.Carry(t.rates)
	return slices.Clone(t.turns), slices.Clone(t.credits)
}

// End takes over what a text that has ended taught. drafted says that it drafted at all.
func (t *LearnedTexts) End(rates *method.Rates, turns []plan.Backoff, credits []plan.Credit, drafted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rates.Merge(rates)
	if drafted {
		t.taught, t.turns, t.credits = true, turns, credits
	}
}
