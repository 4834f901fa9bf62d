package grove_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/model/synthetic"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// renamed opens the file of an architecture as one of another, with so many of its layers.
func renamed(t *testing.T, spec synthetic.Spec, as string, layers int, o grove.Options) *grove.Model {
	t.Helper()
	spec.Vocabulary, spec.Vocab, spec.Context = true, 300, 128
	metadata, tensors, err := spec.Parts()
	if err != nil {
		t.Fatal(err)
	}
	for i, kv := range metadata {
		metadata[i].Key = strings.Replace(kv.Key, spec.Arch+".", as+".", 1)
		switch metadata[i].Key {
		case "general.architecture":
			metadata[i].Value = gguf.Of(as)
		case as + ".block_count":
			metadata[i].Value = gguf.Of(uint32(layers))
		case as + ".attention.causal":
			metadata[i].Value = gguf.Of(as != "eurobert")
		case as + ".pooling_type":
			metadata[i].Value = gguf.Of(uint32(math.MaxUint32))
		}
	}
	tensors = slices.DeleteFunc(tensors, func(v tensor.View) bool { return strings.HasPrefix(v.Name, "blk.2.") && layers < 3 })
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenBytes(b.Bytes(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestReadings reads states of chosen layers and tokens under both masks, and compares bits with models that give these by themselves: EuroBERT's file is a
// decoder's whose tokens see each other, and an exit is a model of fewer layers.
func TestReadings(t *testing.T) {
	const text = "func main() { println(1) } and more, longer than a step of the decoder that sees what is before"
	spec := synthetic.Spec{Arch: "eurobert", Layers: 3}
	encoder := renamed(t, spec, "eurobert", 3, grove.Options{})
	decoder := renamed(t, spec, "exaone", 3, grove.Options{CacheType: "f32"})
	chunks := renamed(t, spec, "exaone", 3, grove.Options{CacheType: "f32", Chunk: 16})
	short := renamed(t, spec, "exaone", 2, grove.Options{CacheType: "f32"})
	read := func(m *grove.Model, o grove.EmbedOptions) [][]float32 {
		t.Helper()
		o.Raw = true
		ids, err := m.Tokenize(text, false, false)
		if err != nil {
			t.Fatal(err)
		}
		if o.Pooling == "" {
			o.Pooling = "none"
		}
		rows, err := m.EmbedIDs(context.Background(), ids, o, true)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	equal := func(what string, a, b [][]float32) {
		t.Helper()
		if !slices.EqualFunc(a, b, func(a, b []float32) bool { return slices.Equal(a, b) }) {
			t.Errorf("%s: the states differ", what)
		}
	}
	type o = grove.EmbedOptions
	equal("full of a decoder", read(decoder, o{Mask: "full"}), read(encoder, o{}))
	equal("causal of an encoder", read(encoder, o{Mask: "causal"}), read(decoder, o{}))
	equal("causal in chunks", read(chunks, o{Layers: []int{0, 1}}), read(decoder, o{Layers: []int{1, 0, -2}, Mask: "causal"}))
	for _, mask := range []string{"causal:0..last", "causal:first..last", "causal:1,0,-1"} {
		equal(mask, read(decoder, o{Mask: mask}), read(decoder, o{}))
		equal(mask+" of an encoder", read(encoder, o{Mask: mask}), read(decoder, o{}))
	}
	equal("full in all layers", read(decoder, o{Mask: "full:0..1,causal:2"}), read(encoder, o{Mask: "causal:last"}))
	equal("full first", read(decoder, o{Mask: "full:0", Layers: []int{0}}), read(encoder, o{Layers: []int{0}}))
	equal("causal first", read(decoder, o{Mask: "full:1..2", Layers: []int{0}}), read(decoder, o{Layers: []int{0}}))
	equal("full first, exit", read(decoder, o{Mask: "full:0..1", Exit: 2}), read(short, o{Mask: "full"}))
	if a, b, c := read(decoder, o{Mask: "full:0..1"}), read(decoder, o{}), read(encoder, o{}); slices.Equal(a[0], b[0]) || slices.Equal(a[0], c[0]) {
		t.Error("a mask of some layers is that of all")
	}
	equal("an exit", read(decoder, o{Exit: 2}), read(short, o{}))
	equal("an exit of all", read(decoder, o{Exit: 3}), read(decoder, o{}))
	equal("an exit that sees all", read(decoder, o{Exit: 2, Mask: "full"}), read(short, o{Mask: "full"}))
	equal("a layer", read(decoder, o{Layers: []int{1}}), read(short, o{Layers: []int{-1}}))
	if a, b := read(decoder, o{Mask: "full"}), read(decoder, o{}); slices.Equal(a[0], b[0]) {
		t.Error("the first token sees no more with a full mask")
	}
	one, two, both := read(decoder, o{Layers: []int{0}}), read(decoder, o{Layers: []int{2}}), read(decoder, o{Layers: []int{0, 2}})
	for i, row := range both {
		for j, v := range row {
			if want := (float64(one[i][j]) + float64(two[i][j])) / 2; !(math.Abs(float64(v)-want) <= 1e-6*(1+math.Abs(want))) {
				t.Fatalf("token %d, value %d of the mean of layers is %v, want %v", i, j, v, want)
			}
		}
	}
	all := read(decoder, o{})
	equal("the last but one", read(decoder, o{Tokens: []int{-2}, Pooling: "last"}), all[len(all)-2:len(all)-1])
	equal("the first chosen", read(decoder, o{Tokens: []int{7, 3}, Pooling: "cls"}), all[3:4])
	equal("some", read(decoder, o{Tokens: []int{7, 3, 3}}), [][]float32{all[3], all[7]})
	mean := read(decoder, o{Tokens: []int{3, 7}, Pooling: "mean"})[0]
	for j, v := range mean {
		if want := (float64(all[3][j]) + float64(all[7][j])) / 2; !(math.Abs(float64(v)-want) <= 1e-6*(1+math.Abs(want))) {
			t.Fatalf("value %d of the mean of tokens is %v, want %v", j, v, want)
		}
	}
	equal("dimensions", read(decoder, o{Dimensions: 8, Tokens: []int{0}}), [][]float32{all[0][:8]})
	cut, err := decoder.Embed(context.Background(), text, o{Dimensions: 8})
	var length float64
	for _, v := range cut {
		length += float64(v) * float64(v)
	}
	if err != nil || len(cut) != 8 || !(math.Abs(length-1) < 1e-5) {
		t.Errorf("%d dimensions of length %v, %v", len(cut), math.Sqrt(length), err)
	}
	for _, c := range []struct {
		o    o
		want string
	}{
		{o{Layers: []int{3}}, "grove: layer 3: there are 3, from 0"}, {o{Layers: []int{-4}}, "grove: layer -4: there are 3, from 0"},
		{o{Layers: []int{}}, "grove: no layer is chosen"}, {o{Tokens: []int{}}, "grove: no token is chosen"}, {o{Tokens: []int{1000}}, "grove: token 1000: there are"},
		{o{Exit: 4}, "grove: an exit behind 4 layers; it must be 1 to 3"}, {o{Exit: 1, Layers: []int{0}}, "without layers that are read"},
		{o{Mask: "most"}, `grove: mask "most" is not known; causal, full, and masks of layers such as`},
		{o{Mask: "full:0..3"}, `mask "full:0..3": 0..3: there are 3 layers, from 0`}, {o{Mask: "full:2..0"}, "2..0: there are 3 layers"}, {o{Mask: "full:-4"}, "-4: there are"},
		{o{Mask: "full:"}, `"" is no layer and no range such as 4..7`}, {o{Mask: "0,full:1"}, "is not known; causal, full"}, {o{Mask: "some:1"}, "is not known; causal, full"},
		{o{Mask: "full:0..1,causal:1"}, "a layer of 1 has two masks"}, {o{Mask: "full:1,1"}, "two masks"}, {o{Mask: strings.Repeat("full:", 99)}, "is no layer"}, {o{Dimensions: 65}, "grove: dimensions is 65; it must be from 1 to 64"},
		{o{Dimensions: -1}, "grove: dimensions is -1; it must be from 1 to 64"},
	} {
		option := new(grove.OptionError)
		if _, err := decoder.Embed(context.Background(), text, c.o); !errors.As(err, &option) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
	if _, err := chunks.Embed(context.Background(), text, o{Mask: "full"}); !errors.Is(err, grove.ErrContext) || !strings.Contains(err.Error(), "tokens are read in one step, which has 16 at most") {
		t.Errorf("a text of several steps: %v", err)
	}
}
