package oracle

import (
	"math"
	"sort"
)

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// Plus returns the sum of two vectors.
func Plus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

// Times returns a vector times a number.
func Times(k float64, a []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = k * a[i]
	}
	return out
}

// RMSNorm returns the root mean square norm of a vector, with weights (Zhang, Sennrich 2019).
func RMSNorm(x []float64, w Weights, eps float64) []float64 {
	r := 1 / math.Sqrt(dot(x, x)/float64(len(x))+eps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * r * w.V[i]
	}
	return out
}

// layerNorm is Ba et al. 2016.
func layerNorm(x []float64, w, bias Weights, eps float64) []float64 {
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v-mean)/math.Sqrt(variance+eps)*w.V[i] + bias.V[i]
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// gelu is the tanh form of Hendrycks and Gimpel 2016, which BERT's code uses.
func gelu(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// Softmax returns the distribution of logits.
func Softmax(x []float64) []float64 {
	high, sum := math.Inf(-1), 0.0
	for _, v := range x {
		high = math.Max(high, v)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Exp(v - high)
		sum += out[i]
	}
	return Times(1/sum, out)
}

// largest returns the places of the n largest values, falling.
func largest(x []float64, n int) []int {
	at := make([]int, len(x))
	for i := range at {
		at[i] = i
	}
	sort.SliceStable(at, func(a, b int) bool { return x[at[a]] > x[at[b]] })
	return at[:n]
}

// Attend returns softmax(q.k * scale) v over keys and values; where sink is not nil it takes part in the
// denominator with no value.
func Attend(q []float64, k, v [][]float64, scale float64, sink *float64) []float64 {
	scores := make([]float64, len(k))
	for j := range k {
		scores[j] = scale * dot(q, k[j])
	}
	if sink != nil {
		scores = append(scores, *sink)
	}
	out := make([]float64, len(v[0]))
	for j, p := range Softmax(scores)[:len(k)] {
		for i, x := range v[j] {
			out[i] += p * x
		}
	}
	return out
}

// Part cuts each row to its values [from, from+n).
func Part(rows [][]float64, from, n int) [][]float64 {
	out := make([][]float64, len(rows))
	for i := range rows {
		out[i] = rows[i][from : from+n]
	}
	return out
}

// Yarn is the rotary frequencies of Peng et al. 2023, section 3.2: pairs that turn more than fast times
// within the trained context stay, those that turn less than slow times are stretched by factor. With whole,
// the ends of the mix are rounded outwards to whole pairs.
func Yarn(dims int, base, factor, context, fast, slow float64, whole bool) []float64 {
	pair := func(turns float64) float64 {
		return float64(dims) * math.Log(context/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high := pair(fast), pair(slow)
	if whole {
		low, high = math.Max(0, math.Floor(low)), math.Min(float64(dims-1), math.Ceil(high))
	}
	freq := make([]float64, dims/2)
	for i := range freq {
		f := math.Pow(base, -2*float64(i)/float64(dims))
		stretch := math.Min(1, math.Max(0, (float64(i)-low)/math.Max(0.001, high-low)))
		freq[i] = f*(1-stretch) + f/factor*stretch
	}
	return freq
}

// Rotate turns the pairs (first(i), second(i)) of x in place by position times frequency, and scales them.
func Rotate(x, freq []float64, pos int, scale float64, halves bool) {
	for i, f := range freq {
		a, b := 2*i, 2*i+1
		if halves {
			a, b = i, i+len(freq)
		}
		sin, cos := math.Sincos(float64(pos) * f)
		x[a], x[b] = scale*(x[a]*cos-x[b]*sin), scale*(x[a]*sin+x[b]*cos)
	}
}
