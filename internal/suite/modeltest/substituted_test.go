package modeltest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

const substitutePeriod = 4

var substitutedSpec = Spec{Type: tensor.F32, Layers: 6, Width: 64, Vocab: 48}

// substitutes opens what stands for layers 1, 2, 3 and 5 of six.
func substitutes(t *testing.T, info *model.Info, spread float64) (compute.SubstituteLayers, []tensor.View) {
	t.Helper()
	metadata, tensors, err := synthetic.Substitutes(info.Width, 4, 3, spread, 1, 2, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	return openSubstitutes(t, info, metadata, tensors), tensors
}

func substitutesFile(t *testing.T, metadata []gguf.KV, tensors []tensor.View) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func openSubstitutes(t *testing.T, info *model.Info, metadata []gguf.KV, tensors []tensor.View) compute.SubstituteLayers {
	t.Helper()
	pool := par.New(1)
	t.Cleanup(pool.Close)
	layers, bytes, err := model.OpenSubstitutes(substitutesFile(t, metadata, tensors), pool, info)
	if err != nil || bytes == 0 {
		t.Fatal(err)
	}
	return layers
}

// periodText runs a prompt and behind it rows of a period, so many a step, and returns the logits of the latter and their streams behind each layer.
func (r *Runner) periodText(s forest.Seq, ids []token.ID, prompt, period, rows int, commit bool) (logits []Bits, hidden [][]Bits) {
	r.Prefill(s, ids[:prompt], 64)
	parent := forest.Trunk
	for at := prompt; at < len(ids); {
		n := min(rows, len(ids)-at)
		for i := range n {
			row := forest.Row{Seq: s, Parent: parent, ID: ids[at+i], Want: forest.Want{Logits: true, Hidden: forest.LayerRange(0, len(r.Model.Info().Layers))}}
			row.Substitute = (at+i-prompt)%period != 0
			row.Anchor = !row.Substitute
			parent = r.Add(row)
		}
		r.Forward()
		for i := range n {
			logits = append(logits, slices.Clone(Bits(r.Exec.Result(i).Logits)))
			var streams []Bits
			for _, h := range r.Exec.Result(i).Hidden {
				streams = append(streams, slices.Clone(Bits(h)))
			}
			hidden = append(hidden, streams)
		}
		if commit {
			r.Commit(s, parent)
			parent = forest.Trunk
		}
		at += n
	}
	return logits, hidden
}

// TestSubstituted compares rows of a period with the reference in float64, with rows of other steps, with rows that hang from the prompt, and with rows of another text beside them,
// and counts the keys of layers that can be substituted.
func TestSubstituted(t *testing.T) {
	file := substitutedSpec.File(t)
	plain := New(t, file, Config{})
	layers, tensors := substitutes(t, plain.Model.Info(), 0.3)
	set := layers.Set()
	const prompt = 61
	ids := randomIDs(rand.New(rand.NewPCG(4, 4)), 220, substitutedSpec.Vocab)
	r := New(t, file, Config{Substitutes: layers})
	s := r.NewSeq("")
	got, _ := r.periodText(s, ids, prompt, substitutePeriod, 1, true)

	ref := newReference(substitutedSpec, file)
	var wide []drop64
	for i := 0; i < len(tensors); i += 2 {
		wide = append(wide, drop64{float64s(t, tensors[i]), float64s(t, tensors[i+1])})
	}
	ref.stands = func(l int, x []float64) []float64 {
		p := wide[slices.Index([]int{1, 2, 3, 5}, l)]
		y := matVec(p.b, matVec(p.a, x))
		for i := range y {
			y[i] *= 2
		}
		return y
	}
	var rows []refRow
	for i, id := range ids {
		row := refRow{input: ref.embedding(id), pos: i, sees: upTo(i)}
		if place := i - prompt; place > 0 && place%substitutePeriod != 0 {
			row.skip, row.drop, row.anchor = set, set, i-place%substitutePeriod
		}
		rows = append(rows, row)
	}
	want, _ := ref.forward(rows)
	for i, logits := range got {
		if d := worst(logits, want[prompt+i]); d > 1e-4 {
			t.Fatalf("place %d: the logits differ from the reference's by %g of the largest", i, d)
		}
	}
	kept := prompt + (len(ids)-prompt+substitutePeriod-1)/substitutePeriod
	for l := range substitutedSpec.Layers {
		n := len(ids)
		if set.Has(l) {
			n = kept
		}
		if b := r.Cache.Blocks(s, l); b.Len() != n {
			t.Errorf("layer %d has keys of %d tokens, want %d", l, b.Len(), n)
		}
	}
	if held, all := r.Cache.Held(s), 2*((len(ids)+kv.PageTokens-1)/kv.PageTokens); held >= all {
		t.Errorf("%d pages are held, as many as of a text that substitutes nothing (%d)", held, all)
	}
	for name, c := range map[string]struct {
		rows   int
		commit bool
		more   bool
	}{"seven rows a step": {7, true, false}, "rows that hang from the prompt": {30, false, false}, "beside another text": {3, true, true}} {
		r := New(t, file, Config{Substitutes: layers, Threads: 2})
		if c.more {
			other := r.NewSeq("")
			r.periodText(other, ids[20:180], 9, 3, 5, true)
		}
		again, _ := r.periodText(r.NewSeq(""), ids, prompt, substitutePeriod, c.rows, c.commit)
		for i := range got {
			if err := got[i].Diff(again[i]); err != nil {
				t.Fatalf("%s: place %d: %v", name, i, err)
			}
		}
	}
}

type drop64 struct{ a, b []float64 }

func float64s(t *testing.T, v tensor.View) (out []float64) {
	t.Helper()
	values := make([]float32, v.Elems())
	if err := tensor.Unpack(v.Type, values, v.Data); err != nil {
		t.Fatal(err)
	}
	for _, x := range values {
		out = append(out, float64(x))
	}
	return out
}

// TestSubstitutedFrozen: with matrices of zero a substituted layer gives what it gave for the anchor, bit by bit; with a period of 1 all is as without.
func TestSubstitutedFrozen(t *testing.T) {
	file := substitutedSpec.File(t)
	plain := New(t, file, Config{})
	layers, _ := substitutes(t, plain.Model.Info(), 0)
	ids := randomIDs(rand.New(rand.NewPCG(5, 4)), 90, substitutedSpec.Vocab)
	r := New(t, file, Config{Substitutes: layers})
	_, hidden := r.periodText(r.NewSeq(""), ids, 20, substitutePeriod, 1, true)
	for i, streams := range hidden {
		for l, h := range streams {
			if same := h.Diff(hidden[i-i%substitutePeriod][l]) == nil; layers.Set().Has(l) && !same || !layers.Set().Has(l) && same && i%substitutePeriod != 0 {
				t.Errorf("place %d: the stream behind layer %d is the anchor's: %v", i, l, same)
			}
		}
	}
	want, _ := plain.periodText(plain.NewSeq(""), ids, 20, 1, 1, true)
	got, _ := r.periodText(r.NewSeq(""), ids, 20, 1, 1, true)
	for i := range want {
		if err := want[i].Diff(got[i]); err != nil {
			t.Fatalf("a period of 1: place %d: %v", i, err)
		}
	}
}

// TestSubstitutedRefused goes through rows that cannot substitute layers, and files of what stands for them with one fault each.
func TestSubstitutedRefused(t *testing.T) {
	file := substitutedSpec.File(t)
	plain := New(t, file, Config{})
	info := plain.Model.Info()
	layers, _ := substitutes(t, info, 0.3)
	r := New(t, file, Config{Substitutes: layers})
	s := r.NewSeq("")
	r.Prefill(s, []token.ID{1, 2, 3}, 64)
	refuse := func(r *Runner, s forest.Seq, row forest.Row, want string) {
		t.Helper()
		row.Seq, row.Substitute = s, true
		if _, err := r.Exec.Step.Add(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refuse(r, s, forest.Row{}, "no row before it is an anchor")
	refuse(r, s, forest.Row{Anchor: true}, "is no anchor and no resumed row")
	refuse(plain, plain.NewSeq(""), forest.Row{}, "the model has none that can be substituted")
	if err := r.Cache.Truncate(s, 2); err != nil {
		t.Fatal(err)
	}
	r.Commit(s, func() forest.Node {
		n := r.Add(forest.Row{Seq: s, ID: 1, Anchor: true})
		r.Forward()
		return n
	}())
	n := r.Add(forest.Row{Seq: s, ID: 2, Substitute: true})
	r.Forward()
	r.Commit(s, n)
	if err := r.Cache.Select(s, 1, 0, nil); err == nil || !strings.Contains(err.Error(), "1 of 4 tokens have no keys") {
		t.Errorf("selecting blocks: %v", err)
	}
	if err := r.Cache.Truncate(s, 3); err != nil {
		t.Fatal(err)
	}
	refuse(r, s, forest.Row{}, "no row before it is an anchor")

	pool := par.New(1)
	defer pool.Close()
	opened := func(info *model.Info, change func(m *[]gguf.KV, v *[]tensor.View)) error {
		metadata, tensors, err := synthetic.Substitutes(info.Width, 4, 3, 1, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		change(&metadata, &tensors)
		_, _, err = model.OpenSubstitutes(substitutesFile(t, metadata, tensors), pool, info)
		return err
	}
	same := func(*[]gguf.KV, *[]tensor.View) {}
	for want, c := range map[string]struct {
		info   *model.Info
		change func(*[]gguf.KV, *[]tensor.View)
	}{
		"it must be \"lora-drop\"":      {info, func(m *[]gguf.KV, _ *[]tensor.View) { (*m)[0].Value = gguf.Of("llama") }},
		"the width of the target is 64": {info, func(m *[]gguf.KV, _ *[]tensor.View) { (*m)[2].Value = gguf.Of(uint32(32)) }},
		"layer 0 cannot be substituted": {info, func(_ *[]gguf.KV, v *[]tensor.View) {
			(*v)[0].Name, (*v)[1].Name = "blk.0.drop_a.weight", "blk.0.drop_b.weight"
		}},
		"blk.1.drop_b.weight":                {info, func(_ *[]gguf.KV, v *[]tensor.View) { *v = slices.Delete(*v, 1, 2) }},
		"has no tensors blk.N.drop_a.weight": {info, func(_ *[]gguf.KV, v *[]tensor.View) { *v = nil }},
		"blk.9.drop_a.weight": {info, func(_ *[]gguf.KV, v *[]tensor.View) {
			(*v)[0].Name, (*v)[1].Name = "blk.9.drop_a.weight", "blk.9.drop_b.weight"
		}},
		"layer 0 of mamba2 is recurrent":          {New(t, Spec{Arch: "mamba2"}.File(t), Config{}).Model.Info(), same},
		"gemma3n reads more than the keys of its": {New(t, Spec{Arch: "gemma3n"}.File(t), Config{}).Model.Info(), same},
		"lora-drop.scale is +Inf":                 {info, func(m *[]gguf.KV, _ *[]tensor.View) { (*m)[3].Value = gguf.Of(float32(math.Inf(1))) }},
	} {
		if err := opened(c.info, c.change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := kv.New(kv.Config{Layers: []kv.Layer{{KVHeads: 1, KeySize: 8}, {KVHeads: 1, KeySize: 8, Keeps: kv.Window(8), Gaps: true}}, Context: 9, Tokens: 9, Seqs: 1, Scratch: 1}); err == nil || !strings.Contains(err.Error(), "layer 1: its tokens may lack keys") {
		t.Errorf("a window: %v", err)
	}
}
