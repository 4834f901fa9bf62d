package front_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
)

// randomHeads writes heads of random weights for gopher-target, which are always wrong, and returns the file's path.
func randomHeads(t *testing.T, m synthetic.Module) string {
	t.Helper()
	m.Target = synthetic.Spec{Width: 256, Vocab: 4096, Layers: 4, Heads: 8, KVHeads: 4, KeySize: 32, FFN: 64}
	metadata, tensors, err := m.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "heads.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRandomHeads: heads that are always wrong change no bit of a text, alone or among others.
func TestRandomHeads(t *testing.T) {
	alone, plain := open(t, "gopher-target", grove.Options{Parallel: 1}), plainly[int](t)
	for _, c := range []struct {
		method string
		module synthetic.Module
	}{
		{"eagle", synthetic.Module{Family: "eagle"}},
		{"eagle2", synthetic.Module{Family: "eagle"}},
		{"eagle3", synthetic.Module{Family: "eagle3", Taps: []int32{1, 2, 3}, Own: true, Vocabulary: []int32{1, 9, 200, 201, 4095}}},
	} {
		t.Run(c.method, func(t *testing.T) {
			m := open(t, "gopher-target", grove.Options{Heads: randomHeads(t, c.module), Eager: true, Forget: true, Parallel: 3})
			if len(m.Info().Heads) != 1 || !strings.HasPrefix(m.Info().Heads[0], c.module.Family) {
				t.Errorf("heads %q", m.Info().Heads)
			}
			var texts sync.WaitGroup
			for i, sampling := range []grove.Sampling{{}, {Temperature: 1}, {Temperature: 0.7, TopK: 40}} {
				r := request(uint64(i))
				r.Method, r.MaxTokens, r.Sampling = grove.MethodOff, 40, sampling
				want := plain(i, alone, r)
				texts.Go(func() {
					r.Method = c.method
					got, stats := generate(t, m, r)
					if d := cmp.Diff(want, got, sameBits); d != "" || stats.Grade != grove.Exact || stats.Drafting.Drafted == 0 {
						t.Errorf("grade %s, %d drafts: %s", stats.Grade, stats.Drafting.Drafted, d)
					}
				})
			}
			texts.Wait()
		})
	}
}

// TestHeadsErrors: methods that draft from heads say which heads they need.
func TestHeadsErrors(t *testing.T) {
	without := open(t, "gopher-target", grove.Options{Parallel: 1})
	with := open(t, "gopher-target", grove.Options{Parallel: 1, Heads: randomHeads(t, synthetic.Module{Family: "eagle"})})
	for _, c := range []struct {
		name, method, want string
		m                  *grove.Model
	}{
		{"no heads", "eagle2", "needs heads of the family eagle (--heads): none is given", without},
		{"heads of another family", "eagle3", "needs heads of the family eagle3 (--heads): none is given; the heads that are open are of the family eagle", with},
		{"no predictor", "mtp", "needs a model whose file has a module for further tokens", without},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.m.Generate(t.Context(), grove.Request{Prompt: "x", Method: c.method}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
	if m, err := grove.Open("gopher-target", threaded(grove.Options{Heads: "nothere.gguf"})); err == nil || !strings.Contains(err.Error(), "nothere.gguf") {
		t.Errorf("a file that is not there: %v", err)
		_ = m.Close()
	}
}
