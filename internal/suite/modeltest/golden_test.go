package modeltest

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// golden is a small model of random weights with the logits that an independent float64
// implementation gives; see testdata/README.md.
type golden struct {
	Tokens []token.ID
	Vocab  int
	logits [][]float32
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	var g golden
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join("testdata", name+".f32"))
	if err != nil {
		t.Fatal(err)
	}
	for range g.Tokens {
		row := make([]float32, g.Vocab)
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		g.logits, b = append(g.logits, row), b[4*g.Vocab:]
	}
	return g
}

// TestGolden compares every architecture with its golden logits, within 1e-4 of the largest logit.
func TestGolden(t *testing.T) {
	for _, name := range Goldens {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, name)
			r := Open(t, filepath.Join("testdata", name+".gguf"), Config{CacheType: tensor.F32})
			s := r.NewSeq("")
			parent := forest.Trunk
			for _, id := range g.Tokens {
				parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: id, Want: forest.Want{Logits: true}})
			}
			r.Forward()
			var worst, scale float64
			for i := range g.Tokens {
				for v, want := range g.logits[i] {
					worst = max(worst, math.Abs(float64(want)-float64(r.Exec.Result(i).Logits[v])))
					scale = max(scale, math.Abs(float64(want)))
				}
			}
			t.Logf("largest difference %.2g of largest logit %.3g", worst, scale)
			if !(worst <= 1e-4*scale) {
				t.Errorf("logits differ by %g; largest logit %g", worst, scale)
			}
		})
	}
}
