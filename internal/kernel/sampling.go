package kernel

import "math"

// logitBlock is the number of logits between the fixed borders of a log-sum-exp (N2).
const logitBlock = 4096

// maxOfGo returns the maximum in the order S32, -Inf where x holds no number.
func maxOfGo(x []float32) float32 {
	var p [32]float32
	for i := range p {
		p[i] = negInf
	}
	for i, v := range x {
		if v > p[i%32] {
			p[i%32] = v
		}
	}
	for w := 16; w > 0; w /= 2 {
		for j := range w {
			if p[j+w] > p[j] {
				p[j] = p[j+w]
			}
		}
	}
	return p[0]
}

// sumExpGo returns the sum of Exp32(x-m) in the order S32.
func sumExpGo(x []float32, m float32) float32 {
	var p [32]float32
	for i, v := range x {
		p[i%32] += Exp32(v - m)
	}
	return fold32(&p)
}

// LogSumExp returns the maximum of x and the logarithm of the sum of e**x. A value of -Inf is a
// masked one and adds nothing. Where x holds a NaN or +Inf, or no value above -Inf, finite is false
// and the numbers mean nothing.
//
// The order: blocks of 4096, each with its maximum m and the S32 sum of Exp32(x-m), merged left to
// right as [Attended.Merge] merges sums; then max + Log32(l).
func LogSumExp(x []float32) (max, lse float32, finite bool) {
	max = negInf
	var l float32
	for len(x) > 0 {
		b := x[:min(len(x), logitBlock)]
		m, base := blockMax(b)
		mergeLogits(&max, &l, m, sumExp(b, base))
		x = x[len(b):]
	}
	return max, max + Log32(l), l > 0
}

// blockMax returns the maximum m of a block of logits and what to subtract from them, which is m
// unless the whole block is masked.
func blockMax(x []float32) (m, base float32) {
	m = maxOf(x)
	if m == negInf {
		return m, 0
	}
	return m, m
}

// mergeLogits merges a block into the maximum and the sum of the blocks before it. A sum turns NaN
// for good where a block holds a NaN or +Inf.
func mergeLogits(max, l *float32, m, sum float32) {
	if *max == negInf && m == negInf {
		*l += sum
		return
	}
	var x, y [8]float32
	m0, l0 := []float32{*max}, []float32{*l}
	mergeSums(&x, &y, m0, l0, []float32{m}, []float32{sum})
	*max, *l = m0[0], l0[0]
}

// A Key selects one family of independent noise values, one for each token id (N5). [MakeKey] makes
// one.
type Key struct{ A, B uint32 }

// MakeKey returns the key of a draw, of the request's seed, the sample index, the index of the token to
// draw, and the purpose of the draw. It is counter-based: any two calls that
// differ in an argument give keys that look independent.
func MakeKey(seed uint64, choice, index uint32, purpose uint32) Key {
	h := mix64(seed + 0x9e3779b97f4a7c15)
	h = mix64(h ^ (uint64(choice)<<32 | uint64(index)))
	h = mix64(h + uint64(purpose)*0xd1342543de82ef95)
	return Key{uint32(h), uint32(h >> 32)}
}

// mix64 is a bijection of 64 bits in which every bit of x flips about half of the result (the
// finaliser of Steele, Lea and Flood 2014, with the constants of Stafford's variant 13).
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// mix32 is the like for 32 bits (constants of Wellons's search, "lowbias32").
func mix32(x uint32) uint32 {
	x = (x ^ x>>16) * 0x7feb352d
	x = (x ^ x>>15) * 0x846ca68b
	return x ^ x>>16
}

// Noise returns the standard Gumbel noise of a token id under a key: -log(-log(1-W)) for a W in (0, 1)
// that a hash of the id gives, in steps of 2**-32. It is finite, from -3.1 to 22.9.
//
// The order: h = mix32(mix32(id^A) + B), W = (h+1/2) 2**-32 and V = 1-W, each rounded once;
// e, f = the parts of V for its logarithm, with f = -W where V >= sqrt(1/2); then -Log32(-log1p(e, f)).
func Noise(key Key, id uint32) float32 { return gumbel(hash(key, id)) }

// Uniform returns the number above 0 and below 1 that [Noise] is made of.
func Uniform(key Key, id uint32) float64 { return (float64(hash(key, id)) + 0.5) / (1 << 32) }

func hash(key Key, id uint32) uint32 { return mix32(mix32(id^key.A) + key.B) }

func gumbel(h uint32) float32 {
	e, f := logParts(unit(^h))
	if e == 0 {
		f = -unit(h) // 1+f is V, but W has the precision that log(1-W) needs
	}
	return -log1p(logParts(-log1p(e, f)))
}

// unit returns (h+1/2) 2**-32.
func unit(h uint32) float32 {
	low := float32(h&0xffff) + 0.5
	return FMA32(float32(h>>16), 0x1p-16, low*0x1p-32)
}

// A choice is the best score of a pass over logits and the token that has it.
type choice struct {
	score float32
	id    uint32
}

const noToken = math.MaxUint32

// No noise is greater than noiseLimit - noiseSlope*u, where u are the bits of float32(h/2), as an
// integer. For -log(-log(1-W)) < -log(W) <= -log(w), w = floor(h/2) 2**-31, and the bits of a float,
// as a fixed-point number, are at most its logarithm to the base 2 plus the exponent's bias. The last
// term of the limit outweighs all roundings.
const (
	noiseSlope = math.Ln2 / (1 << 23)
	noiseLimit = math.Ln2*(127+31) + 1.0/32
)

func noiseBound(h uint32) float32 {
	u := float32(math.Float32bits(float32(h >> 1)))
	return FMA32(-noiseSlope, u, noiseLimit)
}

// drawGo keeps in best the greatest x*invT + Noise of the ids from first on and of those before, the
// earlier id where scores are equal. Nearly all ids cannot win, whatever their noise is within its
// bound, and go without logarithms.
func drawGo(x []float32, invT float32, key Key, first uint32, best *choice) {
	for i, v := range x {
		id, s := first+uint32(i), float32(v*invT)
		h := hash(key, id)
		if !(s+noiseBound(h) > best.score) {
			continue
		}
		if s += gumbel(h); s > best.score {
			*best = choice{s, id}
		}
	}
}

// GumbelMax draws a token id from the softmax of x*invT, with the noise that the key gives each id
// (N5), and returns in the same pass what [LogSumExp] returns for x. The score of an id is
// x*invT + Noise(key, id), the product rounded; the lowest id wins a tie. The scale invT is positive
// and finite. Where no score is above -Inf the first maximum of x wins. Where finite is false the id
// is -1.
func GumbelMax(x []float32, invT float32, key Key) (id int, max, lse float32, finite bool) {
	max = negInf
	var l float32
	best := choice{negInf, noToken}
	for i := 0; i < len(x); i += logitBlock {
		b := x[i:min(len(x), i+logitBlock)]
		m, base := blockMax(b)
		mergeLogits(&max, &l, m, sumExp(b, base))
		draw(b, invT, key, uint32(i), &best)
	}
	id, lse, finite = int(best.id), max+Log32(l), l > 0
	switch {
	case !finite:
		id = -1
	case best.id == noToken:
		id = ArgMax(x)
	}
	return id, max, lse, finite
}

// ArgMax returns the index of the greatest value of x, the lowest one of equals. A NaN never wins;
// the result is -1 where x holds nothing else.
func ArgMax(x []float32) int {
	best, at := negInf, 0
	for i := 0; i < len(x); i += logitBlock {
		if m := maxOf(x[i:min(len(x), i+logitBlock)]); m > best {
			best, at = m, i
		}
	}
	for i, v := range x[at:] {
		if v == best {
			return at + i
		}
	}
	return -1
}
