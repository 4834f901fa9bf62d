package hf

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"grove/internal/hftest"
	"grove/internal/weights/safetensors"
)

// TestDigest changes each tensor's last byte in the files of folders, and the settings of which tensors are made: the
// digest is another one each time. What decides no tensor changes nothing.
func TestDigest(t *testing.T) {
	digest := func(dir string) [sha256.Size]byte {
		t.Helper()
		f := open(t, dir)
		sum, err := f.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil { // Windows replaces no open file
			t.Fatal(err)
		}
		return sum
	}
	for _, name := range []string{"llama-tied", "mixtral", "phi3"} {
		t.Run(name, func(t *testing.T) {
			model := golden(t, name)
			dir := folderOf(t, model, func(f *hftest.Folder) { f.Shards = 2 })
			plain := digest(dir)
			shards, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
			if err != nil || len(shards) != 2 {
				t.Fatalf("%v, %v", shards, err)
			}
			for _, shard := range shards {
				data, err := os.ReadFile(shard)
				if err != nil {
					t.Fatal(err)
				}
				tensors, err := safetensors.Parse(data)
				if err != nil {
					t.Fatal(err)
				}
				for i := range tensors {
					changed := slices.Clone(data)
					again, err := safetensors.Parse(changed)
					if err != nil {
						t.Fatal(err)
					}
					of := again[i].Data
					of[len(of)-1] ^= 1
					if err := os.WriteFile(shard, changed, 0o600); err != nil {
						t.Fatal(err)
					}
					if digest(dir) == plain {
						t.Errorf("the last byte of %s changes nothing", again[i].Name)
					}
				}
				if err := os.WriteFile(shard, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if digest(dir) != plain {
				t.Error("the same bytes have two digests")
			}
			other := folderOf(t, model, func(f *hftest.Folder) { f.Config["bos_token_id"] = 2 })
			if digest(other) != plain {
				t.Error("shards or the ids of tokens change the digest")
			}
		})
	}
	t.Run("factors of the rotation", func(t *testing.T) {
		var sums [][sha256.Size]byte
		for _, factor := range []float64{1, 1.5} {
			sums = append(sums, digest(folderOf(t, golden(t, "phi3"), func(f *hftest.Folder) {
				factors := slices.Repeat([]float64{factor}, 8)
				f.Config["original_max_position_embeddings"] = f.Config["max_position_embeddings"]
				f.Config["rope_scaling"] = map[string]any{"type": "longrope", "long_factor": factors, "short_factor": factors}
			})))
		}
		if sums[0] == sums[1] {
			t.Error("settings of which a tensor is made change nothing")
		}
	})
}

// TestStamp expects the settings to be a part of what tells the versions of a folder apart: tensors are made of them.
func TestStamp(t *testing.T) {
	dir := folderOf(t, golden(t, "llama-tied"), func(*hftest.Folder) {})
	weights, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	stamp := func(settings string, parts ...string) string {
		b := NewFolder(dir)
		b.Weights, b.Config = weights, &FolderConfig{Sum: sha256.Sum256([]byte(settings)), Err: new(error)}
		for _, p := range parts {
			b.Part(p, "part/")
		}
		text, changed, err := b.Storage().Stamp()
		if changed.IsZero() || err != nil || b.Err != nil {
			t.Errorf("settings %s: %v, %v, %v", settings, changed, err, b.Err)
		}
		return text
	}
	if a, b, c := stamp("a"), stamp("b"), stamp("a", "."); a == b || a == c || a != stamp("a") {
		t.Errorf("got %q, %q and %q", a, b, c)
	}
}
