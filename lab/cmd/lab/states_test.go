package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/text/token"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// stateFile is what a file of states holds.
type stateFile struct {
	ids    []int32
	starts []int64
	shapes map[string][]int // of the states
	states map[string][]float32
}

// writeStates runs lab states and reads the file.
func writeStates(t *testing.T, dir string, args ...string) (w stateFile) {
	t.Helper()
	path := filepath.Join(dir, "out.safetensors")
	cmd := exec.CommandContext(t.Context(), "lab", append([]string{"states", "-o", path}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w.shapes, w.states = map[string][]int{}, map[string][]float32{}
	for _, p := range f.Tensors {
		switch p.Name {
		case "ids":
			w.ids = make([]int32, p.Shape[0])
			_, err = binary.Decode(p.Data, binary.LittleEndian, w.ids)
		case "starts":
			w.starts = make([]int64, p.Shape[0])
			_, err = binary.Decode(p.Data, binary.LittleEndian, w.starts)
		default:
			w.shapes[p.Name] = p.Shape
			w.states[p.Name], err = p.Floats()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// direct makes what the file must hold of texts.
func direct(t *testing.T, m *grove.Model, texts [][]token.ID, o grove.StatesOptions, names ...string) (w stateFile) {
	t.Helper()
	w.starts, w.shapes, w.states = []int64{0}, map[string][]int{}, map[string][]float32{}
	for _, ids := range texts {
		err := m.States(t.Context(), ids, o, func(states [][]float32) error {
			for i, row := range states {
				w.states[names[i]] = append(w.states[names[i]], row...)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			w.ids = append(w.ids, int32(id))
		}
		w.starts = append(w.starts, int64(len(w.ids)))
	}
	for _, name := range names {
		w.shapes[name] = []int{len(w.ids), m.Info().Width}
	}
	return w
}

// TestStates compares what the command writes with what the library gives of each text by itself.
func TestStates(t *testing.T) {
	dir, model := t.TempDir(), "gopher-nano"
	code := "package main\n\nfunc main() {\n\tprintln(\"<|endoftext|>\", 1)\n}\n"
	ids := make([]token.ID, 70)
	var u16, i32 []byte
	for i := range ids {
		ids[i] = token.ID(i * 37 % 500)
		u16 = binary.LittleEndian.AppendUint16(u16, uint16(ids[i]))
		i32 = binary.LittleEndian.AppendUint32(i32, uint32(ids[i]))
	}
	for name, content := range map[string]string{"a.go": code, "b.go": strings.Repeat(code, 40), "u16.bin": string(u16), "i32.bin": string(i32)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := grove.Open(model, grove.Options{Threads: 1, Chunk: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	cut := func(text string, n int) (texts [][]token.ID) { // of n tokens, of which the first begins each
		ids, err := m.Tokenize(text, true, true)
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(ids[1:], n-1) {
			texts = append(texts, append([]token.ID{ids[0]}, part...))
		}
		return texts
	}
	short, long := cut(code, 4096), cut(strings.Repeat(code, 40), 64)
	final := grove.StatesOptions{Final: true}
	for _, c := range []struct {
		name, args string
		texts      [][]token.ID
		options    grove.StatesOptions
		states     []string
	}{
		{"files", "--layers final,0 a.go b.go --length 64", slices.Concat(short, long), grove.StatesOptions{Layers: []int{0}, Final: true}, []string{"layer.0", "final"}},
		{"a file", "--layers last -f a.go", short, grove.StatesOptions{Layers: []int{1}}, []string{"layer.1"}},
		{"no room for a token", "--layers final --max-tokens 65 --length 64 b.go a.go", long[:1], final, []string{"final"}},
		{"every layer", "--layers 0..1,1 a.go", short, grove.StatesOptions{Layers: []int{0, 1}}, []string{"layer.0", "layer.1"}},
		{"ids", "--layers final --ids u16.bin --length 32 -t 2", slices.Collect(slices.Chunk(ids, 32)), final, []string{"final"}},
		{"wide ids", "--layers final --ids i32.bin --ids-type i32 --length 70", [][]token.ID{ids}, final, []string{"final"}},
		{"some ids", "--layers final --ids u16.bin --length 32 --max-tokens 33", [][]token.ID{ids[:32], ids[32:33]}, final, []string{"final"}},
		{"some of a file", "--layers final --max-tokens 67 --length 64 b.go a.go", [][]token.ID{long[0], long[1][:3]}, final, []string{"final"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := direct(t, m, c.texts, c.options, c.states...)
			got := writeStates(t, dir, append([]string{"-m", model}, strings.Fields(c.args)...)...)
			if d := cmp.Diff(want, got, cmp.AllowUnexported(stateFile{})); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("f16", func(t *testing.T) {
		want := direct(t, m, short, final, "final").states["final"]
		b := make([]byte, 2*len(want))
		for _, err := range []error{tensor.Pack(tensor.F16, b, want), tensor.Unpack(tensor.F16, want, b)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := writeStates(t, dir, "-m", model, "--layers", "final", "--type", "f16", "a.go").states["final"]; !slices.Equal(got, want) {
			t.Error("the values are not those of f32, rounded")
		}
	})
}
