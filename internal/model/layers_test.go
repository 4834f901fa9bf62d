package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// layersOf reads the hyperparameters of a model of three layers, whose file has further keys.
func layersOf(t *testing.T, further ...gguf.KV) (*Loader, Hyperparameters, []Hyperparameters) {
	t.Helper()
	keys := []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of("x")},
		{Key: "x.block_count", Value: gguf.Of(uint32(3))},
		{Key: "x.embedding_length", Value: gguf.Of(uint32(64))},
		{Key: "x.context_length", Value: gguf.Of(uint32(128))},
	}
	table := tensor.View{Name: "token_embd.weight", Type: tensor.F32, Shape: []int{2, 64}, Data: make([]byte, 4*2*64)}
	var b bytes.Buffer
	if err := gguf.Write(&b, append(keys, further...), []tensor.View{table}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	t.Cleanup(pool.Close)
	l := newLoader(f, pool)
	s, layers := l.LayerHyperparameters()
	return l, s, layers
}

// TestLayerHyperparameters reads numbers that hold for all layers and numbers of each layer.
func TestLayerHyperparameters(t *testing.T) {
	one := func(key string, n uint32) gguf.KV { return gguf.KV{Key: "x." + key, Value: gguf.Of(n)} }
	each := func(key string, n ...uint32) gguf.KV { return gguf.KV{Key: "x." + key, Value: gguf.ArrayOf(n)} }
	tests := []struct {
		name               string
		keys               []gguf.KV
		heads, kvHeads, ff [3]int
		size               int
		want               string // the error; empty: none
	}{
		{"a number for all", []gguf.KV{one("attention.head_count", 4), one("attention.head_count_kv", 2), one("feed_forward_length", 96)},
			[3]int{4, 4, 4}, [3]int{2, 2, 2}, [3]int{96, 96, 96}, 16, ""},
		{"heads of keys missing", []gguf.KV{one("attention.head_count", 4)}, [3]int{4, 4, 4}, [3]int{4, 4, 4}, [3]int{}, 16, ""},
		{"numbers of each", []gguf.KV{each("attention.head_count", 4, 0, 8), each("attention.head_count_kv", 2, 0, 8), each("feed_forward_length", 0, 0, 96)},
			[3]int{4, 0, 8}, [3]int{2, 0, 8}, [3]int{0, 0, 96}, 8, ""},
		{"heads for all, heads of keys of each", []gguf.KV{one("attention.head_count", 4), each("attention.head_count_kv", 0, 2, 0)},
			[3]int{0, 4, 0}, [3]int{0, 2, 0}, [3]int{}, 16, ""},
		{"no attention", nil, [3]int{}, [3]int{}, [3]int{}, 64, ""},
		{"too few numbers", []gguf.KV{each("attention.head_count", 4, 4)}, [3]int{}, [3]int{}, [3]int{}, 0,
			"model: x.attention.head_count has 2 values; there are 3 layers"},
		{"too many numbers", []gguf.KV{each("feed_forward_length", 4, 4, 4, 4)}, [3]int{}, [3]int{}, [3]int{}, 0,
			"model: x.feed_forward_length has 4 values; there are 3 layers"},
		{"a number too large", []gguf.KV{each("feed_forward_length", 4, 4, 1<<18+1)}, [3]int{}, [3]int{}, [3]int{}, 0,
			"model: value 2 of x.feed_forward_length is 262145; it must be 0 to 262144"},
		{"heads of keys that do not divide", []gguf.KV{one("attention.head_count", 4), each("attention.head_count_kv", 2, 3, 2)}, [3]int{}, [3]int{}, [3]int{}, 0,
			"model: x.attention.head_count_kv is 3; it must divide head_count (4)"},
		{"words", []gguf.KV{{Key: "x.attention.head_count", Value: gguf.ArrayOf([]string{"a", "b", "c"})}}, [3]int{}, [3]int{}, [3]int{}, 0,
			`key "x.attention.head_count": want an array of integers, found [3]string`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			l, s, layers := layersOf(t, c.keys...)
			if c.want != "" {
				if l.err == nil || !strings.Contains(l.err.Error(), c.want) {
					t.Fatalf("error %v, want %s", l.err, c.want)
				}
				return
			}
			if l.err != nil {
				t.Fatal(l.err)
			}
			for i, h := range layers {
				if h.Heads != c.heads[i] || h.KVHeads != c.kvHeads[i] || h.FFN != c.ff[i] || h.KeySize != c.size || h.Width != 64 {
					t.Errorf("layer %d: %+v", i, h)
				}
				keep := kv.Layer{KVHeads: h.KVHeads, KeySize: c.size, ValueSize: c.size}
				if h.KVHeads == 0 {
					keep = kv.Layer{}
				}
				if got := fmt.Sprint(l.info.Layers[i]); got != fmt.Sprint(keep) {
					t.Errorf("layer %d keeps %s, want %v", i, got, keep)
				}
			}
			if s.Heads != slices.Max(c.heads[:]) || s.FFN != slices.Max(c.ff[:]) {
				t.Errorf("the largest: %+v", s)
			}
		})
	}
}

// TestLayerCounts reads a number that may be missing.
func TestLayerCounts(t *testing.T) {
	l, _, _ := layersOf(t)
	if got := l.LayerCountsOr("n", 7, 0, 9); !slices.Equal(got, []int{7, 7, 7}) || l.err != nil {
		t.Errorf("a missing number: %v, %v", got, l.err)
	}
	if l.LayerCounts("n", 0, 9); l.err == nil || l.err.Error() != "model: x.n is missing" {
		t.Errorf("error %v", l.err)
	}
}
