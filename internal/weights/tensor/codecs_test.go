package tensor

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCodecs holds what readers, kernels and the quantiser expect of every codec.
func TestCodecs(t *testing.T) {
	numbers, names := map[Type]bool{}, map[string]bool{}
	all := codecs[:]
	for i := range others {
		all = append(all, &others[i])
	}
	for _, c := range all {
		if numbers[c.Type] || names[c.Name] {
			t.Errorf("%s: the number %d or the name is not its own", c.Name, c.Type)
		}
		numbers[c.Type], names[c.Name] = true, true
		if c.Type.String() != c.Name {
			t.Errorf("%s: the type prints as %v", c.Name, c.Type)
		}
	}
	for _, c := range codecs {
		t.Run(c.Name, func(t *testing.T) {
			if c.Unpack == nil || c.Pack == nil {
				t.Fatal("a codec needs Unpack and Pack")
			}
			if !c.Quantised() {
				if c.Elems != 1 || c.Bytes != 2 && c.Bytes != 4 {
					t.Errorf("blocks of %d elements in %d bytes; a float type has 1 in 2 or 4", c.Elems, c.Bytes)
				}
				return
			}
			checkQuantised(t, c)
		})
	}
}

// TestGuide: the type of docs/adding/weight-type.md, whose code is that of q2_0_test.go, is a codec like the others.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("../../../docs/adding/weight-type.md"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("q2_0_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(guide), "```go\n")[1:]
	for i := range blocks {
		blocks[i], _, _ = strings.Cut(blocks[i], "```")
	}
	if got := strings.Join(blocks, "\n"); got != string(source) {
		t.Errorf("the guide's code is\n%s\nthat of the test\n%s", got, source)
	}
	checkQuantised(t, &q2_0)
}

func checkQuantised(t *testing.T, c *Codec) {
	if c.Elems == 0 || c.Elems%TermLen != 0 || c.Bytes > MaxBlock {
		t.Errorf("blocks of %d elements in %d bytes; want a multiple of %d in at most %d", c.Elems, c.Bytes, TermLen, MaxBlock)
	}
	size := 0
	for _, p := range c.Parts {
		if size += p.Bytes; p.Unit != 1 && p.Unit != 2 && p.Unit != 4 || p.Bytes%p.Unit != 0 {
			t.Errorf("a part of %d bytes is cut into units of %d; they have 1, 2 or 4", p.Bytes, p.Unit)
		}
	}
	if size != c.Bytes {
		t.Errorf("the parts have %d bytes, the block %d", size, c.Bytes)
	}
	if fallback, ok := CodecOf(c.Fallback); !ok || fallback.Elems >= c.Elems {
		t.Errorf("the fallback %v has no smaller blocks", c.Fallback)
	}
	checkOrder(t, c)
	checkTerms(t, c)
}

// checkOrder: Restore is the inverse of Reorder, whatever the bytes.
func checkOrder(t *testing.T, c *Codec) {
	if (c.Reorder == nil) != (c.Restore == nil) {
		t.Fatal("Reorder and Restore come together")
	}
	if c.Reorder == nil {
		return
	}
	rng := rand.New(rand.NewPCG(1, 2))
	src, dst, back := make([]byte, c.Bytes), make([]byte, c.Bytes), make([]byte, c.Bytes)
	for range 100 {
		for i := range src {
			src[i], dst[i], back[i] = byte(rng.Uint32()), 0xa5, 0x5a
		}
		c.Reorder(dst, src)
		if c.Restore(back, dst); !bytes.Equal(src, back) {
			t.Fatalf("Restore gives\n%x, want\n%x", back, src)
		}
	}
}

// checkTerms: the terms of a block say the same values as Unpack, but for the roundings of its float32 steps.
func checkTerms(t *testing.T, c *Codec) {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, c.Elems)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	b := make([]byte, c.Bytes)
	if !c.Pack(b, x) {
		t.Fatal("Pack refuses modest values")
	}
	c.Unpack(x, b)
	for s := range c.Elems / TermLen {
		term := Term{Scale: [2]int32{1, 1}}
		c.Term(&term, b, s)
		for i, q := range term.Q {
			got := float64(term.D) * float64(term.Scale[i/16]*int32(q))
			if term.HasOffsets {
				got += float64(term.DOffset) * float64(term.Offset[i/16])
			}
			if want := float64(x[TermLen*s+i]); got-want > 1e-5 || want-got > 1e-5 {
				t.Fatalf("weight %d of the block is %v as a term, %v as a value", TermLen*s+i, got, want)
			}
		}
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{
		"blk.0.attn_k.weight": "blk.0.attn_k.weight", "": `""`, "a b": `"a b"`, "a\nb": `"a\nb"`, "é": `"é"`,
		strings.Repeat("n", 101): `"` + strings.Repeat("n", 100) + `"`,
	} {
		if got := Label(name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
