package verify

import (
	"fmt"
	"strconv"
	"strings"

	"grove/internal/text/token"
)

// Threshold follows the drafts that equal the target's draws, as [Match] does, and where none does, the likeliest draft that is
// among the beta tokens of the largest logits, and whose logit is no more than tau below the largest. The token behind the last
// accepted draft is the target's draw. It takes any tree. It is lossy; with beta=1 it is [Match] at temperature 0.
var Threshold = register(Rule{
	Name: "threshold", Paper: "GAD++: Lossless Speedup of Autoregressive Translation with Generalized Aggressive Decoding (Xia et al.), 2022",
	Grade: Lossy, Options: "beta=5,tau=3",
	New: func() Acceptor { return &threshold{beta: 5, tau: 3} },
	WithOptions: func(options string) (func() Acceptor, error) {
		t := threshold{beta: 5, tau: 3}
		if err := t.set(options); err != nil {
			return nil, err
		}
		return func() Acceptor { return &threshold{beta: t.beta, tau: t.tau} }, nil
	},
})

type threshold struct {
	beta  int
	tau   float32
	match match
}

// set reads options such as beta=5,tau=3.
func (r *threshold) set(options string) error {
	for option := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "beta":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return fmt.Errorf("verify: threshold: beta is %q; it must be a whole number from 1 on", value)
			}
			r.beta = n
		case "tau":
			f, err := strconv.ParseFloat(value, 32)
			if err != nil || !(f >= 0) {
				return fmt.Errorf("verify: threshold: tau is %q; it must be a number from 0 on, or inf", value)
			}
			r.tau = float32(f)
		default:
			return fmt.Errorf("verify: threshold: option %q is not known; use beta=N,tau=X", option)
		}
	}
	return nil
}

// Accept implements [Acceptor].
func (r *threshold) Accept(v View, out *Outcome) error {
	return r.match.follow(v, out, r.near)
}

// near returns the child of the largest logit that is within the thresholds, or Root.
func (r *threshold) near(v View, node int, children []int) (int, error) {
	logits, err := v.Logits(node)
	if err != nil {
		return Root, err
	}
	best := Root
	for _, c := range children {
		if best == Root || above(logits, v.Token(c), v.Token(best)) {
			best = c
		}
	}
	if best == Root || logits[v.Token(best)] <= masked {
		return Root, nil
	}
	id, rank, top := v.Token(best), 0, logits[v.Token(best)]
	for other, l := range logits {
		if above(logits, token.ID(other), id) {
			rank++
		}
		top = max(top, l)
	}
	if rank >= r.beta || top-logits[id] > r.tau {
		return Root, nil
	}
	return best, nil
}

// masked is above the logits of tokens that are never drawn, and below all others.
const masked = -5e8

// above reports whether plain greedy decoding prefers a to b: of equal logits the lowest id.
func above(logits []float32, a, b token.ID) bool {
	return logits[a] > logits[b] || logits[a] == logits[b] && a < b
}
