package compute

import (
	"context"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
)

// TestTail counts the rows that run each layer of a model whose last layers keep nothing: rows that want something of them, or that stop early
// and may be resumed, run them.
func TestTail(t *testing.T) {
	own := kv.Layer{KVHeads: 1, KeySize: 4}
	shared := kv.Layer{KVHeads: 1, KeySize: 4, Keeps: kv.Share(0)}
	state := kv.Layer{States: []kv.State{{Parts: 1, Size: 4, Record: 4}}}
	all, hidden := forest.Row{}, forest.Layers{}.With(0)
	stops := forest.Row{To: 3}
	for name, c := range map[string]struct {
		layers []kv.Layer
		rows   []forest.Row
		want   []int
	}{
		"nothing is wanted":       {[]kv.Layer{own, shared, {}, shared}, []forest.Row{all, all}, []int{2, 0, 0, 0}},
		"logits":                  {[]kv.Layer{own, shared, {}, shared}, []forest.Row{all, {Want: forest.Want{Logits: true}}}, []int{2, 1, 1, 1}},
		"the largest":             {[]kv.Layer{own, {}, {}, {}}, []forest.Row{{Want: forest.Want{Top: 1}}, all}, []int{2, 1, 1, 1}},
		"a state":                 {[]kv.Layer{own, shared, {}, {}}, []forest.Row{{Want: forest.Want{State: true}}, all, all}, []int{3, 1, 1, 1}},
		"a stream":                {[]kv.Layer{own, shared, {}, {}}, []forest.Row{{Want: forest.Want{Hidden: hidden}}, all}, []int{2, 0, 0, 0}},
		"the last stream":         {[]kv.Layer{own, {}, {}, {}}, []forest.Row{{Want: forest.Want{Hidden: forest.Layers{}.With(2)}}, all}, []int{2, 1, 1, 0}},
		"a row that stops":        {[]kv.Layer{own, shared, {}, {}}, []forest.Row{stops}, []int{1, 1, 1, 0}},
		"the last layer has keys": {[]kv.Layer{own, shared, {}, own}, []forest.Row{all, all}, []int{2, 2, 2, 2}},
		"a recurrence is last":    {[]kv.Layer{own, shared, state, {}}, []forest.Row{all, all}, []int{2, 2, 2, 0}},
		"skipped besides":         {[]kv.Layer{own, shared, {}, {}}, []forest.Row{{Skip: forest.Layers{}.With(2), Want: forest.Want{Logits: true}}}, []int{1, 1, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := par.New(1)
			defer pool.Close()
			cache, err := kv.New(kv.Config{Layers: c.layers, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64})
			if err != nil {
				t.Fatal(err)
			}
			x, s := NewExec(cache, pool, 4, 8), cache.NewSeq("")
			parent := forest.Trunk
			for _, r := range c.rows {
				r.Seq, r.Parent = s, parent
				if parent, err = x.Step.Add(r); err != nil {
					t.Fatal(err)
				}
			}
			var got []int
			err = x.Run(context.Background(), func(x *Exec) {
				for l := range c.layers {
					b, _ := x.Enter(l)
					got = append(got, b.rows)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%d rows run the layers, want %d", got, c.want)
			}
		})
	}
}
