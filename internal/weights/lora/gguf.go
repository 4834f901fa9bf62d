package lora

import (
	"fmt"
	"math"
	"strings"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// FromGGUF reads an adapter of an open file in llama.cpp's layout: for each tensor of the base its name with .lora_a and .lora_b. The
// scale of a pair is adapter.lora.alpha over its rank, and 1 where alpha is 0 or missing. The file must stay open as long as the
// adapter is used.
func FromGGUF(f *gguf.File) (*Adapter, error) {
	a := &Adapter{}
	kinds := [][2]string{{"general.type", "adapter"}, {"adapter.type", "lora"}}
	for _, k := range kinds {
		switch v, ok, err := f.String(k[0]); {
		case err != nil:
			return nil, err
		case !ok:
			return nil, fmt.Errorf("%s is missing; of a LoRA it is %q", k[0], k[1])
		case v != k[1]:
			return nil, fmt.Errorf("%s is %.40q; of a LoRA it is %q", k[0], v, k[1])
		}
	}
	var err error
	var ok bool
	if a.Arch, ok, err = f.String("general.architecture"); err != nil || !ok {
		return nil, fmt.Errorf("general.architecture is missing or no string; it names the base's")
	}
	if a.Name, _, err = f.String("general.name"); err != nil {
		return nil, err
	}
	alpha, _, err := f.Float("adapter.lora.alpha")
	if err != nil {
		return nil, err
	}
	if math.IsNaN(alpha) || math.Abs(alpha) > 1e6 {
		return nil, fmt.Errorf("adapter.lora.alpha is %v; it must be within ±1e6", alpha)
	}
	ids, _, err := f.Ints("adapter.alora.invocation_tokens")
	if err != nil {
		return nil, err
	}
	if a.Invocation, err = invocation(ids); err != nil {
		return nil, fmt.Errorf("adapter.alora.invocation_tokens: %w", err)
	}
	return a, a.collect(f, alpha)
}

// collect makes pairs of the file's tensors.
func (a *Adapter) collect(f *gguf.File, alpha float64) error {
	if len(f.Tensors) > 2*MaxPairs {
		return fmt.Errorf("%d tensors; an adapter has at most %d", len(f.Tensors), 2*MaxPairs)
	}
	for _, t := range f.Tensors {
		name, isA := strings.CutSuffix(t.Name, ".lora_a")
		if !isA {
			base, isB := strings.CutSuffix(t.Name, ".lora_b")
			if _, ok := f.Tensor(base + ".lora_a"); !isB || !ok {
				return fmt.Errorf("%s: no part of a LoRA: its tensors are pairs NAME.lora_a and NAME.lora_b", tensor.Label(t.Name))
			}
			continue
		}
		b, ok := f.Tensor(name + ".lora_b")
		if !ok {
			return fmt.Errorf("%s: %q is missing", tensor.Label(t.Name), name+".lora_b")
		}
		p := Pair{Name: name, A: t, B: b, Scale: 1}
		if err := p.check(); err != nil {
			return err
		}
		if alpha != 0 {
			p.Scale = alpha / float64(p.Rank())
		}
		a.Pairs = append(a.Pairs, p)
	}
	if len(a.Pairs) == 0 {
		return fmt.Errorf("it has no tensors")
	}
	return a.sorted()
}

// invocation checks the tokens of an invocation.
func invocation(ids []int) (all []token.ID, err error) {
	if len(ids) > MaxInvocation {
		return nil, fmt.Errorf("%d tokens; at most %d are supported", len(ids), MaxInvocation)
	}
	for i, id := range ids {
		if id < 0 || id > math.MaxInt32 {
			return nil, fmt.Errorf("token %d is %d; it must be 0 or more", i, id)
		}
		all = append(all, token.ID(id))
	}
	return all, nil
}
