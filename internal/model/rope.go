package model

import (
	"slices"

	"grove/internal/compute"
	"grove/internal/compute/rotary"
)

// Rope reads the rotary settings and the factors of tensor rope_freqs, and prepares the rotation. neox chooses the
// pairs of [rotary.Config].
func (l *Loader) Rope(s Hyperparameters, neox bool) *compute.Rope {
	return l.NewRope(l.RopeConfig(s, neox))
}

// RopeConfig reads the rotary settings that [Loader.Rope] prepares, for architectures that change some.
func (l *Loader) RopeConfig(s Hyperparameters, neox bool) rotary.Config {
	c := rotary.Config{
		Dims: l.CountOr("rope.dimension_count", s.KeySize, 1, max(1, s.KeySize)),
		Base: l.FloatOr("rope.freq_base", 10000),
		NeoX: neox,
	}
	c.Context = l.CountOr("rope.scaling.original_context_length", l.info.Context, 1, maxContext)
	c.Factor = l.FloatOr("rope.scaling.factor", 1)
	c.AttentionFactor = l.FloatOr("rope.scaling.attn_factor", 1)
	c.BetaFast, c.BetaSlow = l.FloatOr("rope.scaling.yarn_beta_fast", 32), l.FloatOr("rope.scaling.yarn_beta_slow", 1)
	c.LowFreqFactor, c.HighFreqFactor = l.FloatOr("rope.scaling.low_freq_factor", 1), l.FloatOr("rope.scaling.high_freq_factor", 4)
	switch scaling := l.TextOr("rope.scaling.type", ""); {
	case scaling == "none":
	case scaling == "" && c.Factor != 1:
		c.Scaling = rotary.Linear
	default:
		c.Scaling = rotary.Scaling(scaling)
	}
	switch {
	case l.Has(longFactors) || l.Has(shortFactors):
		l.longRope(&c)
	case l.Has("rope_freqs.weight"):
		c.Factors = l.Vector("rope_freqs.weight", c.Dims/2).Floats()
	}
	return c
}

// Sections reports whether the file gives sections of pairs (M-RoPE, Qwen2-VL 2024), of which each rotates by a position of
// its own in an image. A text has one position, so its heads rotate by halves.
func (l *Loader) Sections(s Hyperparameters) bool {
	v, ok := l.file.Lookup(l.key("rope.dimension_sections"))
	if !ok {
		return false
	}
	n, _ := v.Any().([]int32)
	if unsigned, ok := v.Any().([]uint32); ok {
		for _, x := range unsigned {
			n = append(n, int32(min(x, maxHeads+1)))
		}
	}
	if len(n) != 4 || slices.Min(n) < 0 || slices.Max(n) > maxHeads {
		l.fail("%s is %v; it must be 4 numbers from 0 to %d", l.key("rope.dimension_sections"), v.Any(), maxHeads)
		return false
	}
	pairs := l.CountOr("rope.dimension_count", s.KeySize, 1, max(1, s.KeySize)) / 2
	if n[0] == 0 || n[1] == 0 {
		return false
	}
	if int(n[0]+n[1]+n[2]) < pairs {
		l.fail("%s is %v; the first three must hold the %d pairs of a head", l.key("rope.dimension_sections"), n, pairs)
	}
	return true
}

// Names of the two sets of factors of a long rope.
const (
	longFactors  = "rope_factors_long.weight"
	shortFactors = "rope_factors_short.weight"
)

// longRope chooses between the two sets of factors (LongRoPE, Ding et al. 2024), once, by the context that the model
// is opened for: a text that went from one set to the other would need its keys rotated again. With the short
// factors the context is at most the one that they were made for.
func (l *Loader) longRope(c *rotary.Config) {
	if t := l.TextOr("rope.scaling.type", string(rotary.Long)); t != string(rotary.Long) && (t != string(rotary.Linear) || c.Factor != 1) {
		l.fail("%s is %q and the file has tensor %q; the type must be longrope", l.key("rope.scaling.type"), t, longFactors)
	}
	l.Need(longFactors, shortFactors)
	long, short := l.Vector(longFactors, c.Dims/2).Floats(), l.Vector(shortFactors, c.Dims/2).Floats()
	if !slices.Equal(long, short) { // equal sets are no choice, and files of MiniCPM 3 lack the context
		c.Context = l.Count("rope.scaling.original_context_length", 1, maxContext)
	}
	c.Scaling, c.Factor = rotary.Long, float64(l.info.Context)/float64(max(1, c.Context))
	c.AttentionFactor = l.FloatOr("rope.scaling.attn_factor", 0)
	if l.context > c.Context {
		c.Factors = long
		l.rotary = longFactors
		return
	}
	c.Factors = short
	l.info.Context = min(l.info.Context, c.Context)
}

// NewRope prepares a rotation.
func (l *Loader) NewRope(c rotary.Config) *compute.Rope {
	if l.err != nil {
		return nil
	}
	r, err := rotary.New(c)
	if err != nil {
		l.fail("%v", err)
	}
	return r
}
