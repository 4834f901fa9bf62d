package model

import (
	"math"

	"grove/internal/text/token"
)

// Renoise is how a model fills canvases that begin as random tokens (DiffusionGemma, Google 2026): there is no mask, and what a pass does not accept is drawn
// anew. The rows of a canvas see each other and the text before it, of which the rows see earlier ones alone. The numbers are the file's, and those of the
// published model where it has none. It is read-only.
type Renoise struct {
	Canvas           int     // tokens of a canvas: diffusion.canvas_length
	Steps            int     // passes of a canvas at most: diffusion.eb_max_steps
	Coldest, Hottest float64 // temperatures of the last pass and, nearly, of the first: diffusion.eb_t_min, diffusion.eb_t_max
	Bound            float64 // of the sum of the entropies that were accepted before: diffusion.eb_entropy_bound
	Stable           int     // passes for which the likeliest tokens stay the same before the end: diffusion.eb_stability_threshold
	Sure             float64 // the mean entropy below which they are taken then: diffusion.eb_confidence_threshold
}

// RenoisedDiffusion says that the model fills canvases of random tokens, by keys that begin with "diffusion.".
func (l *Loader) RenoisedDiffusion() {
	if l.BoolOr("attention.causal", false) {
		l.fail("%s is true; the tokens of a canvas see each other", l.key("attention.causal"))
	}
	if _, ok := l.file.Lookup("diffusion.canvas_length"); !ok {
		l.fail("diffusion.canvas_length is missing")
	}
	r := &Renoise{
		Canvas: l.diffusionCount("canvas_length", 1, 1, l.info.Context), Steps: l.diffusionCount("eb_max_steps", 48, 1, 1<<16),
		Coldest: l.diffusionNumber("eb_t_min", 0.4, 1e-3, 100), Hottest: l.diffusionNumber("eb_t_max", 0.8, 1e-3, 100),
		Bound: l.diffusionNumber("eb_entropy_bound", 0.1, 0, 1e6), Stable: l.diffusionCount("eb_stability_threshold", 1, 0, 1<<16),
		Sure: l.diffusionNumber("eb_confidence_threshold", 0.005, 0, 100),
	}
	if r.Hottest < r.Coldest {
		l.fail("diffusion.eb_t_max is %g; it must be diffusion.eb_t_min (%g) or more", r.Hottest, r.Coldest)
	}
	l.info.Diffusion, l.info.Encoder = &Diffusion{Mask: token.None, Renoise: r}, false
}

// diffusionCount returns the number diffusion.name, from low to high, or other where it is missing.
func (l *Loader) diffusionCount(name string, other, low, high int) int {
	if n, ok := l.countOf("diffusion."+name, low, high); ok {
		return n
	}
	return other
}

// diffusionNumber is [Loader.diffusionCount] for a float of single precision, which is read as the decimal number that it was written as.
func (l *Loader) diffusionNumber(name string, other, low, high float64) float64 {
	switch v, ok, err := l.file.Float("diffusion." + name); {
	case err != nil:
		l.wrap(err)
	case ok && !(v >= low && v <= high):
		l.fail("diffusion.%s is %v; it must be %g to %g", name, v, low, high)
	case ok:
		return math.Round(v*1e6) / 1e6
	}
	return other
}
