package diffuse

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/text/token"
)

// items is how long the lists of the tasks are: the tokens 1 to items are the list, in order, and word is another one.
const (
	items = 6
	word  = items + 1
)

// task is a list task of ParallelBench (2025) as an ideal model: the exact distribution of each place, given what the list has so far.
type task struct {
	name string
	one  bool // it has one right list
	// probs fills the probabilities of the tokens of a place; list has 0 where a token is not known.
	probs func(to []float64, list []token.ID, place int)
	right func(list []token.ID) bool
	// chance is the probability that a list is right whose passes fix so many places, the first ones or random ones.
	chance func(counts []int) float64
	// sure is that where passes fix the places first whose draws are the surest; nil: the same.
	sure func(counts []int) float64
}

// known is a task with one right list.
func known(name string, list ...token.ID) task {
	return task{name: name, one: true, probs: func(to []float64, _ []token.ID, place int) { to[list[place]] = 1 }, right: func(got []token.ID) bool { return slices.Equal(got, list) }, chance: func([]int) float64 { return 1 }}
}

var tasks = []task{
	known("copy", 1, 2, 3, 4, 5, 6), known("reverse", 6, 5, 4, 3, 2, 1), known("sort", 3, 6, 1, 2, 5, 4),
	{name: "shuffle", probs: shuffled, chance: shuffleChance, right: func(list []token.ID) bool {
		return slices.Equal(slices.Sorted(slices.Values(list)), []token.ID{1, 2, 3, 4, 5, 6})
	}},
	{name: "replace", probs: replaced, chance: replaceChance, sure: replaceSure, right: func(list []token.ID) bool {
		n := 0
		for i, id := range list {
			if id == word {
				n++
			} else if id != token.ID(i+1) {
				return false
			}
		}
		return n == 1
	}},
}

// shuffled is any order of the items: each of those that are left is as likely.
func shuffled(to []float64, list []token.ID, _ int) {
	left := 0
	for id := token.ID(1); id <= items; id++ {
		if !slices.Contains(list, id) {
			to[id] = 1
			left++
		}
	}
	for id := range to {
		to[id] /= float64(left)
	}
}

// shuffleChance is the product over passes of the falling factorial of m places by m to the power of those that are fixed.
func shuffleChance(counts []int) float64 {
	p, left := 1.0, items
	for _, k := range counts {
		for i := range k {
			p *= float64(left-i) / float64(left)
		}
		left -= k
	}
	return p
}

// replaced is the list with the word in place of one item: as likely at each place that is left.
func replaced(to []float64, list []token.ID, place int) {
	left := 0
	for _, id := range list {
		if id == 0 {
			left++
		}
	}
	if slices.Contains(list, word) {
		to[place+1] = 1
		return
	}
	to[word] = 1 / float64(left)
	to[place+1] = 1 - to[word]
}

// replaceChance is the chance that of m places, of which each pass fixes some by draws of 1/m, one is drawn.
func replaceChance(counts []int) float64 {
	p, none, left := 0.0, 1.0, float64(items)
	for _, k := range counts {
		p += none * float64(k) / left * math.Pow(1-1/left, float64(k-1))
		none *= math.Pow(1-1/left, float64(k))
		left -= float64(k)
	}
	return p
}

// replaceSure is replaceChance where a pass fixes items first, and the word where too few places have drawn an item; of two places, which are alike, the first ones.
func replaceSure(counts []int) float64 {
	p, none, left := 0.0, 1.0, items
	for _, k := range counts {
		if left == 2 {
			return p + none*replaceChanceOf(2, k)
		}
		one, zero := 0.0, 0.0
		for words := range left + 1 {
			chance := binomial(left, words) * math.Pow(1/float64(left), float64(words)) * math.Pow(1-1/float64(left), float64(left-words))
			switch k - min(k, left-words) {
			case 0:
				zero += chance
			case 1:
				one += chance
			}
		}
		p, none = p+none*one, none*zero
		left -= k
	}
	return p
}

// replaceChanceOf is the chance of two places of which passes fix k each.
func replaceChanceOf(left, k int) float64 {
	if k == 1 {
		return 1
	}
	return float64(k) / float64(left) * math.Pow(1-1/float64(left), float64(k-1))
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}

// ideal is the board of a task.
type ideal struct {
	task *task
	last [][]Row
	list [items]token.ID
	p    [word + 1]float64
}

func (m *ideal) Pass(_ context.Context, branches [][]Row, _ int) error {
	m.last = branches
	return nil
}

func (m *ideal) Logits(branch, i int) []float32 {
	for _, r := range m.last[branch] {
		m.list[r.Place] = r.ID
	}
	clear(m.p[:])
	m.task.probs(m.p[:], m.list[:], m.last[branch][i].Place)
	logits := make([]float32, word+1)
	for id, p := range m.p {
		logits[id] = float32(max(-100, math.Log(p)))
	}
	return logits
}

func (m *ideal) Drop(func(int) bool) error { return nil }
func (m *ideal) Rows() int                 { return 1 << 10 }

func (m *ideal) Reuse(context.Context, []token.ID) (int, error) { return 0, nil }

// dice draws at temperature 1 with the numbers of a run, an index and a pass.
type dice struct{ run uint64 }

func (d dice) number(index, pass, use int) float64 {
	return (float64(rand.NewPCG(d.run, uint64(index*100+pass)*2+uint64(use)).Uint64()>>11) + 0.5) / (1 << 53)
}

func (d dice) Draw(logits []float32, index, pass int) (token.ID, error) {
	u, sum := d.number(index, pass, 0), 0.0
	for id, l := range logits {
		if sum += math.Exp(float64(l)); l > -50 && u < sum {
			return token.ID(id), nil
		}
	}
	return greedy{}.Draw(logits, index, pass)
}

func (d dice) Number(index, pass int) float64 { return d.number(index, pass, 1) }

// write writes a list, and returns how many places each pass fixed.
func (k *task) write(t testing.TB, s Settings, by Sampler) (list []token.ID, counts []int) {
	s.Length, s.Mask = items, 0
	g, err := New(nil, s, &ideal{task: k}, by)
	if err != nil {
		t.Fatal(err)
	}
	for !g.Done() {
		left := g.masks
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, left-g.masks)
	}
	for _, p := range g.canvas {
		list = append(list, p.ID)
	}
	return list, counts
}

// TestParallelBench: the share of right lists of an ideal model is the closed form, for each number of places that a pass fixes, whatever the order and the policy that counts.
func TestParallelBench(t *testing.T) {
	runs := 10_000
	if testing.Short() {
		runs = 1000
	}
	reject := linear{block: items, bias: -9}
	for _, k := range []struct {
		policy string
		passes []int
		sure   bool // it fixes the surest draws first
	}{
		{"static:order=left", []int{6, 3, 2, 1}, false}, {"static:order=random", []int{6, 3, 2, 1}, false}, {"static:order=entropy", []int{6, 2}, false},
		{"static", []int{6, 3, 2, 1}, true}, {"static:order=margin", []int{3}, true}, {"timestep:order=left", []int{6, 3, 1}, false}, {"dynamic:p=1", []int{2}, true},
		{"dimple:p=1", []int{3}, true}, {"ccd:warm=99", []int{2}, false}, {"remdm:again=0", []int{2}, true}, {"learned", []int{3}, true}, {"rcr", []int{1}, true}, {"threshold", []int{6}, true},
	} {
		for _, passes := range k.passes {
			for _, task := range tasks {
				s, n, right := Settings{Policy: k.policy, Passes: passes, Filter: reject}, runs, 0
				if task.one {
					n = 20
				}
				var counts []int
				for run := range uint64(n) {
					var list []token.ID
					if list, counts = task.write(t, s, dice{run}); task.right(list) {
						right++
					}
				}
				want := task.chance(counts)
				if k.sure && task.sure != nil {
					want = task.sure(counts)
				}
				got, bound := float64(right)/float64(n), 4*math.Sqrt(want*(1-want)/float64(n))
				if t.Logf("%s of %d passes, %s: %v places: %.4f, the closed form is %.4f", k.policy, passes, task.name, counts, got, want); math.Abs(got-want) > bound {
					t.Errorf("%s of %d passes, %s: %.4f of %d lists are right, the closed form is %.4f (+-%.4f)", k.policy, passes, task.name, got, n, want, bound)
				}
			}
		}
	}
}

// TestClosedForms holds the forms to the numbers of the paper's tasks.
func TestClosedForms(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{shuffleChance([]int{1, 1, 1, 1, 1, 1}), 1}, {shuffleChance([]int{2, 2, 2}), .3125}, {shuffleChance([]int{3, 3}), .1235}, {shuffleChance([]int{6}), .0154},
		{replaceChance([]int{6}), .402}, {replaceSure([]int{6}), .402}, {replaceChance([]int{1, 1, 1, 1, 1, 1}), 1}, {replaceSure([]int{1, 1, 1, 1, 1, 1}), 1},
	} {
		if math.Abs(c.got-c.want) > 5e-4 {
			t.Errorf("%.4f, want %.4f", c.got, c.want)
		}
	}
}

// TestParallelFreeDave: drafts of the canvas give the lists of one place a pass, drawn and greedy, so all are right.
func TestParallelFreeDave(t *testing.T) {
	for _, task := range tasks {
		for run := range uint64(300) {
			for _, by := range []Sampler{dice{run}, greedy{}} {
				want, _ := task.write(t, Settings{Policy: "static"}, by)
				got, counts := task.write(t, Settings{Policy: "static", Drafts: 4}, by)
				if !slices.Equal(got, want) || !task.right(got) {
					t.Fatalf("%s, run %d: %v in %v, want %v", task.name, run, got, counts, want)
				}
			}
		}
	}
}

// TestParallelKnown: every policy writes the lists that have one right answer, with any number of passes.
func TestParallelKnown(t *testing.T) {
	for _, p := range Policies() {
		for passes := 1; passes <= items; passes++ {
			for _, task := range tasks[:3] {
				s := Settings{Policy: p.Name, Passes: passes, Filter: linear{block: items, slope: 20, bias: -14}}
				if list, _ := task.write(t, s, dice{7}); !task.right(list) {
					t.Errorf("%s of %d passes, %s: %v", p.Name, passes, task.name, list)
				}
			}
		}
	}
}
