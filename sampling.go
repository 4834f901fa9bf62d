package grove

import "grove/sample"

// Order says whether truncation (top-k, top-p, min-p) sees the probabilities before or after the temperature.
type Order = sample.Order

// The values of [Sampling]'s Order.
const (
	TruncateFirst = sample.TruncateFirst // top-k, top-p, min-p, then temperature: the order of llama.cpp
	TemperFirst   = sample.TemperFirst   // temperature, min-p, top-k, then top-p: the order of vLLM
)

// Bias is a number that is added to the logit of a token; minus infinity forbids it. See [Penalties].
type Bias = sample.Bias

// RandomSeed returns an unpredictable seed, for a [Request] whose caller must know its seed beforehand.
func RandomSeed() uint64 { return sample.RandomSeed() }
