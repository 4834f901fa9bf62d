// acceptance.go has the heads that say how likely a draft token is to be accepted, by the draft model's final state behind it
// (SpecDec++, Huang et al. 2024).

package method

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"grove/internal/kernel"
	"grove/internal/weights/safetensors"
)

// Bounds of heads.
const (
	AcceptanceMaxBlocks = 8
	maxWidth            = 1 << 15
)

// AcceptanceHead is residual blocks x + SiLU(W x + b) and, behind them, scores of two classes: rejected and accepted. It is read only, and safe
// for concurrent use.
type AcceptanceHead struct {
	Width  int
	Blocks []AcceptanceBlock // in turn; equal ones may share their values
	Weight [2][]float32
	Bias   [2]float32
}

// AcceptanceBlock is a residual block.
type AcceptanceBlock struct {
	Weight []float32 // a row of Width values for each value of the result
	Bias   []float32
}

var names = regexp.MustCompile(`^model\.([0-9])\.(linear\.weight|linear\.bias|weight|bias)$`)

// ReadAcceptance reads a head for states of width values from a safetensors file of F32, F16 or BF16 tensors, with the names of the published
// heads: model.M.weight [2, width] and, if it is there, model.M.bias [2], behind M blocks, each model.I.linear.weight [width, width] and
// model.I.linear.bias [width]. M may be 0. One block that is stored alone stands for all M. Errors: those of the file; tensors of
// other names, types or shapes; values that are not finite; blocks that are missing. An empty path is no head.
func ReadAcceptance(path string, width int) (h *AcceptanceHead, err error) {
	if path == "" {
		return nil, nil
	}
	err = safetensors.Read(path, func(tensors []safetensors.Tensor) error {
		h, err = parse(tensors, width)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("acceptance: %w", err)
	}
	return h, nil
}

// parse reads a head from the tensors of a file.
func parse(tensors []safetensors.Tensor, width int) (*AcceptanceHead, error) {
	h, last := &AcceptanceHead{Width: width}, -1
	var stored [AcceptanceMaxBlocks]AcceptanceBlock
	for _, t := range tensors {
		m := names.FindStringSubmatch(t.Name)
		if m == nil {
			return nil, fmt.Errorf("tensor %q is none of a head's: model.M.weight, model.M.bias, model.I.linear.weight, model.I.linear.bias, with I and M from 0 to %d", t.Name, AcceptanceMaxBlocks)
		}
		i, _ := strconv.Atoi(m[1])
		if scores := m[2] == "weight" || m[2] == "bias"; i > AcceptanceMaxBlocks || !scores && i == AcceptanceMaxBlocks {
			return nil, fmt.Errorf("tensor %q: a head has at most %d blocks", t.Name, AcceptanceMaxBlocks)
		} else if scores && last >= 0 && last != i {
			return nil, fmt.Errorf("tensors model.%d and model.%d both give scores; a head has one place for them", last, i)
		} else if scores {
			last = i
		}
		shape := map[string][]int{"weight": {2, width}, "bias": {2}, "linear.weight": {width, width}, "linear.bias": {width}}[m[2]]
		v, err := values(t, shape)
		if err != nil {
			return nil, err
		}
		switch m[2] {
		case "weight":
			h.Weight = [2][]float32{v[:width], v[width:]}
		case "bias":
			h.Bias = [2]float32(v)
		case "linear.weight":
			stored[i].Weight = v
		default:
			stored[i].Bias = v
		}
	}
	if h.Weight[0] == nil {
		return nil, errors.New("tensor model.M.weight is missing")
	}
	return h, h.stack(stored[:], last)
}

// stack puts the stored blocks below the scores.
func (h *AcceptanceHead) stack(stored []AcceptanceBlock, blocks int) error {
	var have []int
	for i, b := range stored {
		if (b.Weight == nil) != (b.Bias == nil) {
			return fmt.Errorf("block %d needs both model.%d.linear.weight and model.%d.linear.bias", i, i, i)
		}
		if b.Weight != nil {
			have = append(have, i)
		}
	}
	switch n := len(have); {
	case n > 0 && have[n-1] >= blocks, n > 1 && n < blocks, n == 0 && blocks > 0:
		return fmt.Errorf("the scores are model.%d and the file has the blocks %v; it needs the %d below, or one for all of them", blocks, have, blocks)
	}
	for i := range blocks {
		if len(have) == 1 {
			i = have[0]
		}
		h.Blocks = append(h.Blocks, stored[i])
	}
	return nil
}

// values returns the values of a tensor, which must have a shape and be finite.
func values(t safetensors.Tensor, shape []int) ([]float32, error) {
	if _, ok := safetensors.FloatTypes[t.Type]; !ok || !slices.Equal(t.Shape, shape) || slices.Max(shape) > maxWidth {
		return nil, fmt.Errorf("tensor %q has type %s and shape %v; it must be F32, F16 or BF16 of shape %v, the states' width, which is at most %d", t.Name, t.Type, t.Shape, shape, maxWidth)
	}
	return t.Floats()
}

// AcceptanceReader applies a head. It is for one goroutine.
type AcceptanceReader struct {
	head *AcceptanceHead
	x, y []float32
}

// Reader returns a reader of states.
func (h *AcceptanceHead) Reader() *AcceptanceReader {
	return &AcceptanceReader{h, make([]float32, h.Width), make([]float32, h.Width)}
}

// Accepted returns the probability that the token behind which a state of the head's width is is accepted. It does not allocate. Its
// bits depend on the state and the head alone.
func (r *AcceptanceReader) Accepted(state []float32) float32 {
	h, x, y := r.head, r.x, r.y
	copy(x, state)
	for _, b := range h.Blocks {
		for i := range y {
			y[i] = dot(b.Weight[i*h.Width:][:h.Width], x) + b.Bias[i]
		}
		kernel.Silu(y, y)
		for i := range x {
			x[i] += y[i]
		}
	}
	y[0] = (dot(h.Weight[1], x) + h.Bias[1]) - (dot(h.Weight[0], x) + h.Bias[0])
	kernel.Sigmoid(y[:1], y[:1])
	return y[0]
}

// dot adds up the products of w and x, which have equal length: eight sums of every eighth, then the sums in turn.
func dot(w, x []float32) float32 {
	var sums [8]float32
	x = x[:len(w)]
	n := len(w) &^ 7
	for i := 0; i < n; i += 8 {
		a, b := (*[8]float32)(w[i:]), (*[8]float32)(x[i:])
		for k := range sums {
			sums[k] += float32(a[k] * b[k])
		}
	}
	for i := n; i < len(w); i++ {
		sums[i-n] += float32(w[i] * x[i])
	}
	total := sums[0]
	for _, s := range sums[1:] {
		total += s
	}
	return total
}
