// Package capacity predicts what decoding costs on machines that are not here, by the bytes and the operations of a token: replicas of a model beside layers on
// several machines beside attention and feed-forward blocks on machines of their own (Step-3, 2025, section on attention and FFN disaggregation). It counts;
// it measures nothing.
package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"grove/internal/options"
)

// Shape is the size of a model, in weights and in values. An operation is a multiply-add.
type Shape struct {
	Name   string `json:"shape"`
	Layers int    `json:"layers"`
	Width  int    `json:"width"`
	Vocab  int    `json:"vocabulary"`
	Tied   bool   `json:"tied"` // the embedding is the head's matrix

	Attention int `json:"attention"` // weights of a layer's attention
	Cached    int `json:"cached"`    // values that a layer caches of a token
	Heads     int `json:"heads"`     // of queries
	Key       int `json:"key"`       // values of a key that a query meets
	Value     int `json:"value"`     // values of a value that it weighs

	Dense       int `json:"dense"`        // weights of the feed-forward block of a layer without experts
	DenseLayers int `json:"dense_layers"` // layers without experts
	Shared      int `json:"shared"`       // weights of a layer with experts that every token reads
	Experts     int `json:"experts"`      // of a layer
	Active      int `json:"active"`       // experts that a token reads
	Expert      int `json:"expert"`       // weights of one
}

// grouped returns a shape without experts, with heads of queries that share those of keys.
func grouped(name string, layers, width, ffn, heads, kv, size, vocab int, tied bool) Shape {
	return Shape{
		Name: name, Layers: layers, Width: width, Vocab: vocab, Tied: tied,
		Attention: 2*width*heads*size + 2*width*kv*size, Cached: 2 * kv * size, Heads: heads, Key: size, Value: size,
		Dense: 3 * width * ffn, DenseLayers: layers,
	}
}

// mixed is grouped with experts in place of the feed-forward blocks: n, of which a token reads so many.
func mixed(name string, layers, width, ffn, heads, kv, size, vocab, n, active int) Shape {
	s := grouped(name, layers, width, 0, heads, kv, size, vocab, false)
	s.DenseLayers, s.Experts, s.Active, s.Expert, s.Shared = 0, n, active, 3*width*ffn, width*n
	return s
}

// named are the shapes by name: those of grove bench make, and published ones.
var named = func() map[string]Shape {
	deepseek := Shape{ // latent attention in its absorbed form: all heads read one latent of 512 values and 64 rotated ones
		Name: "deepseek-v3", Layers: 61, Width: 7168, Vocab: 129280,
		Attention: 7168*1536 + 1536*128*192 + 7168*576 + 512*128*256 + 128*128*7168, Cached: 576, Heads: 128, Key: 576, Value: 512,
		Dense: 3 * 7168 * 18432, DenseLayers: 3, Shared: 3*7168*2048 + 7168*256, Experts: 256, Active: 8, Expert: 3 * 7168 * 2048,
	}
	step := Shape{ // multi-matrix factorization attention: one head of keys and values, queries through 2,048 values
		Name: "step-3", Layers: 61, Width: 7168, Vocab: 128815,
		Attention: 7168*2048 + 2048*64*256 + 2*7168*256 + 64*256*7168, Cached: 2 * 256, Heads: 64, Key: 256, Value: 256,
		Dense: 3 * 7168 * 18432, DenseLayers: 5, Shared: 3*7168*5120 + 7168*48, Experts: 48, Active: 3, Expert: 3 * 7168 * 5120,
	}
	all := map[string]Shape{}
	for _, s := range []Shape{
		grouped("0.5b", 24, 1280, 3584, 20, 5, 64, 32000, false), grouped("1b", 16, 2048, 8192, 32, 8, 64, 128256, true),
		grouped("7b", 32, 4096, 11008, 32, 32, 128, 32000, false), grouped("8b", 32, 4096, 14336, 32, 8, 128, 128256, false),
		grouped("70b", 80, 8192, 28672, 64, 8, 128, 128256, false), grouped("405b", 126, 16384, 53248, 128, 8, 128, 128256, false),
		mixed("30b-a3b", 48, 2048, 768, 32, 4, 128, 151936, 128, 8), mixed("235b-a22b", 94, 4096, 1536, 64, 4, 128, 151936, 128, 8),
		mixed("120b-a5b", 36, 2880, 2880, 64, 8, 64, 201088, 128, 4), deepseek, step,
	} {
		all[s.Name] = s
	}
	return all
}()

// Shapes returns the names of the shapes.
func Shapes() []string { return slices.Sorted(maps.Keys(named)) }

// Named returns the shape of a name.
func Named(name string) (Shape, error) {
	s, ok := named[strings.ToLower(name)]
	if !ok {
		return s, fmt.Errorf("capacity: there is no shape %.40q; these are: %s%s", name, strings.Join(Shapes(), ", "), options.NearHint(name, Shapes()))
	}
	return s, nil
}

// head returns the weights of the head.
func (s Shape) head() int { return s.Width * s.Vocab }

// feed returns the weights of the feed-forward blocks of all layers.
func (s Shape) feed() int {
	return s.DenseLayers*s.Dense + (s.Layers-s.DenseLayers)*(s.Shared+s.Experts*s.Expert)
}

// Weights returns the number of weights, and how many of them a token reads.
func (s Shape) Weights() (all, active int) {
	embedding := s.head()
	if s.Tied {
		embedding = 0
	}
	rest := s.Layers*s.Attention + s.head()
	read := s.DenseLayers*s.Dense + (s.Layers-s.DenseLayers)*(s.Shared+s.Active*s.Expert)
	return rest + embedding + s.feed(), rest + read
}

// touched returns how many of a layer's experts some rows read together, where each chooses its own by chance.
func (s Shape) touched(rows float64) float64 {
	if s.Experts == 0 {
		return 0
	}
	return float64(s.Experts) * (1 - math.Pow(1-float64(s.Active)/float64(s.Experts), rows))
}

// CacheValues returns the values of a token in the cache of all layers.
func (s Shape) CacheValues() int { return s.Layers * s.Cached }

// CacheOps returns the operations of a token for each token of its text.
func (s Shape) CacheOps() int { return s.Layers * s.Heads * (s.Key + s.Value) }
