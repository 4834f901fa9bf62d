package compute_test

import (
	"math"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/tensor"
)

// subsets are the groups that the rows of a step want of a vocabulary of four groups, the last of them short.
var subsets = []struct {
	name string
	rows [][]int32
}{
	{"all", [][]int32{nil, nil, nil}},
	{"none", [][]int32{{}, {}, {}}},
	{"equal", [][]int32{{1, 2}, {1, 2}, {1, 2}}},
	{"disjoint", [][]int32{{0}, {3}, {1}}},
	{"overlapping", [][]int32{{0, 2, 3}, {2}, {}}},
	{"one row wants all", [][]int32{{1}, nil, {0, 1, 2, 3}}},
}

// TestSubset runs rows with subsets of their own in one step: a row's own tokens have the bits of the whole head, all
// others are masked, and the largest entries are of the row's own tokens.
func TestSubset(t *testing.T) {
	const vocabulary = 48 + 7
	for _, spec := range archs {
		spec.Vocab = vocabulary
		for _, threads := range []int{1, 2} {
			r := modeltest.New(t, spec.File(t), modeltest.Config{Threads: threads, CacheType: tensor.F16})
			s := r.Cache.NewSeq("")
			want := r.Reference(text(3))
			for _, tt := range subsets {
				parent := forest.Trunk
				for i, id := range text(3) {
					parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: id, Want: forest.Want{Logits: true, Top: 2, Subset: tt.rows[i]}})
				}
				r.Forward()
				for i, subset := range tt.rows {
					expect := slices.Clone(want[i])
					for id := range expect {
						if subset != nil && !slices.Contains(subset, int32(id/compute.SubsetGroup)) {
							expect[id] = compute.Masked
						}
					}
					got := r.Exec.Result(i)
					if err := modeltest.Bits(got.Logits).Diff(expect); err != nil {
						t.Errorf("%s, %d threads, %s: row %d: %v", spec.Arch, threads, tt.name, i, err)
					}
					if top := got.Top[0]; top.Logit != slices.Max(expect) || top.Logit != expect[top.ID] {
						t.Errorf("%s, %d threads, %s: row %d: the largest entry is %+v", spec.Arch, threads, tt.name, i, top)
					}
				}
				r.Drop(s, forest.Trunk)
			}
		}
	}
}

// TestSubsetNotFinite makes a weight of the head infinite: a step succeeds where no row wants its token, and fails where
// one does.
func TestSubsetNotFinite(t *testing.T) {
	file := modeltest.Spec{Type: tensor.F32}.File(t)
	v, _ := file.Tensor("output.weight")
	spoil(v, v.Elems()-1, math.Inf(1)) // token 47, of group 2
	r := modeltest.New(t, file, modeltest.Config{})
	s := r.Cache.NewSeq("")
	for _, subset := range [][]int32{{0}, {1}} {
		r.Add(forest.Row{Seq: s, ID: 3, Want: forest.Want{Logits: true, Subset: subset}})
	}
	r.Forward()
	r.Add(forest.Row{Seq: s, ID: 3, Want: forest.Want{Logits: true, Subset: []int32{0, 2}}})
	if err := r.Exec.Run(t.Context(), r.Model.Forward); err == nil {
		t.Error("an infinite logit was not refused")
	}
}

// TestSubsetSteady expects no allocation of steps whose rows want several subsets.
func TestSubsetSteady(t *testing.T) {
	r := modeltest.New(t, modeltest.Spec{}.File(t), modeltest.Config{})
	s := r.Cache.NewSeq("")
	wanted := [][]int32{{0, 2}, {1}}
	step := func() {
		for _, subset := range wanted {
			r.Add(forest.Row{Seq: s, ID: 3, Want: forest.Want{Logits: true, Subset: subset}})
		}
		r.Forward()
		r.Drop(s, forest.Trunk)
	}
	step()
	if n := testing.AllocsPerRun(10, step); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
