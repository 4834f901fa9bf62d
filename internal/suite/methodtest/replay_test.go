package methodtest

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"os"
	"slices"
	"testing"

	"grove/internal/engine/plan"
	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// replayed is a text whose method drafts with the layers of its model, in time that passes as a cost predicts it.
type replayed struct {
	growtest.Text
	layers int
	model  *growtest.Model
	trunk  *timed
	p      plan.Planner
	turn   plan.Backoff
	rates  *method.Rates
	cost   *plan.Cost
	tree   *method.Tree

	rounds, asked int
	took, plain   float64
}

// timed is a trunk that adds up how long its passes take.
type timed struct {
	*growtest.Sequence
	x       *replayed
	seconds float64
}

// Grow implements [method.Trunk].
func (s *timed) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	most, heads := 0, 0
	for _, r := range rows {
		to := r.To
		if to == 0 {
			to = s.x.layers
		}
		if most = max(most, to-r.From-r.Skip.Len()); r.Want.Head() {
			heads++
		}
	}
	s.seconds += s.x.p.LayerSeconds(1, most) + s.x.p.HeadSeconds(heads) // of these passes one row runs layers
	return s.Sequence.Grow(ctx, rows)
}

// partial is a model of which rows that stop before the last layer, or pass over some, say what the model says at a share of places. They are
// surer where they do, at most places.
func partial(n, vocabulary int, share func(ran int) float64) *growtest.Model {
	stream := func(path []token.ID, ran int) []float32 {
		h := fnv.New64a()
		for _, id := range path[max(0, len(path)-3):] {
			h.Write([]byte{byte(id)})
		}
		h.Write([]byte{byte(len(path)), byte(len(path) >> 8)})
		id := h.Sum64() >> 20 % uint64(vocabulary)
		h.Write([]byte{byte(ran), 7})
		right := ran == n || float64(h.Sum64()>>20%1000) < 1000*share(ran)
		h.Write([]byte{1})
		sure := h.Sum64()>>20%10 < 7
		if !right {
			id, sure = (id+1)%uint64(vocabulary), !sure
		}
		return []float32{float32(id), map[bool]float32{true: 6, false: 3}[sure]}
	}
	head := func(stream []float32) []float32 {
		logits := make([]float32, vocabulary)
		logits[int(stream[0])] = stream[1]
		return logits
	}
	return &growtest.Model{
		Dims:   method.Size{Vocabulary: vocabulary, Layers: n, Width: 2, Context: 4000, Rows: 64},
		Stream: func(path []token.ID, _ forest.Row, layer int) []float32 { return stream(path, layer+1) },
		Head:   head,
		Next: func(path []token.ID, r forest.Row) []float32 {
			if r.To == 0 {
				r.To = n
			}
			return head(stream(path, r.To-r.Skip.Len()))
		},
	}
}

// newReplayed begins a text of a method at a cost.
func newReplayed(t *testing.T, name, cost string, layers int, share func(ran int) float64) *replayed {
	t.Helper()
	const vocabulary = 40
	x := &replayed{layers: layers, model: partial(layers, vocabulary, share), p: plan.Planner{Layers: layers}, rates: method.NewRates(1), cost: new(plan.Cost), tree: method.NewTree(64, vocabulary)}
	text, err := os.ReadFile("../../../bench/costs/" + cost + ".json")
	if err == nil {
		err = json.Unmarshal(text, x.cost)
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := method.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := info.Open(method.Env{Vocabulary: vocabulary, Target: x.model})
	if err != nil {
		t.Fatal(err)
	}
	x.trunk = &timed{Sequence: x.model.Sequence(), x: x}
	if x.Drafter, err = m.NewDrafter(x.trunk); err != nil {
		t.Fatal(err)
	}
	x.Begin(t, 1, 2, 3)
	x.turn.Begin()
	return x
}

// round drafts where the planner asks, verifies, and adds the time that this takes.
func (x *replayed) round(t *testing.T) {
	t.Helper()
	if len(x.IDs()) > 3900 {
		x.Begin(t, token.ID(x.rounds%40), 2, 3)
	}
	x.rounds++
	x.trunk.Trunk, x.trunk.seconds = slices.Clone(x.IDs()[:len(x.IDs())-1]), 0
	x.p.Begin(x.cost, 100)
	x.tree.Reset(40, x.rates)
	x.tree.Floor, x.tree.Throughput, x.tree.Steps = x.p.Least(), x.p.Throughput.Rate(), &x.p
	x.p.Spent = 0
	gain := x.p.Choose(x.tree)
	if x.turn.Due(gain) {
		x.asked++
		if err := x.Drafter.Draft(t.Context(), x.tree); err != nil {
			t.Fatal(err)
		}
		x.p.Spent = x.trunk.seconds
		gain = x.p.Choose(x.tree)
		x.turn.Observe(gain - x.p.Throughput.Rate()*x.trunk.seconds)
	}
	took := x.trunk.seconds + x.step()
	drawn := x.verify()
	x.p.Throughput.Add(len(drawn), took)
	x.took, x.plain = x.took+took, x.plain+float64(len(drawn))*x.p.StepSeconds(1)
	if err := x.trunk.Drop(); err != nil {
		t.Fatal(err)
	}
	x.Add(drawn...)
}

// step returns the time of the step that verifies the chosen drafts: rows that the method left run the other layers alone.
func (x *replayed) step() float64 {
	lives := []method.Live{x.tree.RootLive()}
	for _, c := range x.p.Chosen() {
		lives = append(lives, x.tree.Nodes()[c].Live)
	}
	layer, fresh := x.layers, 0
	for _, l := range lives {
		if l.Layer == 0 {
			fresh++
		} else {
			layer = min(layer, l.Layer)
		}
	}
	if fresh == len(lives) {
		return x.p.StepSeconds(len(lives))
	}
	seconds := x.p.LayerSeconds(len(lives), x.layers-layer) + x.p.HeadSeconds(len(lives))
	if fresh > 0 {
		seconds += x.p.LayerSeconds(fresh, layer)
	}
	return seconds
}

// verify returns the tokens of the round: drafts that were chosen and are what the model says, and the token behind them.
func (x *replayed) verify() (drawn []token.ID) {
	path := slices.Clone(x.IDs())
	for node, ok := method.Root, true; ok; {
		logits := x.model.Next(path, forest.Row{})
		id := token.ID(slices.Index(logits, slices.Max(logits)))
		x.tree.Learn(node, id)
		path, drawn = append(path, id), append(drawn, id)
		if node, ok = x.tree.Child(node, id); ok {
			ok = slices.Contains(x.p.Chosen(), int32(node))
		}
	}
	return drawn
}

// TestLayerReplays replays methods that draft with layers of their model at the costs of models: they are asked where that pays, and cost little where
// it does not. del is about as fast as the best exit that layerskip could have, whichever that is.
func TestLayerReplays(t *testing.T) {
	trained := func(ran int) float64 { return min(0.97, 1-0.4*4/float64(ran)) } // 0.6 at 4 layers, 0.8 at 8, 0.9 at 16
	late := func(ran int) float64 {
		if ran < 12 {
			return 0.15
		}
		return 0.93
	}
	untrained := func(ran int) float64 { return 0.3 * float64(ran) / 32 }
	for _, c := range []struct {
		model       string
		share       func(int) float64
		cost        string
		layers      int
		method      string
		least, most float64 // times as fast as plain decoding
	}{
		{"trained", trained, "7b-q4_0", 32, "layerskip:exit=8", 1.35, 1.6},
		{"trained", trained, "7b-q4_0", 32, "del", 1.45, 1.7},
		{"trained", trained, "0.5b-q8_0", 24, "layerskip:exit=6", 1.05, 1.25},
		{"trained", trained, "0.5b-q8_0", 24, "del", 1.25, 1.5},
		{"late", late, "7b-q4_0", 32, "layerskip:exit=8", 0.97, 1.03},
		{"late", late, "7b-q4_0", 32, "layerskip:exit=12", 1.5, 1.75},
		{"late", late, "7b-q4_0", 32, "del", 1.45, 1.7},
		{"untrained", untrained, "7b-q4_0", 32, "del", 0.97, 1.03},
		{"untrained", untrained, "7b-q4_0", 32, "draft-verify", 0.97, 1.03},
		{"late", late, "7b-q4_0", 32, "draft-verify:skip=2-19", 1.35, 1.6},
		{"late", late, "7b-q4_0", 32, "draft-verify", 1.15, 1.4},
		{"late", late, "0.5b-q8_0", 24, "draft-verify", 1.15, 1.4},
		{"trained", trained, "gopher", 4, "del", 0.97, 1.03},
	} {
		x := newReplayed(t, c.method, c.cost, c.layers, c.share)
		for range 600 {
			x.round(t)
		}
		faster := x.plain / x.took
		t.Logf("%s, %s, %d layers, %s: asked in %d of %d rounds, %.2f times as fast", c.model, c.cost, c.layers, c.method, x.asked, x.rounds, faster)
		if faster < c.least || faster > c.most {
			t.Errorf("%s, %s, %s: %.2f times as fast as plain decoding; want %v to %v", c.model, c.cost, c.method, faster, c.least, c.most)
		}
	}
}
