package gopher_test

import (
	"os"
	"testing"

	"grove"
	"grove/internal/gopher"
)

// TestAdapter scores a document of this repository that the adapter was not trained on: with it, a token costs less.
func TestAdapter(t *testing.T) {
	text, err := os.ReadFile("../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	m, err := grove.Open(gopher.Name, grove.Options{Context: 256, Parallel: 1, Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ids, err := m.Tokenize(string(text), false, false)
	if err != nil {
		t.Fatal(err)
	}
	nats := func() (sum float64) {
		n := 0
		for first := 0; first+256 <= min(len(ids), 2048); first += 256 {
			cut, at := ids[first:first+256], 0
			err := m.Logprobs(t.Context(), cut, func(row grove.LogprobRow) error {
				if at++; at < len(cut) {
					sum, n = sum-float64(row.Of(cut[at])), n+1
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return sum / float64(n)
	}
	before := nats()
	if _, err := m.LoadAdapter(grove.AdapterFile{Path: "testdata/adapter/prose.gguf", Scale: 1}); err != nil {
		t.Fatal(err)
	}
	after := nats()
	t.Logf("%.3f nats a token without the adapter, %.3f with it", before, after)
	if after > before-0.04 {
		t.Errorf("%.3f nats a token without the adapter, %.3f with it", before, after)
	}
}
