package diffuse

import "testing"

// linear is a filter of one weight and one bias for all places of a block.
type linear struct {
	block       int
	slope, bias float32
}

func (f linear) Block() int { return f.block }

func (f linear) Score(logits, p []float32) {
	for i := range p {
		logits[i] = f.slope*p[i] + f.bias
	}
}

// TestLearned: a filter of 20 c - 14 accepts from 0.859 on, one that accepts nothing leaves static, and one that accepts all fills the block at once.
func TestLearned(t *testing.T) {
	for _, c := range []struct {
		filter linear
		s      Settings
		want   string
	}{
		{linear{8, 20, -14}, Settings{}, "0,3,6/2/1/4/5/7"},
		{linear{8, 20, -14}, Settings{Cache: "prefix", Block: 4}, "0,3/2/1//6/4/5/7"},
		{linear{8, 20, -14}, Settings{Cache: "dual", Block: 4}, "0,3/2/1//6/4/5/7"},
		{linear{8, 0, -9}, Settings{}, "0/3/6/2/1/4/5/7"},
		{linear{8, 0, -9}, Settings{Passes: 4}, "0,3/2,6/1,4/5,7"},
		{linear{8, 0, 9}, Settings{}, "0,1,2,3,4,5,6,7"},
		{linear{4, 0, 9}, Settings{}, "0,1,2,3//4,5,6,7"}, // the filter's block is the usual one
	} {
		for _, shift := range []bool{false, true} {
			c.s.Policy, c.s.Filter = "learned", c.filter
			if got, _ := trace(t, &toy{shift: shift}, c.s); got != c.want {
				t.Errorf("%+v, shifted %v: %s, want %s", c, shift, got, c.want)
			}
		}
	}
}

// sees is a filter that keeps what it was given.
type sees struct {
	linear
	last []float32
}

func (f *sees) Score(logits, p []float32) {
	f.last = append(f.last[:0], p...)
	f.linear.Score(logits, p)
}

// TestLearnedSees: the filter is given the probability of the likeliest token at every place of the block, tokens too, and zeros behind it.
func TestLearnedSees(t *testing.T) {
	f := &sees{linear: linear{10, 0, -9}}
	trace(t, &toy{}, Settings{Policy: "learned", Filter: f})
	want := []float32{.99, .85, .99, .99, .90, .82, .99, .71, 0, 0} // the last pass: all but 7 are tokens
	for i, w := range want {
		if d := f.last[i] - w; d > 1e-4 || d < -1e-4 {
			t.Errorf("place %d has %v, want %v", i, f.last[i], w)
		}
	}
}
