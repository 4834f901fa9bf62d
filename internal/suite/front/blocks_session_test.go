package front_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

// roomy opens a model of random weights with a context of 400 tokens.
func roomy(t *testing.T, s synthetic.Spec, o grove.Options) *grove.Model {
	t.Helper()
	m, _ := randomModel(t, s, o, func(all []gguf.KV) []gguf.KV {
		key := gguf.KV{Key: s.Arch + ".context_length", Value: gguf.Of(uint32(400))}
		return append(without(all, key), key)
	})
	return m
}

// sessionModels are the models whose canvases stand behind keys that stay as they are.
var sessionModels = []synthetic.Spec{{Arch: "sdar"}, {Arch: "sdar_moe"}, {Arch: "sdar", Block: 16}, {Arch: "sdar", Shift: true}, {Arch: "diffusion-gemma"}}

// TestBlockSessions: a conversation whose turns go on from a session's file, each on a model that was just opened, has the tokens and probabilities of one that is computed anew
// each time. What the file holds is not computed again. The short run has one cache for each model, by turns.
func TestBlockSessions(t *testing.T) {
	for n, spec := range sessionModels {
		for i, cache := range []string{"f32", "q8_0"} {
			if !long && i != n%2 {
				continue
			}
			t.Run(fmt.Sprint(spec.Arch, spec.Block, spec.Shift, cache), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "session")
				ids := make([]token.ID, 70)
				for i := range ids {
					ids[i] = token.ID(33 + i*7%90)
				}
				for turn := range 4 {
					seed := uint64(turn)
					r := grove.Request{PromptIDs: ids, MaxTokens: 27 + turn, Seed: &seed, IgnoreEnd: true}
					r.Sampling.Temperature = float32(turn%2) * 0.8
					want := filledBlocks(t, roomy(t, spec, grove.Options{CacheType: cache}), r)
					r.Session = path
					got := filledBlocks(t, roomy(t, spec, grove.Options{CacheType: cache}), r)
					if diff := cmp.Diff(want.text(), got.text()); diff != "" || len(got.IDs) != r.MaxTokens {
						t.Errorf("turn %d: %d tokens: %s", turn, len(got.IDs), diff)
					}
					if most := (len(ids) - 12) / 64 * 64; turn > 0 && (got.Reused != most || got.Rows >= want.Rows) {
						t.Errorf("turn %d: %d of %d tokens are reused, of %d rows %d", turn, got.Reused, len(ids), want.Rows, got.Rows)
					}
					ids = append(append(ids, got.IDs...), 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50)
				}
			})
		}
	}
}

// TestBlockSessionsRefused: a file that is damaged, of another length of blocks, of another salt, or of a text without blocks is refused, before a token is given. A forged one, whose digest is
// right, is an error of the request that names it or changes its answer, and that of no other.
func TestBlockSessionsRefused(t *testing.T) {
	dir := t.TempDir()
	fresh := func() *grove.Model { // what a model has computed itself comes before a file
		t.Helper()
		return roomy(t, synthetic.Spec{Arch: "sdar"}, grove.Options{CacheType: "f32"})
	}
	seed := uint64(1)
	r := grove.Request{Prompt: strings.Repeat("a text of its own ", 9), MaxTokens: 20, Seed: &seed, IgnoreEnd: true}
	want := filledBlocks(t, fresh(), r)
	r.Session = filepath.Join(dir, "blocks")
	filledBlocks(t, fresh(), r)
	good, err := os.ReadFile(r.Session)
	if err != nil || len(good) < 1000 {
		t.Fatalf("%d bytes, %v", len(good), err)
	}
	ask := func(m *grove.Model, change func(r *grove.Request)) (string, error) {
		t.Helper()
		r := r
		if change != nil {
			change(&r)
		}
		g, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return g.Text()
	}
	refuse := func(name string, file []byte, change func(*grove.Request)) {
		t.Helper()
		if err := os.WriteFile(r.Session, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := ask(fresh(), change); !errors.Is(err, grove.ErrSessionFile) || text != "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if now, err := os.ReadFile(r.Session); err != nil || string(now) != string(file) {
			t.Errorf("%s: the file has changed, %v", name, err)
		}
	}
	changed := append([]byte{}, good...)
	changed[len(good)/2] ^= 1
	refuse("changed", changed, nil)
	refuse("cut", good[:len(good)-1], nil)
	refuse("other blocks", good, func(r *grove.Request) { r.Diffusion = &grove.Diffusion{Block: 2} })
	refuse("no blocks", good, func(r *grove.Request) { r.Diffusion, r.Method = &grove.Diffusion{Block: 1}, grove.MethodOff })
	refuse("another salt", good, func(r *grove.Request) { r.CacheSalt = "x" })

	plain := filepath.Join(dir, "plain")
	if _, err := ask(fresh(), func(r *grove.Request) {
		r.Session, r.Diffusion, r.Method = plain, &grove.Diffusion{Block: 1}, grove.MethodOff
	}); err != nil {
		t.Fatal(err)
	}
	of, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	refuse("of a text without blocks", of, nil)

	for _, c := range []struct {
		name  string
		value []byte
		err   error
	}{{"NaN", []byte{0xff, 0xff, 0xff, 0x7f}, grove.ErrSessionFile}, {"zero", make([]byte, 4), nil}} {
		forged := append([]byte{}, good...)
		for at := len(forged) - sha256.Size - 4; at > len(forged)/2; at -= 4 {
			copy(forged[at:], c.value)
		}
		sum := sha256.Sum256(forged[:len(forged)-sha256.Size])
		copy(forged[len(forged)-sha256.Size:], sum[:])
		if err := os.WriteFile(r.Session, forged, 0o600); err != nil {
			t.Fatal(err)
		}
		m := fresh()
		if text, err := ask(m, nil); !errors.Is(err, c.err) || err == nil && text == want.Text {
			t.Errorf("forged with %s: %q, %v", c.name, text, err)
		}
		if text, err := ask(m, func(r *grove.Request) { r.Session = "" }); err != nil || text != want.Text {
			t.Errorf("beside a file forged with %s: %q, %v; want %q", c.name, text, err, want.Text)
		}
	}
	if _, err := ask(fresh(), func(r *grove.Request) { r.Session = dir }); !errors.Is(err, grove.ErrSession) {
		t.Errorf("a folder: %v", err)
	}
}
