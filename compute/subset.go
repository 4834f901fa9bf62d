package compute

import (
	"fmt"
	"math/bits"

	"grove/forest"
	"grove/internal/kernel/matmul"
)

// SubsetGroup is the number of tokens of the vocabulary that the head computes together, the unit of
// [forest.Want.Subset].
const SubsetGroup = matmul.Lanes

// Masked is the logit of a token outside a row's subset: so low that it is never drawn, and finite, as logits are.
const Masked = -1e9

// subset is the groups of tokens that the head computes in a step: those that any row wants.
type subset struct {
	bits   []uint64 // a bit a group
	groups []int32
}

// union returns the groups that the output rows want, ascending, and nil where one of them wants all. n is the
// number of groups of the head. The slice is valid until the next call.
func (s *subset) union(rows []forest.Placed, outputs []int32, n int) []int32 {
	for _, i := range outputs {
		if rows[i].Want.Subset == nil {
			return nil
		}
	}
	s.bits, s.groups = grow(s.bits, (n+63)/64), grow(s.groups, n)[:0]
	clear(s.bits)
	for _, i := range outputs {
		for _, g := range rows[i].Want.Subset {
			s.bits[g/64] |= 1 << (g % 64)
		}
	}
	for w, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			s.groups = append(s.groups, int32(w*64+bits.TrailingZeros64(word)))
		}
	}
	return s.groups
}

// checkSubset returns an error where the groups that a row wants do not ascend within the vocabulary.
func checkSubset(r *forest.Placed, vocabulary int) error {
	end := int32((vocabulary + SubsetGroup - 1) / SubsetGroup)
	last := int32(-1)
	for _, g := range r.Want.Subset {
		if g <= last || g >= end {
			return fmt.Errorf("compute: the row at index %d: group %d of its subset follows group %d; groups ascend from 0 to %d",
				r.Index, g, last, end-1)
		}
		last = g
	}
	return nil
}

// leaveOut sets the logits outside a subset; nil is the whole vocabulary.
func leaveOut(logits []float32, subset []int32, to float32) {
	if subset == nil {
		return
	}
	set := func(from, end int) {
		for i := from; i < end; i++ {
			logits[i] = to
		}
	}
	from := 0
	for _, g := range subset {
		set(from, int(g)*SubsetGroup)
		from = (int(g) + 1) * SubsetGroup
	}
	set(from, len(logits))
}
