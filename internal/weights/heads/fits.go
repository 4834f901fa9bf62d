package heads

import (
	"fmt"
	"slices"

	"grove/internal/weights/gguf"
)

// Fits returns an error that says why a head, as [Open] returns it, is not for a target: its width, its vocabulary, the layers that it
// reads, and the checksum of the model that it was converted for must be the target's.
func Fits(head, target *gguf.File) error {
	if err := fits(head, target); err != nil {
		return fmt.Errorf("heads: %w", err)
	}
	return nil
}

func fits(head, target *gguf.File) error {
	family, _, err := head.String("general.architecture")
	if err != nil {
		return err
	}
	arch, _, err := target.String("general.architecture")
	if err != nil {
		return err
	}
	h, t := counts{head, family, &err}, counts{target, arch, &err}
	width, wants := t.of(".embedding_length"), h.of(".embedding_length")
	if err == nil && width != wants {
		return fmt.Errorf("the %s head is for states of %d values; those of its target have %d", family, wants, width)
	}
	vocab := 0
	if v, ok := target.Tensor("token_embd.weight"); ok && len(v.Shape) == 2 {
		vocab = v.Shape[0]
	}
	if n := h.of("heads.target.vocabulary"); err == nil && n > 0 && vocab > 0 && n != vocab {
		return fmt.Errorf("the %s head is for a vocabulary of %d tokens; its target has %d", family, n, vocab)
	}
	ids, _, e := head.Ints(family + ".draft_vocabulary")
	if e != nil {
		return e
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) || len(ids) > 0 && ids[0] < 0 {
		return fmt.Errorf("the %d numbers of the head's vocabulary do not ascend from 0 or more", len(ids))
	}
	if n := len(ids); n > 0 && vocab > 0 && ids[n-1] >= vocab {
		return fmt.Errorf("the head drafts token %d; its target has the tokens 0 to %d", ids[n-1], vocab-1)
	}
	layers := t.of(".block_count") - t.of(".nextn_predict_layers")
	if err != nil {
		return err
	}
	if err := fitsLayers(head, family, layers, h); err != nil {
		return err
	}
	return fitsChecksum(head, target)
}

// fitsLayers checks the layers that a head reads.
func fitsLayers(head *gguf.File, family string, layers int, h counts) error {
	taps, ok, err := head.Ints(family + ".taps")
	switch {
	case err != nil:
		return err
	case (family == "eagle3" || family == "peagle") && !ok:
		if a, b, c := 2, layers/2, layers-3; a == b || b == c || a == c || b < 1 || c < 1 {
			return fmt.Errorf("the head does not say which states it reads, and the usual ones, before layers %d, %d and %d of its target's %d, are not three: "+
				"eagle_aux_hidden_state_layer_ids in config.json, or %s.taps in GGUF, must name them", a, b, c, layers, family)
		}
	}
	for _, tap := range taps {
		if tap < 0 || tap > layers {
			return fmt.Errorf("the head reads the state before layer %d; its target has %d layers, so that 0 to %d can be read", tap, layers, layers)
		}
	}
	begins, _, err := head.Ints(family + ".layers")
	if err != nil {
		return err
	}
	for _, at := range begins {
		if at < 0 || at >= layers {
			return fmt.Errorf("a row of the head begins at layer %d; its target has %d layers, so that 0 to %d can be it", at, layers, layers-1)
		}
	}
	exit := h.of(".exit_layer")
	if family == "m2r2" && *h.err == nil && (exit < 1 || exit >= layers) {
		return fmt.Errorf("the matrices add to the first %d layers; their target has %d, of which 1 to %d can draft", exit, layers, layers-1)
	}
	if family == "kangaroo" && *h.err == nil && (exit < 1 || exit >= layers) {
		return fmt.Errorf("the adapter reads the state before layer %d; its target has %d layers, of which 1 to %d can be it", exit, layers, layers-1)
	}
	return *h.err
}

// SizeFits refuses a head file of some bytes that is larger than its target's file: a step of it would cost more than one of the target.
func SizeFits(bytes int64, target *gguf.File) error {
	if size := target.Size(); bytes > size {
		return fmt.Errorf("heads: the head file takes %.1f MB, its target %.1f MB; a head must be the smaller one: choose a smaller type, such as Q8_0", float64(bytes)/1e6, float64(size)/1e6)
	}
	return nil
}

// counts reads numbers of a file and keeps the first error; a key that begins with a dot belongs to the architecture.
type counts struct {
	f    *gguf.File
	arch string
	err  *error
}

// of returns a number, 0 where it is missing.
func (c counts) of(key string) int {
	if key[0] == '.' {
		key = c.arch + key
	}
	n, _, err := c.f.Uint(key)
	if err != nil && *c.err == nil {
		*c.err = err
	}
	return n
}
