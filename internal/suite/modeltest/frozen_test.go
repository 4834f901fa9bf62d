package modeltest

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"hash"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/compute"
	"grove/internal/kernel"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

var update = flag.Bool("update", false, "add what is missing to testdata/bits")

// A frozen is a result whose bits a numerics version promises.
type frozen struct {
	name   string // without spaces
	random bool   // a model of random weights
	// compute writes the inputs that are not code, such as weights, to in, and the results to out.
	compute func(t *testing.T, in, out *digest)
}

// frozenResults are all frozen results.
func frozenResults() []frozen {
	all := slices.Concat(frozenKernels(), frozenRopes(), frozenDraws())
	for _, name := range Goldens {
		for _, cache := range cacheTypes {
			if cache == tensor.Q8_0 && !slices.Contains(wideGoldens, name) {
				continue
			}
			all = append(all, frozen{name: fmt.Sprintf("golden-%s-cache-%v", name, cache), compute: func(t *testing.T, in, out *digest) {
				f, err := gguf.Open(filepath.Join("testdata", name+".gguf"))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				freezeModel(t, f, cache, readGolden(t, name).Tokens, in, out)
			}})
		}
	}
	for _, s := range frozenSubjects() {
		all = append(all, frozen{name: s.String(), random: true, compute: func(t *testing.T, in, out *digest) {
			f := s.spec.File(t)
			text := randomIDs(rand.New(rand.NewPCG(7, 8)), textLength, s.spec.vocab())
			freezeModel(t, f, s.cache, text, in, out)
		}})
	}
	return all
}

// wideGoldens are the goldens with heads of whole blocks of Q8_0.
var wideGoldens = []string{"gemma3", "qwen3", "qwen3moe"}

var cacheTypes = []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0}

// frozenSubjects are a Llama of every weight type and a model of every other architecture, with every cache type.
func frozenSubjects() (out []subject) {
	var specs []Spec
	for _, t := range tensor.Types() {
		spec := Spec{Type: t}
		if elems, _, _ := t.Block(); elems == 256 {
			spec.Width, spec.FFN, spec.Heads = 256, 256, 8
		}
		specs = append(specs, spec)
	}
	specs = append(specs, Spec{Arch: "gemma3", Type: tensor.Q8_0, Layers: 7}, Spec{Arch: "qwen3moe", Type: tensor.Q8_0},
		Spec{Arch: "gpt-oss", Type: tensor.MXFP4}, Spec{Arch: "gpt-oss", Type: tensor.F16}, latentSpec)
	for i, spec := range others {
		spec.Type = otherType(i)
		specs = append(specs, spec)
	}
	for _, spec := range specs {
		for _, cache := range cacheTypes {
			out = append(out, subject{spec: spec, cache: cache})
		}
	}
	return out
}

func (s Spec) vocab() int {
	if s.Vocab > 0 {
		return s.Vocab
	}
	return 48 // the default
}

// freezeModel writes the weights of a file to in, and to out the logits of every index of a text, and its keys and
// values as the cache has rounded them.
func freezeModel(t *testing.T, f *gguf.File, cache tensor.Type, text []token.ID, in, out *digest) {
	for _, v := range f.Tensors {
		v, err := f.Load(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, v.Name, v.Type, v.Shape)
		in.Write(v.Data)
	}
	r := New(t, f, Config{CacheType: cache, Threads: 2})
	s := r.NewSeq("")
	defer r.Close(s)
	nodes, logits := r.Grow(s, Chain(text))
	for _, row := range logits {
		out.floats(row)
	}
	path, err := r.Cache.Forest.Committable(s, nodes[len(nodes)-1])
	if err != nil {
		t.Fatal(err)
	}
	for l, layer := range r.Model.Info().Layers {
		size := layer.HeadSize()
		key, value := make([]float32, size.Key), make([]float32, size.Value)
		for _, slot := range path {
			for head := range layer.KVHeads {
				keys, values := r.Cache.Scratch(l, int(slot)/kernel.PageSlots, head)
				r.Cache.Format.Get(keys, values, int(slot)%kernel.PageSlots, size, key, value)
				out.floats(key)
				out.floats(value)
			}
		}
	}
}

// digest is SHA-256 of numbers, each in eight bytes or in the four of its float32.
type digest struct{ hash.Hash }

func newDigest() *digest { return &digest{sha256.New()} }

func (d *digest) floats(x []float32) {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		if v != v {
			v = float32(math.NaN()) // which NaN it is, processors choose
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	d.Write(b)
}

func (d *digest) float64s(x ...float64) {
	for _, v := range x {
		d.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	}
}

func (d *digest) ints(x ...int) {
	for _, v := range x {
		d.Write(binary.LittleEndian.AppendUint64(nil, uint64(v)))
	}
}

// sum returns 16 bytes of the digest: enough to notice any change.
func (d *digest) sum() string { return fmt.Sprintf("%x", d.Sum(nil)[:16]) }

// A frozenFile is a file of testdata/bits: after comments a line for each result, of its name, the digest of its inputs,
// and the digest of its bits.
type frozenFile struct {
	path  string
	lines map[string]string // by name
	added int
}

const frozenHead = `# The bits of numerics version %s, by the name of a result: SHA-256 of its inputs that are not code, such as weights,
# and of the bits. They are the same on every processor, with every implementation of the kernels. A change of any bits
# needs a new version (compute.NumericsVersion), under which TestFrozen -update writes a new file; this one is then removed.
# Under the same version -update adds results, and changes none.
`

func readFrozen(t *testing.T) *frozenFile {
	f := &frozenFile{path: filepath.Join("testdata", "bits", compute.NumericsVersion+".txt"), lines: map[string]string{}}
	text, err := os.ReadFile(f.path)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatalf("%v; numerics version %s has no file of bits: go test ./internal/suite/modeltest -run TestFrozen -update writes it", err, compute.NumericsVersion)
	}
	for line := range strings.Lines(string(text)) {
		if name, digests, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			if f.lines[name] != "" {
				t.Errorf("%s: %s stands twice", f.path, name)
			}
			f.lines[name] = digests
		}
	}
	return f
}

// check compares a result with its line, which it adds where there is none and add is set. It never changes a line.
func (f *frozenFile) check(name, in, out string, add bool) error {
	line, ok := f.lines[name]
	switch {
	case !ok && add:
		f.lines[name] = in + " " + out
		f.added++
	case !ok:
		return fmt.Errorf("%s: %s is not in the file; -update adds it", f.path, name)
	case !strings.HasPrefix(line, in+" "):
		return fmt.Errorf("%s: %s: the inputs changed, not the arithmetic: remove the line, and -update adds it", f.path, name)
	case line != in+" "+out:
		return fmt.Errorf("%s: %s: the bits changed: undo it, or give compute.NumericsVersion, which is %s, a new name", f.path, name, compute.NumericsVersion)
	}
	return nil
}

func (f *frozenFile) write(t *testing.T) {
	if f.added == 0 || t.Failed() {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, frozenHead, compute.NumericsVersion)
	for _, name := range slices.Sorted(maps.Keys(f.lines)) {
		fmt.Fprintln(&b, name, f.lines[name])
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFrozen compares results with the bits that the numerics version promises: the logits, keys and values of every
// golden and random model, weight type and cache type; draws; and kernels. The long run repeats all but the random models,
// which TestBits covers, with every implementation of the kernels.
func TestFrozen(t *testing.T) {
	f := readFrozen(t)
	defer kernel.Use(kernel.Implementation())
	names := map[string]bool{}
	for _, r := range frozenResults() {
		if names[r.name] {
			t.Errorf("%s: two results have this name", r.name)
		}
		names[r.name] = true
		t.Run(r.name, func(t *testing.T) {
			for k, kind := range kernel.Implementations() {
				if k > 0 && (!long || r.random) {
					return
				}
				kernel.Use(kind)
				in, out := newDigest(), newDigest()
				r.compute(t, in, out)
				if err := f.check(r.name, in.sum(), out.sum(), *update); err != nil {
					t.Fatalf("with the kernels %s: %v", kind, err)
				}
			}
		})
	}
	f.write(t)
	for _, name := range slices.Sorted(maps.Keys(f.lines)) {
		if !names[name] {
			t.Errorf("%s: no code gives %s: remove the line", f.path, name)
		}
	}
	files, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range files {
		if other.Name() != filepath.Base(f.path) {
			t.Errorf("testdata/bits/%s is not of numerics version %s: remove it", other.Name(), compute.NumericsVersion)
		}
	}
}

// TestFrozenFile expects a line to be added where none is, and never to be changed.
func TestFrozenFile(t *testing.T) {
	f := &frozenFile{lines: map[string]string{"known": "11 22"}}
	for _, c := range []struct {
		name, in, out string
		add, want     bool
	}{
		{"known", "11", "22", false, true},
		{"known", "11", "23", false, false},
		{"known", "11", "23", true, false},
		{"known", "12", "22", true, false},
		{"new", "11", "22", false, false},
		{"new", "11", "22", true, true},
		{"new", "11", "22", false, true},
	} {
		if err := f.check(c.name, c.in, c.out, c.add); (err == nil) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if f.lines["known"] != "11 22" || f.added != 1 {
		t.Errorf("lines %v, %d added", f.lines, f.added)
	}
}
