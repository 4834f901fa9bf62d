package methodtest

import (
	"math/rand/v2"
	"testing"

	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
	"grove/method"
)

const copied = 250 // tokens of the text that is copied

// copier is an encoder-decoder that copies its source.
func (l *lab) copier() model.Model {
	metadata, tensors, err := synthetic.Copier{Vocab: 300, Context: 600, Start: 0, End: 1, Like: 1}.Parts()
	if err != nil {
		l.tb.Fatal(err)
	}
	return l.open(metadata, tensors)
}

// TestCopying has a text copied, which methods that draft from texts find in the source: most of each round's drafts are accepted.
func TestCopying(t *testing.T) {
	l := newLab(t)
	l.target = l.copier()
	rng := rand.New(rand.NewPCG(1, 2))
	var source []token.ID
	for _, id := range rng.Perm(298)[:copied-1] {
		source = append(source, token.ID(id+2))
	}
	source = append(source, 1)
	for _, name := range []string{"lookup", "sam"} {
		info, err := method.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s := &subject{lab: l, info: info, ctx: t.Context()}
		for _, p := range []sample.Params{{}, {Temperature: 1, Seed: 5}} {
			got, st, err := s.tell(engine.Config{CacheType: tensor.F16}, p, eager, []move{{source, copied}})
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range got {
				if d.ID != source[i] {
					t.Fatalf("%s: token %d is %d, and %d in the source", name, i, d.ID, source[i])
				}
			}
			t.Logf("%s, temperature %v: %d tokens in %d rounds, %d of %d drafts accepted", name, p.Temperature, st.Tokens, st.Rounds, st.Accepted, st.Drafted)
			if st.Tokens < 5*st.Rounds {
				t.Errorf("%s: %d tokens in %d rounds; the source holds them all", name, st.Tokens, st.Rounds)
			}
		}
	}
}
