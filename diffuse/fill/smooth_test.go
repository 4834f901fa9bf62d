package fill_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"grove/diffuse"
	_ "grove/diffuse/fill"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// board is a model of four tokens, of which 0 is the mask: place i of the canvas gives token 1+i%3, the less surely the later. It notes the passes.
type board struct {
	prompt int
	passes [][]diffuse.Row
}

func (b *board) Pass(_ context.Context, branches [][]diffuse.Row, _ int) error {
	rows := slices.Clone(branches[0])
	for i := range rows {
		if p := rows[i].Prior; p != nil {
			copied := *p
			copied.Logits = slices.Clone(p.Logits)
			rows[i].Prior = &copied
		}
	}
	b.passes = append(b.passes, rows)
	return nil
}

// logits are ln(p) of the probabilities, where the mask has 0.001.
func logits(at int) []float32 {
	l := []float32{-7, -9, -9, -9}
	l[1+at%3] = float32(4 - at)
	return l
}

func (b *board) Logits(_, i int) []float32 {
	return logits(b.passes[len(b.passes)-1][i].Place - b.prompt)
}
func (b *board) Drop(func(int) bool) error { return nil }
func (b *board) Rows() int                 { return 100 }
func (b *board) Reuse(context.Context, []token.ID) (int, error) {
	return 0, nil
}

// fill fills six places behind two, and returns which places the passes have fixed.
func fill(t *testing.T, policy string, block int) (fixed string, b *board) {
	t.Helper()
	prompt := []token.ID{1, 2}
	b = &board{prompt: len(prompt)}
	sampler, err := diffuse.NewSampler(diffuse.Draws{Settings: sample.Settings{}, Prompt: prompt, Vocabulary: 4}, false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := diffuse.New(prompt, diffuse.Settings{Length: 6, Block: block, Policy: policy}, b, sampler)
	for err == nil && !g.Done() {
		err = g.Step(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(g.Stats().Fixed), b
}

// TestSmooth: masks of all blocks read what the pass before gave, with weights that rise, as tokens do not; the mask's logit is the model's own. Passes are counted over the canvas.
func TestSmooth(t *testing.T) {
	for _, block := range []int{6, 3} {
		_, b := fill(t, "smooth:p=1.5,first=0.1,growth=0.1,most=0.35", block) // never sure: one place a pass
		if len(b.passes) != 6 {
			t.Fatalf("%d passes", len(b.passes))
		}
		for pass, rows := range b.passes {
			weight := min(0.1*float64(pass), 0.35) // of the logits of the pass before
			for _, r := range rows {
				place := r.Place - b.prompt
				if masked := r.ID == 0; pass == 0 || !masked {
					if r.Prior != nil {
						t.Errorf("blocks of %d: pass %d, place %d: a prior", block, pass, place)
					}
					continue
				}
				if r.Prior == nil || math.Abs(float64(r.Prior.Weight)-weight) > 1e-6 || r.Prior.Temperature != 1 || !slices.Equal(r.Prior.Logits, logits(place)) {
					t.Fatalf("blocks of %d: pass %d, place %d: %+v, want the weight %g", block, pass, place, r.Prior, weight)
				}
			}
		}
	}
}

// TestThreshold: the threshold falls from 1 to p, and the surest place is fixed in any case. Place i has the probability 1 - 2 exp(i-13), of places 3 and 4 0.99991 and 0.99975.
func TestThreshold(t *testing.T) {
	plain, _ := fill(t, "threshold:p=0.9", 6)
	for policy, want := range map[string]string{
		"smooth:p=0.9,first=0,growth=0,decay=1":      "[0 1 1 1 1 1]", // 1, then 0.9
		"smooth:p=0.9,first=0,growth=0,decay=0":      "[0 1 2 3 4 5]", // 1 in every pass
		"smooth:p=0.9,first=0,growth=0,decay=0.0001": "[0 1 1 1 2 3]", // 1, 0.9999, 0.9998, 0.9997
		"smooth:p=0.9":                        "[0 1 1 1 1 1]", // 1, 0.98
		"smooth:p=0,first=0,growth=0,decay=1": "[0 1 1 1 1 1]",
	} {
		if got, _ := fill(t, policy, 6); got != want {
			t.Errorf("%s: %s, want %s; a threshold that does not fall %s", policy, got, want, plain)
		}
	}
	for _, bad := range []string{"smooth:p=3", "smooth:first=-1", "smooth:x=1"} {
		s := diffuse.Settings{Length: 6, Policy: bad}
		if err := s.Check(); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
