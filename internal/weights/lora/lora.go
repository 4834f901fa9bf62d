// Package lora reads low-rank adapters (Hu et al. 2021): GGUF files in llama.cpp's layout and folders of PEFT. It gives their
// factors by the names that the base's tensors have in GGUF, and merges them into the base.
package lora

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

const (
	// MaxRank is the largest rank of a pair.
	MaxRank = 1024
	// MaxPairs is the most pairs of an adapter.
	MaxPairs = 1 << 14
	// MaxInvocation is the most tokens of an invocation.
	MaxInvocation = 1024

	table = "token_embd.weight"
)

// Adapter is an adapter as its file has it. It must be closed; the bytes of its pairs must not be used afterwards.
type Adapter struct {
	Path  string
	Name  string // general.name, or the name of the file or folder
	Arch  string // of the base; "": the file does not say
	PEFT  bool   // it is a folder of PEFT
	Pairs []Pair // sorted by name

	// Invocation is the tokens from whose last place in a prompt on the adapter works (activated LoRA, Greenewald et al. 2025);
	// empty: it works everywhere.
	Invocation []token.ID

	closers []io.Closer
	peft    *peft
}

// Pair is the factors of what is added to one tensor of the base: Scale * B * A.
type Pair struct {
	Name  string      // of the base's tensor
	A     tensor.View // [rank, in], of a stack [experts, rank, in]; of the embedding table [vocabulary, rank]
	B     tensor.View // [out, rank], of a stack [experts, out, rank]
	Scale float64
}

// Rank returns the rank of the pair.
func (p *Pair) Rank() int { return p.B.Shape[len(p.B.Shape)-1] }

// Lookup reports whether the pair adds to the rows of the embedding table, not to products with a matrix.
func (p *Pair) Lookup() bool { return p.Name == table }

// Is reports whether a path is a folder of PEFT or a GGUF file whose general.type is adapter.
func Is(path string) bool {
	if isPEFT(path) {
		return true
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return false
	}
	f, err := gguf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	kind, _, _ := f.String("general.type")
	return kind == "adapter"
}

// Read reads an adapter by itself. The names of a folder's pairs are those of PEFT's modules until [Adapter.Fit].
func Read(path string) (*Adapter, error) {
	if isPEFT(path) {
		return readPEFT(path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	a, err := FromGGUF(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lora: %s: %w", path, err), f.Close())
	}
	a.Path, a.closers = path, []io.Closer{f}
	if a.Name == "" {
		a.Name = strings.TrimSuffix(filepath.Base(path), ".gguf")
	}
	return a, nil
}

// Open reads the adapter of a base: [Read], then [Adapter.Fit].
func Open(path string, base *gguf.File) (*Adapter, error) {
	a, err := Read(path)
	if err != nil {
		return nil, err
	}
	if err := a.Fit(base); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Close closes the adapter's files.
func (a *Adapter) Close() error {
	var all []error
	for _, c := range a.closers {
		all = append(all, c.Close())
	}
	a.closers = nil
	return errors.Join(all...)
}

// Bytes returns the bytes of the factors.
func (a *Adapter) Bytes() (n int) {
	for i := range a.Pairs {
		n += a.Pairs[i].A.Bytes() + a.Pairs[i].B.Bytes()
	}
	return n
}

// Ranks returns the least and the largest rank.
func (a *Adapter) Ranks() (low, high int) {
	for i := range a.Pairs {
		r := a.Pairs[i].Rank()
		if low == 0 || r < low {
			low = r
		}
		high = max(high, r)
	}
	return low, high
}

// Digest names all that the adapter adds: the names, types, shapes, scales and bytes of its pairs, and its invocation.
func (a *Adapter) Digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	text := func(s string) {
		binary.Write(h, binary.LittleEndian, uint32(len(s))) // a hash has no error
		io.WriteString(h, s)
	}
	for i := range a.Pairs {
		p := &a.Pairs[i]
		text(p.Name)
		binary.Write(h, binary.LittleEndian, math.Float64bits(p.Scale))
		for _, v := range []tensor.View{p.A, p.B} {
			text(fmt.Sprint(v.Type, v.Shape))
			h.Write(v.Data)
		}
	}
	text(fmt.Sprint(a.Invocation))
	h.Sum(sum[:0])
	return sum
}

// Fit compares the adapter with its base: the architecture, the names, and the shapes. The names of a folder's pairs become those of
// GGUF. Nothing is allocated before all pairs were compared, but for the factors that a folder has in parts. An adapter of another base
// is refused by the name of what does not fit.
func (a *Adapter) Fit(base *gguf.File) error {
	arch, _, err := base.String("general.architecture")
	if err != nil {
		return err
	}
	if a.Arch != "" && a.Arch != arch {
		return a.fail("it was made for architecture %q; the base is %q", a.Arch, arch)
	}
	if a.peft != nil {
		if err := a.translate(base); err != nil {
			return err
		}
	}
	for i := range a.Pairs {
		if err := a.fits(&a.Pairs[i], base); err != nil {
			return err
		}
	}
	return nil
}

func (a *Adapter) fail(format string, args ...any) error {
	return fmt.Errorf("lora: %s: %s", a.Path, fmt.Sprintf(format, args...))
}

// fits compares a pair with its tensor.
func (a *Adapter) fits(p *Pair, base *gguf.File) error {
	t, ok := base.Tensor(p.Name)
	if !ok {
		return a.fail("%s: the base has no such tensor: it is another model, or its head is its embedding table", tensor.Label(p.Name))
	}
	if len(t.Shape) != 2 && len(t.Shape) != 3 {
		return a.fail("%s: the base's tensor has shape %v; adapters add to matrices", tensor.Label(p.Name), t.Shape)
	}
	out, in := t.Shape[len(t.Shape)-2], t.Shape[len(t.Shape)-1]
	wantA, wantB := []int{p.Rank(), in}, []int{out, p.Rank()}
	if p.Lookup() {
		wantA, wantB = []int{out, p.Rank()}, []int{in, p.Rank()}
	}
	if len(t.Shape) == 3 {
		wantA, wantB = append([]int{t.Shape[0]}, wantA...), append([]int{t.Shape[0]}, wantB...)
	}
	if !slices.Equal(p.A.Shape, wantA) || !slices.Equal(p.B.Shape, wantB) {
		return a.fail("%s: A has shape %v and B %v; the base's %v asks for %v and %v: it is another model, or the factors are turned",
			tensor.Label(p.Name), p.A.Shape, p.B.Shape, t.Shape, wantA, wantB)
	}
	return nil
}

// check compares what the two factors of a pair say of themselves.
func (p *Pair) check() error {
	for _, v := range []tensor.View{p.A, p.B} {
		if len(v.Shape) != 2 && len(v.Shape) != 3 {
			return fmt.Errorf("%s: shape is %v; a factor has 2 dimensions, of a stack 3", tensor.Label(v.Name), v.Shape)
		}
		if _, ok := tensor.CodecOf(v.Type); !ok {
			return fmt.Errorf("%s: type %v is not supported; use F32, F16 or BF16", tensor.Label(v.Name), v.Type)
		}
	}
	if len(p.A.Shape) != len(p.B.Shape) {
		return fmt.Errorf("%s: shapes are %v and %v; both factors must be matrices, or both stacks", tensor.Label(p.Name), p.A.Shape, p.B.Shape)
	}
	if r := p.Rank(); r > MaxRank {
		return fmt.Errorf("%s: rank is %d; it must be 1 to %d", tensor.Label(p.Name), r, MaxRank)
	}
	if math.IsNaN(p.Scale) || math.Abs(p.Scale) > 1e6 {
		return fmt.Errorf("%s: scale is %v; it must be within ±1e6", tensor.Label(p.Name), p.Scale)
	}
	return nil
}

// sorted orders the pairs by name and refuses two of one name.
func (a *Adapter) sorted() error {
	slices.SortFunc(a.Pairs, func(x, y Pair) int { return strings.Compare(x.Name, y.Name) })
	for i := 1; i < len(a.Pairs); i++ {
		if a.Pairs[i].Name == a.Pairs[i-1].Name {
			return fmt.Errorf("%s: two pairs are for this tensor", tensor.Label(a.Pairs[i].Name))
		}
	}
	return nil
}
