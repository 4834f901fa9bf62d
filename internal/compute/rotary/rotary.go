// Package rotary prepares the rotation of heads by their position: a frequency for each pair of values, stretched for texts
// beyond the trained context in the ways that models were trained with. It has no arithmetic of steps.
package rotary

import (
	"fmt"
	"math"

	"grove/internal/kernel"
)

// Scaling names a way to stretch rotary positions beyond the trained context.
type Scaling string

// The scalings that are known.
const (
	Plain  Scaling = ""
	Linear Scaling = "linear"   // Chen et al. 2023: positions divided by Factor
	YaRN   Scaling = "yarn"     // Peng et al. 2023: by frequency, with a temperature
	Llama3 Scaling = "llama3"   // Llama 3.1: by wavelength
	Long   Scaling = "longrope" // Ding et al. 2024: by Factors, with a temperature
)

// Config describes the rotation of a model's heads.
type Config struct {
	Dims    int // values of a head that rotate, in pairs
	Base    float64
	NeoX    bool      // pairs are (i, i+Dims/2); otherwise (2i, 2i+1)
	Factors []float32 // one divisor for each pair's frequency, or nil

	Scaling Scaling
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
	Freq  []float64 // by which a position turns each pair
	Scale float64   // of cosine and sine
	NeoX  bool      // see Config
}

// New prepares a rotation. It returns an error that names a setting out of range.
func New(c Config) (*Rope, error) {
	if c.Dims < 2 || c.Dims%2 != 0 {
		return nil, fmt.Errorf("rope dimension count %d is not a positive even number", c.Dims)
	}
	if !(c.Base > 0) || math.IsInf(c.Base, 0) {
		return nil, fmt.Errorf("rope base %v is not a positive number", c.Base)
	}
	if c.Factors != nil && len(c.Factors) != c.Dims/2 {
		return nil, fmt.Errorf("%d rope factors for %d pairs", len(c.Factors), c.Dims/2)
	}
	if c.Scaling != Plain && (!(c.Factor > 0) || math.IsInf(c.Factor, 0)) {
		return nil, fmt.Errorf("rope scaling factor %v is not a positive number", c.Factor)
	}
	r := &Rope{Freq: make([]float64, c.Dims/2), Scale: 1, NeoX: c.NeoX}
	for i := range r.Freq {
		r.Freq[i] = kernel.Pow64(c.Base, -2*float64(i)/float64(c.Dims))
		if c.Factors != nil {
			if f := float64(c.Factors[i]); !(f > 0) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("rope factor %d is %v, not a positive number", i, f)
			}
			r.Freq[i] /= float64(c.Factors[i])
		}
	}
	switch c.Scaling {
	case Plain:
	case Linear:
		for i := range r.Freq {
			r.Freq[i] /= c.Factor
		}
	case YaRN:
		return r, r.yarn(c)
	case Llama3:
		return r, r.llama3(c)
	case Long:
		return r, r.long(c)
	default:
		return nil, fmt.Errorf("rope scaling %q is not supported; linear, yarn, llama3 and longrope are", c.Scaling)
	}
	return r, nil
}

// yarn keeps the pairs that turn often within the trained context, stretches those that turn seldom, and mixes
// the two for those in between. Queries and keys get a temperature (YaRN, sections 3.2 to 3.4).
func (r *Rope) yarn(c Config) error {
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
	for i := range r.Freq {
		keep := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
		stretched := r.Freq[i] / c.Factor
		r.Freq[i] = float64(stretched*(1-keep)) + float64(r.Freq[i]*keep)
	}
	if !c.NoTemperature {
		r.Scale = c.AttentionFactor * Temperature(c.Factor, 0.1)
	}
	return nil
}

// Temperature returns 1 + multiplier * ln(factor), the factor on queries and on keys that makes up for
// positions stretched by factor; YaRN's own multiplier is 0.1.
func Temperature(factor, multiplier float64) float64 {
	return 1 + float64(multiplier*kernel.Log64(factor))
}

// llama3 stretches the pairs with wavelengths beyond the trained context by the whole factor, keeps those with
// short wavelengths, and mixes the two for those in between.
func (r *Rope) llama3(c Config) error {
	if c.Context < 1 || !(c.LowFreqFactor > 0) || !(c.HighFreqFactor > c.LowFreqFactor) {
		return fmt.Errorf("llama3 rope scaling needs the original context length and 0 < low < high frequency factors, not %d, %v, %v",
			c.Context, c.LowFreqFactor, c.HighFreqFactor)
	}
	for i, f := range r.Freq {
		turns := float64(c.Context) * f / (2 * math.Pi)
		mix := min(1, max(0, (turns-c.LowFreqFactor)/(c.HighFreqFactor-c.LowFreqFactor)))
		r.Freq[i] = float64((1-mix)*(f/c.Factor)) + float64(mix*f)
	}
	return nil
}

// long sets the temperature of LongRoPE. The frequencies have their factors already.
func (r *Rope) long(c Config) error {
	if c.Context < 2 || c.Factors == nil || !(c.AttentionFactor >= 0) {
		return fmt.Errorf("longrope scaling needs the original context length, factors and no negative attention factor, not %d, %d and %v",
			c.Context, len(c.Factors), c.AttentionFactor)
	}
	switch {
	case c.AttentionFactor > 0:
		r.Scale = c.AttentionFactor
	case c.Factor > 1:
		r.Scale = math.Sqrt(1 + kernel.Log64(c.Factor)/kernel.Log64(float64(c.Context)))
	}
	return nil
}
