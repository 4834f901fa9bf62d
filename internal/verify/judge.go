package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grove/internal/weights/safetensors"
)

// Judge follows the drafts that equal the target's draws, as [Match] does, and where none does, the draft that a [Head] finds the
// least important, if that is less than the threshold: at threshold 0 it is [Match], above 1 it accepts every draft that was run.
// It is lossy. It takes any tree, and reads the final states of the drafts' rows. Without a head ([WithHead]) it is [Match].
var Judge = register(Rule{
	Name: "judge", Paper: "Judge Decoding (Bachmann et al.), 2025; AutoJudge (Garipov et al.), 2025",
	Grade: Lossy, Options: "threshold=that of the head", States: true,
	New: func() Acceptor { return &judge{threshold: -1} },
	WithOptions: func(options string) (func() Acceptor, error) {
		name, value, _ := strings.Cut(options, "=")
		threshold, err := strconv.ParseFloat(value, 64)
		if name != "threshold" || err != nil || !(threshold >= 0) {
			return nil, fmt.Errorf("verify: judge: option %q is not known; use threshold=X with a number from 0 on", options)
		}
		return func() Acceptor { return &judge{threshold: threshold} }, nil
	},
})

// WithHead returns a rule whose acceptors use a head, where it is [Judge]; other rules as they are.
func WithHead(r Rule, h *Head) Rule {
	if r.Name != Judge.Name {
		return r
	}
	bare := r.New
	r.New = func() Acceptor {
		j := bare().(*judge)
		if j.head = h; j.threshold < 0 {
			j.threshold = h.Threshold
		}
		return j
	}
	return r
}

// Head is a logistic regression on the final state of a draft token: how likely it is that the token decides over the answer.
type Head struct {
	Weight    []float32 // one for each value of a state
	Bias      float32
	Threshold float64 // below which a draft is accepted, where a request says nothing else
}

// Importance returns the sigmoid of the head's score of a state, which has as many values as the head has weights.
func (h *Head) Importance(state []float32) float64 {
	sum := float64(h.Bias)
	for i, w := range h.Weight {
		sum += float64(float64(w) * float64(state[i]))
	}
	return 1 / (1 + math.Exp(-sum))
}

// maxHead bounds the weights of a head that is read.
const maxHead = 1 << 20

// ReadHead reads a head for states of width values from a safetensors file: judge.weight, judge.bias and, if it is there,
// judge.threshold, which is 0.5 otherwise; all F32. Errors: those of the file; tensors of another type or shape, values that
// are not finite, a threshold below 0. An empty path is no head.
func ReadHead(path string, width int) (h *Head, err error) {
	if path == "" {
		return nil, nil
	}
	err = safetensors.Read(path, func(tensors []safetensors.Tensor) error {
		h, err = parseHead(tensors, width)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return h, nil
}

// parseHead reads a head from the tensors of a file.
func parseHead(tensors []safetensors.Tensor, width int) (h *Head, err error) {
	values := map[string][]float32{"judge.threshold": {0.5}}
	for _, t := range tensors {
		n := len(t.Data) / 4
		if t.Type != "F32" || n == 0 || n > maxHead || slices.Max(append(slices.Clone(t.Shape), 1)) != n {
			return nil, fmt.Errorf("tensor %q has type %s and shape %v; it must be a row of 1 to %d F32 values", t.Name, t.Type, t.Shape, maxHead)
		}
		if values[t.Name], err = t.Floats(); err != nil {
			return nil, err
		}
	}
	weight, bias, threshold := values["judge.weight"], values["judge.bias"], values["judge.threshold"]
	switch {
	case len(weight) == 0 || len(bias) != 1 || len(threshold) != 1 || len(values) != 3:
		return nil, errors.New("a head has the tensors judge.weight, judge.bias (1 value) and, optionally, judge.threshold (1 value), and no other")
	case len(weight) != width:
		return nil, fmt.Errorf("the head has %d weights, and the model's states have %d values", len(weight), width)
	case threshold[0] < 0:
		return nil, fmt.Errorf("judge.threshold is %v; it must be 0 or more", threshold[0])
	}
	return &Head{Weight: weight, Bias: bias[0], Threshold: float64(threshold[0])}, nil
}

type judge struct {
	match     match
	head      *Head
	threshold float64 // below 0: the head's
}

// Accept implements [Acceptor].
func (j *judge) Accept(v View, out *Outcome) error {
	if j.head == nil {
		return j.match.Accept(v, out)
	}
	return j.match.follow(v, out, j.pass)
}

// pass returns the child of the least importance, if that is below the threshold, or Root. A draft that was not run has no
// state, and does not pass.
func (j *judge) pass(v View, _ int, children []int) (best int, err error) {
	best, least := Root, j.threshold
	for _, c := range children {
		if !v.Ran(c) {
			continue
		}
		state := v.State(c)
		if len(state) != len(j.head.Weight) {
			return Root, fmt.Errorf("verify: judge: draft %d: its state has %d values, and the head %d weights", c, len(state), len(j.head.Weight))
		}
		if x := j.head.Importance(state); x < least {
			best, least = c, x
		}
	}
	return best, nil
}
