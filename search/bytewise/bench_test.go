package bytewise

import (
	"context"
	"os"
	"testing"

	"grove/internal/gopher"
	"grove/internal/text/token"
)

// uniform is a model without a preference.
type uniform []float64

// Probs implements [Model].
func (u uniform) Probs(_ context.Context, paths [][]token.ID) (all [][]float64, err error) {
	for range paths {
		all = append(all, u)
	}
	return all, nil
}

// BenchmarkNext measures a byte without the model's rows: the distribution of all symbols, and the covers behind a byte.
func BenchmarkNext(b *testing.B) {
	text := tokenizerOf(b, gopher.Model())
	v, err := New(text, text.Size())
	if err != nil {
		b.Fatal(err)
	}
	b.Log(v.size, len(v.trie))
	u := make(uniform, v.size)
	for i := range u {
		u[i] = 1 / float64(len(u))
	}
	source, err := os.ReadFile("view.go")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w := v.New(u, nil)
		for _, c := range source[:300] {
			if err := w.Push(c); err != nil {
				b.Fatal(err)
			}
			if _, err := w.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/300, "ns/byte")
}
