package arch_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/model"
	"grove/internal/model/arch"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// asPeer is the architecture that llama.cpp makes of Phi 3.5 MoE. It exists in this test alone.
const asPeer = "phimoe-as-peer"

func init() { model.Register(asPeer, arch.OpenPhiMoEAsPeer) }

// TestPhiMoEAsPeer compares all of Phi 3.5 MoE but its norm and its weights of experts with llama.cpp: with that program's norm and weights in their
// place the logits of a random model are within 1e-5 of their root mean square. It has biases everywhere, and two sets of rotary factors.
func TestPhiMoEAsPeer(t *testing.T) {
	dir := "../../../../shared/golden/archs"
	if _, err := os.Stat(dir); err != nil {
		if _, err := os.Stat(filepath.Dir(filepath.Dir(dir))); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is missing", dir)
		}
		t.Skipf("%s is not here", dir)
	}
	file, err := gguf.Open(filepath.Join(dir, "phimoe-moe.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ids, want := logitsOf(t, filepath.Join(dir, "phimoe-moe"))
	config := modeltest.Config{CacheType: tensor.F32, Context: 256} // longer than the short factors are for, as that program opened it
	worst := difference(modeltest.New(t, renamed(t, file), config).Reference(ids), want)
	t.Logf("largest difference %.2g of the root mean square", worst)
	if !(worst <= 1e-5) {
		t.Errorf("logits differ by %g of their root mean square", worst)
	}
	if worst := difference(modeltest.New(t, file, config).Reference(ids), want); worst < 0.1 {
		t.Errorf("the published norm and weights change logits by %g of their root mean square alone: the test compares the same twice", worst)
	}
}

// renamed returns a file of the same model for the other architecture.
func renamed(t *testing.T, f *gguf.File) *gguf.File {
	var metadata []gguf.KV
	for _, kv := range f.Metadata {
		if rest, ok := strings.CutPrefix(kv.Key, "phimoe."); ok {
			kv.Key = asPeer + "." + rest
		}
		if kv.Key == "general.architecture" {
			kv.Value = gguf.Of(asPeer)
		}
		metadata = append(metadata, kv)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	out, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// logitsOf reads ids and the logits behind each of them.
func logitsOf(t *testing.T, path string) (ids []token.ID, logits []float32) {
	text, err := os.ReadFile(path + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var fed struct{ Tokens []token.ID }
	if err := json.Unmarshal(text, &fed); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path + ".f32")
	if err != nil {
		t.Fatal(err)
	}
	logits = make([]float32, len(data)/4)
	if _, err := binary.Decode(data, binary.LittleEndian, logits); err != nil {
		t.Fatal(err)
	}
	return fed.Tokens, logits
}

// difference returns the largest difference of rows from the wanted logits, in parts of the root mean square of these.
func difference(got []modeltest.Bits, want []float32) float64 {
	var worst, square float64
	for i, w := range want {
		n := len(got[0])
		worst, square = max(worst, math.Abs(float64(got[i/n][i%n])-float64(w))), square+float64(w)*float64(w)
	}
	return worst / math.Sqrt(square/float64(len(want)))
}
