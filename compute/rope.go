package compute

import (
	"fmt"
	"math"

	"grove/internal/kernel"
)

// RopeScaling names a way to stretch rotary positions beyond the trained context.
type RopeScaling string

// The scalings that are known.
const (
	RopePlain  RopeScaling = ""
	RopeLinear RopeScaling = "linear"   // Chen et al. 2023: positions divided by Factor
	RopeYaRN   RopeScaling = "yarn"     // Peng et al. 2023: by frequency, with a temperature
	RopeLlama3 RopeScaling = "llama3"   // Llama 3.1: by wavelength
	RopeLong   RopeScaling = "longrope" // Ding et al. 2024: by Factors, with a temperature
)

// RopeConfig describes the rotation of a model's heads.
type RopeConfig struct {
	Dims    int // values of a head that rotate, in pairs
	Base    float64
	NeoX    bool      // pairs are (i, i+Dims/2); otherwise (2i, 2i+1)
	Factors []float32 // one divisor for each pair's frequency, or nil

	Scaling RopeScaling
	Factor  float64 // how far positions stretch
	Context int     // the context that the model was trained on

	BetaFast, BetaSlow float64 // YaRN: rotations over Context; 0 means 32 and 1
	Fractional         bool    // YaRN: the ends of the mix are not rounded to whole pairs
	NoTemperature      bool    // YaRN: keys and queries are not scaled
	AttentionFactor    float64 // YaRN: multiplies the temperature, 0 means 1; LongRoPE: is it, 0 means that of the paper
	// Llama 3.
	LowFreqFactor, HighFreqFactor float64
}

// Rope is a prepared rotation: a frequency for each pair, and a factor on cosine and sine. It is read-only and
// safe for concurrent use.
type Rope struct {
	freq  []float64
	scale float64
	neox  bool
}

// NewRope prepares a rotation. It returns an error that names a setting out of range.
func NewRope(c RopeConfig) (*Rope, error) {
	if c.Dims < 2 || c.Dims%2 != 0 {
		return nil, fmt.Errorf("rope dimension count %d is not a positive even number", c.Dims)
	}
	if !(c.Base > 0) || math.IsInf(c.Base, 0) {
		return nil, fmt.Errorf("rope base %v is not a positive number", c.Base)
	}
	if c.Factors != nil && len(c.Factors) != c.Dims/2 {
		return nil, fmt.Errorf("%d rope factors for %d pairs", len(c.Factors), c.Dims/2)
	}
	if c.Scaling != RopePlain && (!(c.Factor > 0) || math.IsInf(c.Factor, 0)) {
		return nil, fmt.Errorf("rope scaling factor %v is not a positive number", c.Factor)
	}
	r := &Rope{freq: make([]float64, c.Dims/2), scale: 1, neox: c.NeoX}
	for i := range r.freq {
		r.freq[i] = kernel.Pow64(c.Base, -2*float64(i)/float64(c.Dims))
		if c.Factors != nil {
			if f := float64(c.Factors[i]); !(f > 0) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("rope factor %d is %v, not a positive number", i, f)
			}
			r.freq[i] /= float64(c.Factors[i])
		}
	}
	switch c.Scaling {
	case RopePlain:
	case RopeLinear:
		for i := range r.freq {
			r.freq[i] /= c.Factor
		}
	case RopeYaRN:
		return r, r.yarn(c)
	case RopeLlama3:
		return r, r.llama3(c)
	case RopeLong:
		return r, r.long(c)
	default:
		return nil, fmt.Errorf("rope scaling %q is not supported; linear, yarn, llama3 and longrope are", c.Scaling)
	}
	return r, nil
}

// yarn keeps the pairs that turn often within the trained context, stretches those that turn seldom, and mixes
// the two for those in between. Queries and keys get a temperature (YaRN, sections 3.2 to 3.4).
func (r *Rope) yarn(c RopeConfig) error {
	if c.Context < 1 {
		return fmt.Errorf("yarn rope scaling needs the original context length")
	}
	if c.BetaFast == 0 {
		c.BetaFast = 32
	}
	if c.BetaSlow == 0 {
		c.BetaSlow = 1
	}
	if c.AttentionFactor == 0 {
		c.AttentionFactor = 1
	}
	if !(c.Base > 1) {
		return fmt.Errorf("yarn rope scaling needs a base above 1, not %v", c.Base)
	}
	if !(c.BetaSlow > 0) || !(c.BetaFast >= c.BetaSlow) || !(c.AttentionFactor > 0) {
		return fmt.Errorf("yarn rope scaling needs 0 < slow <= fast betas and a positive attention factor, not %v, %v and %v",
			c.BetaSlow, c.BetaFast, c.AttentionFactor)
	}
	// pair is the (fractional) pair that turns n times within the trained context.
	pair := func(n float64) float64 {
		return float64(c.Dims) * kernel.Log64(float64(c.Context)/(n*2*math.Pi)) / (2 * kernel.Log64(c.Base))
	}
	low, high := pair(c.BetaFast), pair(c.BetaSlow)
	if !c.Fractional {
		low, high = max(0, math.Floor(low)), min(float64(c.Dims-1), math.Ceil(high))
	}
	for i := range r.freq {
		keep := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
		stretched := r.freq[i] / c.Factor
		r.freq[i] = float64(stretched*(1-keep)) + float64(r.freq[i]*keep)
	}
	if !c.NoTemperature {
		r.scale = c.AttentionFactor * YaRNTemperature(c.Factor, 0.1)
	}
	return nil
}

// YaRNTemperature returns 1 + multiplier * ln(factor), the factor on queries and on keys that makes up for
// positions stretched by factor; YaRN's own multiplier is 0.1.
func YaRNTemperature(factor, multiplier float64) float64 {
	return 1 + float64(multiplier*kernel.Log64(factor))
}

// llama3 stretches the pairs with wavelengths beyond the trained context by the whole factor, keeps those with
// short wavelengths, and mixes the two for those in between.
func (r *Rope) llama3(c RopeConfig) error {
	if c.Context < 1 || !(c.LowFreqFactor > 0) || !(c.HighFreqFactor > c.LowFreqFactor) {
		return fmt.Errorf("llama3 rope scaling needs the original context length and 0 < low < high frequency factors, not %d, %v, %v",
			c.Context, c.LowFreqFactor, c.HighFreqFactor)
	}
	for i, f := range r.freq {
		turns := float64(c.Context) * f / (2 * math.Pi)
		mix := min(1, max(0, (turns-c.LowFreqFactor)/(c.HighFreqFactor-c.LowFreqFactor)))
		r.freq[i] = float64((1-mix)*(f/c.Factor)) + float64(mix*f)
	}
	return nil
}

// long sets the temperature of LongRoPE. The frequencies have their factors already.
func (r *Rope) long(c RopeConfig) error {
	if c.Context < 2 || c.Factors == nil || !(c.AttentionFactor >= 0) {
		return fmt.Errorf("longrope scaling needs the original context length, factors and no negative attention factor, not %d, %d and %v",
			c.Context, len(c.Factors), c.AttentionFactor)
	}
	switch {
	case c.AttentionFactor > 0:
		r.scale = c.AttentionFactor
	case c.Factor > 1:
		r.scale = math.Sqrt(1 + kernel.Log64(c.Factor)/kernel.Log64(float64(c.Context)))
	}
	return nil
}

// ropeTable is the angles of a step's rows for one rotation.
type ropeTable struct {
	rope     *Rope
	rows     int // filled; 0 at the start of a step
	cos, sin []float32
}

func (t *ropeTable) fill(row int, pos int32) {
	n := len(t.rope.freq)
	for i, f := range t.rope.freq {
		sin, cos := kernel.SinCos64(float64(pos) * f)
		t.cos[row*n+i], t.sin[row*n+i] = float32(cos*t.rope.scale), float32(sin*t.rope.scale)
	}
}

// ropeTable returns the angles of this step's rows, computing them once a step.
func (x *Exec) ropeTable(r *Rope) *ropeTable {
	var t *ropeTable
	for i := range x.ropes {
		if x.ropes[i].rope == r {
			t = &x.ropes[i]
		}
	}
	if t == nil {
		x.ropes = append(x.ropes, ropeTable{rope: r})
		t = &x.ropes[len(x.ropes)-1]
	}
	if n := len(x.Step.Rows()); t.rows < n {
		t.cos, t.sin = grow(t.cos, n*len(r.freq)), grow(t.sin, n*len(r.freq))
		t.rows = n
		x.rowTask = rowTask{kind: ropeAngles, x: x, rope: t}
		x.runRows(n, 64*len(r.freq))
	}
	return t
}

// Rope rotates each head of each row by the row's position, in place.
func (x *Exec) Rope(a Buf, heads int, r *Rope) Buf {
	t := x.ropeTable(r)
	x.rowTask = rowTask{kind: ropeRows, x: x, dst: a, heads: heads, rope: t}
	x.runRows(a.rows, a.width*2)
	return x.changed(a)
}

func (t *rowTask) rotate(i int) {
	n := len(t.rope.rope.freq)
	at := int(t.x.active[i]) * n
	kernel.Rope(t.dst.row(i), t.heads, t.dst.width/t.heads, 2*n, t.rope.cos[at:at+n], t.rope.sin[at:at+n], t.rope.rope.neox)
}
