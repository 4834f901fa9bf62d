package bench

import (
	"math"
	"slices"

	"grove/text/token"
)

// DivergenceReport is how far a model's distributions are from those of a base model, token by token. KL
// divergences are of the model from the base, in nats: the sum of p ln(p/q), p being the base's.
type DivergenceReport struct {
	Perplexity      float64 `json:"perplexity"` // of the base model
	PerplexityError float64 `json:"perplexity_error"`

	LogRatio      float64 `json:"log_ratio"` // ln(perplexity of the model / of the base)
	LogRatioError float64 `json:"log_ratio_error"`

	KL       float64 `json:"kl"` // mean
	KLError  float64 `json:"kl_error"`
	KLMedian float64 `json:"kl_median"`
	KL99     float64 `json:"kl_99"`  // 99 % of the tokens have no more
	KL999    float64 `json:"kl_999"` // 99.9 %
	KLMax    float64 `json:"kl_max"`

	Agreement      float64 `json:"agreement"` // share of tokens with the same likeliest one
	AgreementError float64 `json:"agreement_error"`
}

// score collects the scored tokens.
type score struct {
	nll, base moments // negative log-probability of the token, in nats
	excess    moments // nll of the model less that of the base
	kl        moments
	all       []float64 // KL divergences
	same      moments   // 1 where the likeliest tokens are the same
	bytes     int
	piece     []byte
}

// add scores one token by the logits behind its predecessor; base holds those of the base model, or nothing.
func (s *score) add(row, base []float32, id token.ID) {
	nll := logSumExp(row) - float64(row[id])
	s.nll.add(nll)
	if base == nil {
		return
	}
	kl, baseSum := divergence(base, row, nll+float64(row[id]))
	baseNLL := baseSum - float64(base[id])
	s.base.add(baseNLL)
	s.excess.add(nll - baseNLL)
	s.kl.add(kl)
	s.all = append(s.all, kl)
	same := 0.0
	if likeliest(row) == likeliest(base) {
		same = 1
	}
	s.same.add(same)
}

func (s *score) report(compared bool) *PerplexityReport {
	r := &PerplexityReport{Tokens: s.nll.n, Bytes: s.bytes}
	r.Perplexity, r.PerplexityError = s.nll.perplexity()
	if s.bytes > 0 {
		perByte := float64(s.nll.n) / float64(s.bytes) / math.Ln2
		r.BitsPerByte, r.BitsPerByteError = s.nll.mean*perByte, s.nll.err()*perByte
	}
	if !compared {
		return r
	}
	slices.Sort(s.all)
	b := &DivergenceReport{
		LogRatio: s.excess.mean, LogRatioError: s.excess.err(),
		KL: s.kl.mean, KLError: s.kl.err(),
		KLMedian: quantile(s.all, 0.5), KL99: quantile(s.all, 0.99), KL999: quantile(s.all, 0.999), KLMax: quantile(s.all, 1),
		Agreement: s.same.mean, AgreementError: s.same.err(),
	}
	b.Perplexity, b.PerplexityError = s.base.perplexity()
	r.Base = b
	return r
}

// logSumExp returns the logarithm of the sum of the exponentials of logits.
func logSumExp(row []float32) float64 {
	top := float64(slices.Max(row))
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	return top + math.Log(sum)
}

// divergence returns the KL divergence of logits q, whose logSumExp is qSum, from logits p, and the
// logSumExp of p.
func divergence(p, q []float32, qSum float64) (kl, pSum float64) {
	top := float64(slices.Max(p))
	sum, weighted := 0.0, 0.0
	for i, x := range p {
		e := math.Exp(float64(x) - top)
		sum += e
		weighted += e * (float64(x) - float64(q[i]))
	}
	pSum = top + math.Log(sum)
	return max(0, weighted/sum-pSum+qSum), pSum // rounding may leave it a little below 0
}

// likeliest returns the first of the largest logits.
func likeliest(row []float32) int {
	best := 0
	for i, x := range row {
		if x > row[best] {
			best = i
		}
	}
	return best
}

// moments is the running mean of numbers and the sum of their squared distances from it (Welford 1962).
type moments struct {
	n            int
	mean, square float64
}

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / float64(m.n)
	m.square += d * (x - m.mean)
}

// err returns the standard error of the mean, 0 for less than two numbers.
func (m *moments) err() float64 {
	if m.n < 2 {
		return 0
	}
	return math.Sqrt(m.square / float64(m.n) / float64(m.n-1))
}

// perplexity returns the exponential of the mean, and its standard error to first order.
func (m *moments) perplexity() (value, err float64) {
	value = math.Exp(m.mean)
	return value, value * m.err()
}

// quantile returns the number that a share of the sorted numbers does not exceed, between two of them where it
// falls there.
func quantile(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
