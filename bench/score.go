package bench

import (
	"math"
	"slices"

	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/search/programs"
)

// DivergenceReport compares the distributions of a model with those of a base model, token by token. A KL divergence is the
// sum of p ln(p/q) in nats, where p is the distribution of the base model and q that of the model.
type DivergenceReport struct {
	Name            string  `json:"-"`
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
	nll, base        stat.Moments // negative log-probability of the token, in nats
	excess, kl, same stat.Moments // nll of the model less that of the base; KL divergence; 1 where the likeliest tokens are the same
	all              []float64    // KL divergences
	units            UnitFinder
	learner          *programs.AdadecLearner
	bytes            int
	piece            []byte
}

// add scores one token by the logits of the row before it. base is those of the base model; nil: there is none.
func (s *score) add(row, base []float32, id token.ID) {
	nll := stat.LogSumExp(row) - float64(row[id])
	s.nll.Add(nll)
	s.units.Add(nll)
	s.learner.Add(row, id)
	if base == nil {
		return
	}
	kl, baseSum := divergence(base, row, nll+float64(row[id]))
	baseNLL := baseSum - float64(base[id])
	s.base.Add(baseNLL)
	s.excess.Add(nll - baseNLL)
	s.kl.Add(kl)
	s.all = append(s.all, kl)
	same := 0.0
	if likeliest(row) == likeliest(base) {
		same = 1
	}
	s.same.Add(same)
}

func (s *score) report(compared bool) *PerplexityReport {
	r := &PerplexityReport{Tokens: s.nll.N, Bytes: s.bytes}
	r.Perplexity, r.PerplexityError = perplexity(&s.nll)
	if s.bytes > 0 {
		perByte := float64(s.nll.N) / float64(s.bytes) / math.Ln2
		r.BitsPerByte, r.BitsPerByteError = s.nll.Mean*perByte, s.nll.Err()*perByte
	}
	if !compared {
		return r
	}
	slices.Sort(s.all)
	b := &DivergenceReport{
		LogRatio: s.excess.Mean, LogRatioError: s.excess.Err(),
		KL: s.kl.Mean, KLError: s.kl.Err(),
		KLMedian: stat.Quantile(s.all, 0.5), KL99: stat.Quantile(s.all, 0.99), KL999: stat.Quantile(s.all, 0.999), KLMax: stat.Quantile(s.all, 1),
		Agreement: s.same.Mean, AgreementError: s.same.Err(),
	}
	b.Perplexity, b.PerplexityError = perplexity(&s.base)
	r.Base = b
	return r
}

// divergence returns the KL divergence of logits q, whose LogSumExp is qSum, from logits p, and the
// LogSumExp of p.
func divergence(p, q []float32, qSum float64) (kl, pSum float64) {
	top := float64(slices.Max(p))
	sum, weighted := 0.0, 0.0
	for i, x := range p {
		e := math.Exp(float64(x) - top)
		sum += e
		weighted += e * (float64(x) - float64(q[i]))
	}
	pSum = top + math.Log(sum)
	return max(0, weighted/sum-pSum+qSum), pSum // rounding may give a value just below 0
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

// perplexity returns the exponential of a mean, and its standard error to first order.
func perplexity(m *stat.Moments) (value, err float64) {
	value = math.Exp(m.Mean)
	return value, value * m.Err()
}
