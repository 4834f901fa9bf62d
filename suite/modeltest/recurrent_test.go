package modeltest

import (
	"math/rand/v2"
	"testing"

	"grove/internal/par"
	"grove/weights/tensor"

	"pgregory.net/rapid"
)

// TestRecurrences checks the bits of a model with every recurrence, with attention and without, with every cache and any threads.
func TestRecurrences(t *testing.T) {
	for name, c := range map[string]struct {
		cache     tensor.Type
		attention bool
		threads   int
	}{"alone": {tensor.F32, false, 2}, "hybrid": {tensor.F16, true, 3}} {
		t.Run(name, func(t *testing.T) {
			pool := par.New(c.threads)
			t.Cleanup(pool.Close)
			m := Recurrent{Attention: c.attention}.Open(t, pool)
			r := NewFor(t, m, pool, Config{CacheType: c.cache})
			rng := rand.New(rand.NewPCG(7, 8))
			text := randomIDs(rng, textLength, 40)
			plain := r.Plain(text)
			for _, c := range checks {
				if err := c.run(r, rng, text, plain); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
}

// TestRecurrentVerbs walks over the verbs at random with such a model.
func TestRecurrentVerbs(t *testing.T) {
	pool := par.New(2)
	t.Cleanup(pool.Close)
	m := Recurrent{Attention: true}.Open(t, pool)
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{r: NewFor(t, m, pool, Config{CacheType: tensor.F16}), rt: rt, vocab: 40}
		for range 40 {
			h.move()
		}
		for i := range h.seqs {
			h.probe(i)
		}
	})
}
