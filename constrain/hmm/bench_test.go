package hmm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkScore scores 50,000 tokens by 64 hidden states, which a mask of one edge costs.
func BenchmarkScore(b *testing.B) {
	texts := make([]string, 50_000)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	v := words(b, true, texts...)
	a, err := Compile(v, all{}, randomModel(rand.New(rand.NewPCG(1, 2)), 64, v.Size()), 64)
	if err != nil {
		b.Fatal(err)
	}
	s := NewStage(a)
	for b.Loop() {
		s.nodes[0].scores = nil
		s.Prepare(0)
	}
}
