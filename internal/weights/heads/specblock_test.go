package heads

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/hftest"
)

// TestVocabularyBeside opens a head whose vocabulary is in a file beside it, as it is published; it is the same head.
func TestVocabularyBeside(t *testing.T) {
	want, _, _, err := open(t, "specblock", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, dir := hftest.NewHead("specblock", hftest.SmallHead), t.TempDir()
	apart := &hftest.Head{Tensors: map[string]hftest.Raw{}, Text: map[string]string{}}
	for _, name := range []string{"d2t", "t2d"} {
		apart.Tensors[name] = h.Tensors[name]
		delete(h.Tensors, name)
	}
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(dir, "vocab_mapping.safetensors")
	if err := apart.WriteFile(beside); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "model.safetensors")} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(key(want, "specblock.draft_vocabulary"), key(f, "specblock.draft_vocabulary")); diff != "" {
			t.Errorf("%s: the vocabulary: %s", path, diff)
		}
		if diff := cmp.Diff(tensorsIn(t, want), tensorsIn(t, f)); diff != "" {
			t.Errorf("%s: tensors: %s", path, diff)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(beside, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(dir); err == nil {
		t.Error("a vocabulary that is no file of safetensors is taken")
		f.Close()
	}
}
