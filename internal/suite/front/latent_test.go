package front_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
)

// TestLatentText: without blocks a text with latents has the tokens of an answer, constrained too. A block of noise, denoised by the caller, changes what follows, by its seed. What such
// a text cannot do is refused by name.
func TestLatentText(t *testing.T) {
	m, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{Parallel: 2}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	seed := uint64(5)
	r := grove.Request{Prompt: "func (f *File) ", MaxTokens: 20, Seed: &seed, IgnoreEnd: true, Constraint: &grove.Constraint{Regex: "[A-Za-z() {}\n\t]*"}}
	r.Sampling.Temperature = 1
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var want []token.ID
	for one, err := range g.Tokens() {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, one.ID)
	}
	width := m.Info().Width
	ask := func(seed uint64, rows int) (got []token.ID) {
		r.Seed = &seed
		x, err := m.NewLatentText(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if rows > 0 {
			block := &grove.LatentBlock{Latents: x.Noise(rows, width), Steps: 3, Velocity: func(dst, latent, state []float32, time float64) {
				for i := range dst {
					dst[i] = state[i] - latent[i]
				}
			}}
			if err := x.Think(t.Context(), block); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			d, err := x.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d.ID)
		}
		return got
	}
	if got := ask(5, 0); !slices.Equal(got, want) {
		t.Errorf("without blocks: %v, want %v", got, want)
	}
	one, again, other := ask(5, 4), ask(5, 4), ask(6, 4)
	if !slices.Equal(one, again) || slices.Equal(one, want) || slices.Equal(one, other) {
		t.Errorf("blocks: %v, again %v, another seed %v, none %v", one, again, other, want)
	}
	for what, change := range map[string]func(r *grove.Request){
		"a search is not supported": func(r *grove.Request) { r.Search = "best,n=2" }, "a session is not": func(r *grove.Request) { r.Session = "x" },
		"a method that drafts is not": func(r *grove.Request) { r.Method = "recycle" }, "likely tokens is not": func(r *grove.Request) { r.Top = 3 },
	} {
		r := r
		change(&r)
		var option *grove.OptionError
		if _, err := m.NewLatentText(t.Context(), r); !errors.As(err, &option) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
	canvas, _ := randomModel(t, synthetic.Spec{Arch: "llada"}, grove.Options{}, nil)
	if _, err := canvas.NewLatentText(t.Context(), grove.Request{Prompt: "x"}); err == nil || !strings.Contains(err.Error(), "llada fills a canvas by diffusion") {
		t.Errorf("a diffusion model: %v", err)
	}
}
