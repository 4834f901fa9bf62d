package resident

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// target is the model that the heads of these tests are for.
var target = synthetic.Spec{Vocab: 300, Width: 64, Layers: 4, Context: 256, Vocabulary: true}

// write writes a file of metadata and tensors.
func write(t *testing.T, path string, metadata []gguf.KV, tensors []tensor.View, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := gguf.Write(f, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeModel(t *testing.T, path string, s synthetic.Spec) {
	t.Helper()
	metadata, tensors, err := s.Parts()
	write(t, path, metadata, tensors, err)
}

func writeHeads(t *testing.T, path string, m synthetic.Module) {
	t.Helper()
	metadata, tensors, err := m.Parts()
	write(t, path, metadata, tensors, err)
}

// TestHeads: heads are found by their name and beside the model, and left out where that is asked for.
func TestHeads(t *testing.T) {
	dir := t.TempDir()
	path, heads, beside := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "h.gguf"), filepath.Join(dir, "m.heads.gguf")
	writeModel(t, path, target)
	writeHeads(t, heads, synthetic.Module{Family: "medusa", Target: target, Blocks: 1})
	clover := filepath.Join(dir, "c.gguf")
	writeHeads(t, clover, synthetic.Module{Family: "clover", Target: target})
	open := func(o Options) []string {
		t.Helper()
		f, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o.Threads, o.Parallel, o.Forget = 1, 1, true
		m, err := Open(f, o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return m.Heads()
	}
	for _, c := range []struct {
		name   string
		beside bool
		heads  string
		want   []string
	}{
		{"none", false, "", nil},
		{"by name", false, heads, []string{"medusa (random medusa, seed 0)"}},
		{"beside the model", true, "", []string{"eagle (random eagle, seed 0)"}},
		{"by name, others beside", true, heads, []string{"medusa (random medusa, seed 0)"}},
		{"of a family without published layouts", false, clover, []string{"clover (random clover, seed 0)"}},
		{"off", true, NoHeads, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.beside {
				writeHeads(t, beside, synthetic.Module{Family: "eagle", Target: target})
				defer os.Remove(beside)
			}
			if d := cmp.Diff(c.want, open(Options{Heads: c.heads})); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestWrongHeads: heads that do not belong to the model are refused by what differs.
func TestWrongHeads(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	writeModel(t, path, target)
	with := func(change func(m *synthetic.Module)) func(path string) {
		return func(path string) {
			m := synthetic.Module{Family: "eagle3", Target: target, Own: true, Taps: []int32{1, 2, 3}}
			change(&m)
			writeHeads(t, path, m)
		}
	}
	without := func(tensorName string) func(path string) {
		return func(path string) {
			metadata, tensors, err := synthetic.Module{Family: "eagle", Target: target}.Parts()
			for i, v := range tensors {
				if v.Name == tensorName {
					tensors = append(tensors[:i:i], tensors[i+1:]...)
					break
				}
			}
			write(t, path, metadata, tensors, err)
		}
	}
	for _, c := range []struct {
		name  string
		write func(path string)
		want  string
	}{
		{"another width", with(func(m *synthetic.Module) { m.Target.Width = 96 }), "the eagle3 head is for states of 96 values; those of its target have 64"},
		{"another vocabulary", with(func(m *synthetic.Module) { m.Target.Vocab = 301 }), "the eagle3 head is for a vocabulary of 301 tokens; its target has 300"},
		{"layers that do not exist", with(func(m *synthetic.Module) { m.Taps = []int32{1, 2, 5} }), "the head reads the state before layer 5; its target has 4 layers"},
		{"taps twice", with(func(m *synthetic.Module) { m.Taps = []int32{1, 2, 2} }), "value 2 of eagle3.taps is 2; taps are distinct"},
		{"a draft vocabulary that falls", with(func(m *synthetic.Module) { m.Vocabulary = []int32{3, 9, 8} }), "the 3 numbers of the head's vocabulary do not ascend"},
		{"a draft vocabulary beyond the target's", with(func(m *synthetic.Module) { m.Vocabulary = []int32{3, 9, 300} }), "the head drafts token 300; its target has the tokens 0 to 299"},
		{"larger than the model", with(func(m *synthetic.Module) { m.Target.FFN = 4096 }), "a head must be the smaller one"},
		{"a missing tensor", without("blk.0.ffn_down.weight"), `tensor "blk.0.ffn_down.weight" is missing`},
		{"a model", func(path string) { writeModel(t, path, target) }, `architecture "llama" is no drafting head's; those are `},
		{"a value that is no number", func(path string) {
			metadata, tensors, err := synthetic.Module{Family: "eagle", Target: target}.Parts()
			copy(tensors[0].Data, []byte{0, 0, 0xc0, 0x7f})
			write(t, path, metadata, tensors, err)
		}, "NaN"},
		{"no file of tensors", func(path string) { os.WriteFile(path, []byte("not a model"), 0o600) }, "header of 8029109312199880558 bytes is longer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			heads := filepath.Join(t.TempDir(), "h.gguf")
			c.write(heads)
			f, err := OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Open(f, Options{Threads: 1, Parallel: 1, Forget: true, Heads: heads})
			if err == nil {
				m.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "h.gguf") {
				t.Errorf("%v; want %q and the file's name", err, c.want)
			}
		})
	}
}

// TestHeadsAlone: a file of heads is no model by itself.
func TestHeadsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.gguf")
	writeHeads(t, path, synthetic.Module{Family: "eagle", Target: target})
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Open(f, Options{Threads: 1, Parallel: 1, Forget: true}); err == nil || !strings.Contains(err.Error(), "opened beside its target, with --heads") {
		t.Errorf("%v", err)
		if err == nil {
			m.Close()
		}
	}
}
