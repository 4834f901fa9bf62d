package bench

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/tensor"
)

// TestLayers holds what all layers predict to the model's own logits, and the ways to choose layers to what must hold of them.
func TestLayers(t *testing.T) {
	m := openGopher(t, tensor.F16)
	const size, chunks = 24, 4
	text, cutting := source(t), PerplexityOptions{Context: size, Chunks: chunks}
	for _, own := range []bool{false, true} {
		o := PatternTextOptions{PatternOptions: PatternOptions{Least: 1, Patterns: 100}, Own: own}
		r, err := m.Layers(t.Context(), text, cutting, o)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.FromGGUF(m.file)
		if err != nil {
			t.Fatal(err)
		}
		cut, err := cutText(tok, text, cutting)
		if err != nil {
			t.Fatal(err)
		}
		want, n := 0.0, 0
		for c := 1; c < chunks; c += 2 {
			for at, p := range directly(t, m, cut[c])[:size-1] {
				next := cut[c][at+1]
				if own {
					for id := range p {
						if p[id] > p[next] {
							next = token.ID(id)
						}
					}
				}
				if at >= size/2 {
					want, n = want-math.Log(p[next]), n+1
				}
			}
		}
		if want /= float64(n); r.Places != n || math.Abs(r.Full-want) > 1e-9 || r.Chunks != chunks || r.Own != own {
			t.Errorf("%d places of %v nats, want %d of %v: %+v", r.Places, r.Full, n, want, r)
		}
		for i, b := range r.Budgets {
			if b.Layers != r.Layers-1-i || !b.All || len(b.Set) != b.Layers || b.Oracle.Loss > min(b.Fixed.Loss, b.First.Loss, b.Best.Loss) ||
				b.Best.Loss > b.Random.Loss || own && b.Oracle.Kept < b.Fixed.Kept {
				t.Errorf("%+v", b)
			}
		}
		again, err := m.Layers(t.Context(), text, cutting, o)
		if err != nil {
			t.Fatal(err)
		}
		var first, second, table bytes.Buffer
		if r.WriteJSON(&first) != nil || again.WriteJSON(&second) != nil || first.String() != second.String() || r.WriteText(&table) != nil {
			t.Errorf("twice the same: %s%s", &first, &second)
		}
		if !strings.Contains(table.String(), "compared at 22 tokens") || !strings.Contains(first.String(), `"oracle":{"nats":`) {
			t.Errorf("%s%s", &table, &first)
		}
	}
}

// TestLayersWrong: options out of range are named, and a text that is too short.
func TestLayersWrong(t *testing.T) {
	m, err := OpenBytes(gopher.Name, gopher.Model(), Options{Threads: 1, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, c := range []struct {
		name, text string
		cut        PerplexityOptions
		o          PatternOptions
		want       string
		option     bool
	}{
		{"no patterns", source(t), PerplexityOptions{Context: 16}, PatternOptions{Least: 1}, "0 patterns; it must be from 1 to 65536", true},
		{"more layers than there are", source(t), PerplexityOptions{Context: 16}, PatternOptions{Least: 99, Patterns: 1}, "the fewest layers are 99", true},
		{"a chunk of 2 tokens", source(t), PerplexityOptions{Context: 2}, PatternOptions{Least: 1, Patterns: 1}, "a chunk of 2 tokens", true},
		{"one chunk", source(t), PerplexityOptions{Context: 16, Chunks: 1}, PatternOptions{Least: 1, Patterns: 1}, "the text has 1 chunk; two are needed", false},
		{"a short text", "x", PerplexityOptions{Context: 16}, PatternOptions{Least: 1, Patterns: 1}, "less than one chunk of 16", false},
		{"a chunk longer than the context", source(t), PerplexityOptions{Context: 128}, PatternOptions{Least: 1, Patterns: 1}, "context", false},
	} {
		_, err := m.Layers(t.Context(), c.text, c.cut, PatternTextOptions{PatternOptions: c.o})
		var option *grove.OptionError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &option) != c.option {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
