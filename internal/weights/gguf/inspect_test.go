package gguf

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/weights/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// hostile adds what a file may hold to confuse a reader of its listing.
func hostile() ([]KV, []tensor.View) {
	metadata, tensors := goodFile()
	metadata = append(metadata,
		KV{"evil\x1b[31m\nkey", Of("\x1b]0;owned\a\r\n\u202etxt")},
		KV{"long", Of(strings.Repeat("grün ", 40))},
		KV{"longer.than.a.column." + strings.Repeat("x", 60), ArrayOf([]int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})})
	tensors = append(tensors, tensor.View{Name: "t\u009b\t", Type: tensor.F32, Shape: []int{2}, Data: pattern(8)})
	return metadata, tensors
}

func TestInspect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.gguf")
	metadata, tensors := hostile()
	if err := WriteFile(path, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	whole, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	split, err := Open(parts(t, nil)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer split.Close()
	bare, err := Parse(file(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	predicting, err := New("", []KV{
		{"general.architecture", Of("glm4moe")}, {"glm4moe.block_count", Of(uint32(4))}, {"glm4moe.nextn_predict_layers", Of(uint32(2))},
	}, []tensor.View{ // those of layer 3 are in another file
		{Name: "blk.1.attn_norm.weight", Type: tensor.F32, Shape: []int{3}, Data: pattern(12)},
		{Name: "blk.2.attn_norm.weight", Type: tensor.F32, Shape: []int{3}, Data: pattern(12)},
		{Name: "blk.2.nextn.enorm.weight", Type: tensor.F32, Shape: []int{3}, Data: pattern(12)},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		f    *File
		full bool
	}{
		{"short", whole, false}, {"full", whole, true}, {"split", split, false}, {"bare", bare, false}, {"predictors", predicting, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			if err := Inspect(&got, c.f, c.full); err != nil {
				t.Fatal(err)
			}
			if _, err := (discard{t}).Write(got.Bytes()); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "inspect_"+c.name+".golden")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	full := errors.New("disk full")
	if err := Inspect(failing{full}, whole, false); !errors.Is(err, full) {
		t.Errorf("failing writer: %v", err)
	}
}
