package growtest

import (
	"hash/fnv"
	"math"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// Skipping is a model of n tokens whose next token has probability p, by a text's last three tokens and its length. Each layer that a row passes over
// changes it at one of ten places, unless it is a layer of free.
func Skipping(n, layers int, free forest.Layers, p float64) *Model {
	return &Model{
		Dims: method.Size{Vocabulary: n, Layers: layers, Width: 8, Context: 4000, Rows: 16},
		Next: func(path []token.ID, r forest.Row) []float32 {
			h := fnv.New64a()
			for _, id := range path[max(0, len(path)-3):] {
				h.Write([]byte{byte(id)})
			}
			h.Write([]byte{byte(len(path)), byte(len(path) >> 8)})
			next := int(h.Sum64() >> 20 % uint64(n))
			for l := range layers {
				h.Write([]byte{byte(l)})
				if r.Skip.Has(l) && !free.Has(l) && h.Sum64()>>20%10 == 0 {
					next = (next + 1) % n
				}
			}
			logits := make([]float32, n)
			for id := range logits {
				logits[id] = float32(math.Log((1 - p) / float64(n-1)))
			}
			logits[next] = float32(math.Log(p))
			return logits
		},
	}
}
