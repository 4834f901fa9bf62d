package methodtest

import (
	"context"
	"os"
	"slices"
	"testing"

	"grove/internal/fileio"
	"grove/internal/model"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }

func TestMethods(t *testing.T) {
	l := newLab(t)
	for n, info := range method.All() {
		if l.offers(info) {
			t.Run(info.Name, func(t *testing.T) { suite(t, l, info, n) })
		}
	}
}

// TestBlockMethods runs the suite of the method masks on a model of blocks that decodes token by token, and a sixth of that of every other exact method that needs no modules: on one
// whose rows give the token behind their own place, and by turns on one whose rows ask with a mask.
func TestBlockMethods(t *testing.T) {
	for shift, name := range map[bool]string{true: "shifted", false: "asks"} {
		l := newLab(t)
		l.target, l.free = l.model(modeltest.Spec{Arch: "sdar", Seed: 1, Shift: shift}), !shift
		for n, info := range method.All() {
			every := 6
			if info.Name == "masks" {
				every = 1
			}
			if info.Grade == method.Exact && info.Kind != method.KindHeads {
				t.Run(name+"/"+info.Name, func(t *testing.T) { share(t, l, info, n, every) })
			}
		}
	}
}

// recurrent are models with recurrent layers.
var recurrent = []struct {
	name string
	open func(l *lab, seed uint64) model.Model
}{
	{"every", func(l *lab, seed uint64) model.Model {
		return l.recurrent(modeltest.Recurrent{Seed: seed, Attention: true})
	}},
	{"mamba2", func(l *lab, seed uint64) model.Model { return l.model(modeltest.Spec{Arch: "mamba2", Seed: seed}) }},
	{"granitehybrid", func(l *lab, seed uint64) model.Model {
		return l.model(modeltest.Spec{Arch: "granitehybrid", Seed: seed})
	}},
	{"sambay", func(l *lab, seed uint64) model.Model {
		return l.louder(modeltest.Spec{Arch: "sambay", Seed: seed}, 128) // a scan gives some 50 times what it reads
	}},
	{"qwen35", func(l *lab, seed uint64) model.Model { return l.model(modeltest.Spec{Arch: "qwen35", Seed: seed}) }},
	{"alone", func(l *lab, seed uint64) model.Model { return l.recurrent(modeltest.Recurrent{Seed: seed}) }},
}

// TestRecurrentMethods runs a fifth of the suite of every exact method on a model with recurrent layers, by turns; the long run all of it on each.
func TestRecurrentMethods(t *testing.T) {
	labs := make([]*lab, len(recurrent))
	for m, r := range recurrent {
		labs[m] = labOf(t, r.open)
	}
	for n, info := range method.All() {
		for m, r := range recurrent {
			if info.Grade == method.Exact && labs[m].offers(info) && (m == n%len(recurrent) || long) {
				t.Run(info.Name+"/"+r.name, func(t *testing.T) { share(t, labs[m], info, n/len(recurrent), 5) })
			}
		}
	}
}

// TestSources runs a fifth of the suite on an encoder-decoder, by turns, with the exact methods that need no second model; the long run all of it.
func TestSources(t *testing.T) {
	l := newLab(t)
	l.target = l.model(modeltest.Spec{Arch: "t5", KVHeads: 4, Seed: 9})
	for n, info := range method.All() {
		if info.Grade == method.Exact && info.Kind != method.KindModel && info.Kind != method.KindHeads && l.offers(info) {
			t.Run(info.Name, func(t *testing.T) { share(t, l, info, n, 5) })
		}
	}
}

// faulty is a method with a fault, around the drafters of a sound one.
type faulty struct {
	method.Method
	kept  [][]token.ID // of all texts
	fault func(f *faulty, d *wrapped, t *method.Tree)
}

func (f *faulty) NewDrafter(own method.Trunk) (method.Drafter, error) {
	d, err := f.Method.NewDrafter(own)
	return &wrapped{Drafter: d, of: f}, err
}

type wrapped struct {
	method.Drafter
	of *faulty
}

func (w *wrapped) Close() error {
	if c, ok := w.Drafter.(method.Closer); ok {
		return c.Close()
	}
	return nil
}

func (w *wrapped) Draft(ctx context.Context, t *method.Tree) error {
	err := w.Drafter.Draft(ctx, t)
	w.of.fault(w.of, w, t)
	return err
}

// plant wraps a method's drafters.
func plant(t *testing.T, name string, fault func(f *faulty, d *wrapped, t *method.Tree)) method.Info {
	t.Helper()
	info, err := method.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	open := info.Open
	info.Open = func(e method.Env) (method.Method, error) {
		m, err := open(e)
		return &faulty{Method: m, fault: fault}, err
	}
	return info
}

// TestPlantedFaults: every check of the suite finds the fault that it is for.
func TestPlantedFaults(t *testing.T) {
	l := newLab(t)
	l.draws = few
	sound := func(*faulty, *wrapped, *method.Tree) {}
	wrong := func(_ *faulty, _ *wrapped, tree *method.Tree) {
		for node := method.Root; node < tree.Len(); node++ {
			if d := tree.DraftDistribution(node); len(d.P) > 1 {
				n := len(d.P)
				tree.SetDistribution(node, verify.Distribution{IDs: d.IDs, P: append([]float32{d.P[n-1]}, d.P[:n-1]...)})
			}
		}
	}
	for _, c := range []struct {
		name   string
		checks []string
		info   method.Info
		wrong  bool // the verifier
	}{
		{"a verifier that accepts what is likely enough", []string{"alone", "interleaved", "append", "context end", "small steps", "edges", "at once", "constrained"}, plant(t, "recycle", sound), true},
		{"no drafts", []string{"accepts"}, plant(t, "lookup", func(_ *faulty, _ *wrapped, tree *method.Tree) { tree.Reset(1, method.NewRates(1)) }), false},
		{"drafts that were drawn from another distribution", []string{"distribution"}, plant(t, "draft-rsd", wrong), false},
		{"the same in a chain", []string{"distribution"}, plant(t, "draft-block", wrong), false},
		{"a slice for every draft", []string{"allocations", "memory"}, plant(t, "sam", func(f *faulty, _ *wrapped, tree *method.Tree) {
			f.kept = append(f.kept, make([]token.ID, 1000))
		}), false},
	} {
		for _, check := range checks {
			if !slices.Contains(c.checks, check.name) {
				continue
			}
			if err := check.run(&subject{lab: l, info: c.info, ctx: t.Context(), typical: c.wrong}); err == nil {
				t.Errorf("%s: check %q finds nothing", c.name, check.name)
			} else {
				t.Logf("%s: check %q: %v", c.name, check.name, err)
			}
		}
	}
	if err := alone(&subject{lab: l, info: plant(t, "lookup", sound), ctx: t.Context()}); err != nil {
		t.Errorf("without a fault: %v", err)
	}
}
