package front_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
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
	m, err := grove.OpenBytes(b.Bytes(), threaded(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// readingText is longer than a step of the decoder that reads 16 tokens at a time.
const readingText = "func main() { println(1) } and more, longer than a step of the decoder that sees what is before"

var readingSpec = synthetic.Spec{Arch: "eurobert", Layers: 3}

// readingDecoder returns a decoder of the weights that readings are of.
func readingDecoder(t *testing.T, layers, chunk int) *grove.Model {
	return renamed(t, readingSpec, "exaone", layers, grove.Options{CacheType: "f32", Chunk: chunk})
}

// TestReadings compares states that are read in one way with those that are read in another: by an encoder and decoders of the same weights.
func TestReadings(t *testing.T) {
	type o = grove.EmbedOptions
	type rows = [][]float32
	encoder := renamed(t, readingSpec, "eurobert", 3, grove.Options{})
	decoder, chunks, short := readingDecoder(t, 3, 0), readingDecoder(t, 3, 16), readingDecoder(t, 2, 0)
	read := func(m *grove.Model, o grove.EmbedOptions) rows {
		t.Helper()
		o.Raw = true
		ids, err := m.Tokenize(readingText, false, false)
		if err != nil {
			t.Fatal(err)
		}
		o.Pooling = cmp.Or(o.Pooling, "none")
		rows, err := m.EmbedIDs(context.Background(), ids, o, true)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	equal := func(a, b rows) bool { return slices.EqualFunc(a, b, slices.Equal[[]float32]) }
	differs := func(a, b rows) bool { return !slices.Equal(a[0], b[0]) }
	near := func(a, b rows) bool {
		return slices.EqualFunc(a, b, func(a, b []float32) bool {
			return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Abs(float64(a)-float64(b)) <= 1e-6*(1+math.Abs(float64(b))) })
		})
	}
	mean := func(a, b rows) rows {
		m := make(rows, len(a))
		for i := range a {
			for j := range a[i] {
				m[i] = append(m[i], float32((float64(a[i][j])+float64(b[i][j]))/2))
			}
		}
		return m
	}
	causal, full := read(decoder, o{}), read(encoder, o{})
	some := read(decoder, o{Mask: "full:0..1"})
	tests := []struct {
		name      string
		got, want rows
		holds     func(got, want rows) bool
	}{
		{"full of a decoder", read(decoder, o{Mask: "full"}), full, equal},
		{"full of a decoder, first token", read(decoder, o{Mask: "full"}), causal, differs},
		{"causal of an encoder", read(encoder, o{Mask: "causal"}), causal, equal},
		{"causal in chunks", read(chunks, o{Layers: []int{0, 1}}), read(decoder, o{Layers: []int{1, 0, -2}, Mask: "causal"}), equal},
		{"causal from 0 to the last", read(decoder, o{Mask: "causal:0..last"}), causal, equal},
		{"causal from the first to the last", read(decoder, o{Mask: "causal:first..last"}), causal, equal},
		{"causal in each layer", read(decoder, o{Mask: "causal:1,0,-1"}), causal, equal},
		{"causal of an encoder from 0 to the last", read(encoder, o{Mask: "causal:0..last"}), causal, equal},
		{"causal of an encoder from the first to the last", read(encoder, o{Mask: "causal:first..last"}), causal, equal},
		{"causal of an encoder in each layer", read(encoder, o{Mask: "causal:1,0,-1"}), causal, equal},
		{"full in all layers but the last", read(decoder, o{Mask: "full:0..1,causal:2"}), read(encoder, o{Mask: "causal:last"}), equal},
		{"full in the first layer", read(decoder, o{Mask: "full:0", Layers: []int{0}}), read(encoder, o{Layers: []int{0}}), equal},
		{"causal in the first layer", read(decoder, o{Mask: "full:1..2", Layers: []int{0}}), read(decoder, o{Layers: []int{0}}), equal},
		{"full in some layers, an exit", read(decoder, o{Mask: "full:0..1", Exit: 2}), read(short, o{Mask: "full"}), equal},
		{"full in some layers is not causal", some, causal, differs},
		{"full in some layers is not full", some, full, differs},
		{"an exit", read(decoder, o{Exit: 2}), read(short, o{}), equal},
		{"an exit behind all layers", read(decoder, o{Exit: 3}), causal, equal},
		{"an exit that sees all", read(decoder, o{Exit: 2, Mask: "full"}), read(short, o{Mask: "full"}), equal},
		{"a layer", read(decoder, o{Layers: []int{1}}), read(short, o{Layers: []int{-1}}), equal},
		{"the mean of layers", read(decoder, o{Layers: []int{0, 2}}), mean(read(decoder, o{Layers: []int{0}}), read(decoder, o{Layers: []int{2}})), near},
		{"the last but one", read(decoder, o{Tokens: []int{-2}, Pooling: "last"}), causal[len(causal)-2 : len(causal)-1], equal},
		{"the first chosen", read(decoder, o{Tokens: []int{7, 3}, Pooling: "cls"}), causal[3:4], equal},
		{"chosen tokens", read(decoder, o{Tokens: []int{7, 3, 3}}), rows{causal[3], causal[7]}, equal},
		{"the mean of tokens", read(decoder, o{Tokens: []int{3, 7}, Pooling: "mean"}), mean(causal[3:4], causal[7:8]), near},
		{"dimensions", read(decoder, o{Dimensions: 8, Tokens: []int{0}}), rows{causal[0][:8]}, equal},
	}
	for _, tt := range tests {
		if !tt.holds(tt.got, tt.want) {
			t.Errorf("%s: %d states that begin with %v, and %d with %v", tt.name, len(tt.got), tt.got[0][:3], len(tt.want), tt.want[0][:3])
		}
	}
}

// TestReadingLength holds that some dimensions of a vector have length 1 together.
func TestReadingLength(t *testing.T) {
	cut, err := readingDecoder(t, 3, 0).Embed(context.Background(), readingText, grove.EmbedOptions{Dimensions: 8})
	var length float64
	for _, v := range cut {
		length += float64(v) * float64(v)
	}
	if err != nil || len(cut) != 8 || !(math.Abs(length-1) < 1e-5) {
		t.Errorf("%d dimensions of length %v, %v", len(cut), math.Sqrt(length), err)
	}
}

// TestReadingsRefused expects options that make no sense for the model to be named.
func TestReadingsRefused(t *testing.T) {
	type o = grove.EmbedOptions
	decoder := readingDecoder(t, 3, 0)
	tests := []struct {
		name string
		o    o
		want string
	}{
		{"a layer behind the last", o{Layers: []int{3}}, "grove: layer 3: there are 3, from 0"},
		{"a layer before the first", o{Layers: []int{-4}}, "grove: layer -4: there are 3, from 0"},
		{"no layer", o{Layers: []int{}}, "grove: no layer is chosen"},
		{"no token", o{Tokens: []int{}}, "grove: no token is chosen"},
		{"a token behind the last", o{Tokens: []int{1000}}, "grove: token 1000: there are"},
		{"an exit behind the last layer", o{Exit: 4}, "grove: an exit behind 4 layers; it must be 1 to 3"},
		{"an exit and layers", o{Exit: 1, Layers: []int{0}}, "without layers that are read"},
		{"a mask that is not known", o{Mask: "most"}, `grove: mask "most" is not known; causal, full, and masks of layers such as`},
		{"a mask beyond the last layer", o{Mask: "full:0..3"}, `mask "full:0..3": 0..3: there are 3 layers, from 0`},
		{"a mask from high to low", o{Mask: "full:2..0"}, "2..0: there are 3 layers"},
		{"a mask before the first layer", o{Mask: "full:-4"}, "-4: there are"},
		{"a mask of nothing", o{Mask: "full:"}, `"" is no layer and no range such as 4..7`},
		{"a range without a mask", o{Mask: "0,full:1"}, "is not known; causal, full"},
		{"a mask of layers that is not known", o{Mask: "some:1"}, "is not known; causal, full"},
		{"two masks of a layer", o{Mask: "full:0..1,causal:1"}, "a layer of 1 has two masks"},
		{"a mask twice", o{Mask: "full:1,1"}, "two masks"},
		{"a mask without layers", o{Mask: strings.Repeat("full:", 99)}, "is no layer"},
		{"too many dimensions", o{Dimensions: 65}, "grove: dimensions is 65; it must be from 1 to 64"},
		{"negative dimensions", o{Dimensions: -1}, "grove: dimensions is -1; it must be from 1 to 64"},
	}
	for _, tt := range tests {
		option := new(grove.OptionError)
		if _, err := decoder.Embed(context.Background(), readingText, tt.o); !errors.As(err, &option) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	_, err := readingDecoder(t, 3, 16).Embed(context.Background(), readingText, o{Mask: "full"})
	if !errors.Is(err, grove.ErrContext) || !strings.Contains(err.Error(), "tokens are read in one step, which has 16 at most") {
		t.Errorf("a text of several steps: %v", err)
	}
}
