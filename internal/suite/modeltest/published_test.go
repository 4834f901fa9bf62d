package modeltest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/hftest"
	weights "grove/internal/weights/heads"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// published writes a head of a layout as its authors publish it, for the target of modules, and returns what the conversion to GGUF makes of it.
func published(t *testing.T, layout string) *gguf.File {
	t.Helper()
	target := moduleTarget.WithDefaults()
	head := hftest.NewHead(layout, hftest.HeadShape{Width: target.Width, Heads: 4, Keys: 2, Inner: 96, Vocab: target.Vocab, Draft: 20})
	dir := filepath.Join(t.TempDir(), "head")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := head.Write(dir); err != nil {
		t.Fatal(err)
	}
	f, err := weights.OpenFor(dir, moduleTarget.File(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var tensors []tensor.View
	for _, v := range f.Tensors {
		v, err := f.Load(v)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, v)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, tensors); err != nil {
		t.Fatal(err)
	}
	out, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPublishedBlocks compares modules of blocks, converted from files as their authors and the speculators library publish them, with the oracle.
func TestPublishedBlocks(t *testing.T) {
	for _, layout := range []string{"dflash", "dflash-fused", "dflash-speculators", "dflare", "dflare-speculators", "dspark", "dspark-speculators"} {
		t.Run(layout, func(t *testing.T) {
			r := holdsBlock(t, published(t, layout), 1e-4)
			family, _, _ := strings.Cut(layout, "-")
			if m := r.Model.Info().Module; m.Family != family || m.Block.Own != (family != "dspark") || m.Block.Size != 6 {
				t.Errorf("module %+v with blocks %+v", m, m.Block)
			}
		})
	}
}

// TestPublishedClover compares a head of Clover-2, converted from a file as its authors publish it, with the oracle.
func TestPublishedClover(t *testing.T) {
	h := openHeads(t, moduleTarget.File(t), published(t, "clover"), 1)
	h.holds(t, 1e-4)
}
