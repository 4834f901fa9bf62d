// vocab.go picks the parts of the vocabulary that the head computes.

package compute

import (
	"fmt"
	"math/bits"
	"slices"

	"grove/internal/forest"
	"grove/internal/kernel/matmul"
	"grove/internal/text/token"
)

// SubsetGroup is the number of tokens of the vocabulary that the head computes together, the unit of
// [forest.Want.Subset].
const SubsetGroup = matmul.Lanes

// Masked is the logit of a token outside a row's subset: so low that it is never drawn, and finite, as logits are.
const Masked = -1e9

// VocabSubset is the groups of tokens that the head computes in a step: those that any row wants.
type VocabSubset struct {
	bits   []uint64 // a bit a group
	groups []int32
}

// Union returns the groups that the output rows want, ascending, and nil where one of them wants all. n is the
// number of groups of the head. The slice is valid until the next call.
func (s *VocabSubset) Union(rows []forest.Placed, outputs []int32, n int) []int32 {
	for _, i := range outputs {
		if rows[i].Want.Subset == nil {
			return nil
		}
	}
	s.bits, s.groups = slices.Grow(s.bits[:0], (n+63)/64)[:(n+63)/64], slices.Grow(s.groups[:0], n)
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

// CheckVocab returns an error where the groups that a row wants do not ascend within the vocabulary.
func CheckVocab(r *forest.Placed, vocabulary int) error {
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

// LeaveOut sets the logits outside a subset; nil is the whole vocabulary.
func LeaveOut(logits []float32, subset []int32, to float32) {
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

// CheckInput returns an error where a row is no input of a model of a vocabulary and of a stream of width values.
func CheckInput(r *forest.Placed, vocabulary, width int) error {
	switch p := r.Prior; {
	case r.Vector != nil && r.Mix != nil:
		return fmt.Errorf("compute: the row at index %d has a vector and a mixture as input; give one", r.Index)
	case r.Mix != nil && len(r.Mix) == 0:
		return fmt.Errorf("compute: the mixture at index %d is empty; it needs an id or more", r.Index)
	case p != nil && (len(p.Logits) != vocabulary || !(p.Temperature > 0)):
		return fmt.Errorf("compute: the prior at index %d has %d logits and a temperature of %g; it needs the vocabulary's %d, and more than 0", r.Index, len(p.Logits), p.Temperature, vocabulary)
	case r.Vector != nil:
		if len(r.Vector) != width {
			return fmt.Errorf("compute: the row at index %d has a vector of %d values; the model's width is %d", r.Index, len(r.Vector), width)
		}
		return nil
	}
	for _, m := range r.Mix {
		if m.ID < 0 || int(m.ID) >= vocabulary {
			return fmt.Errorf("compute: token id %d in the mixture at index %d is out of range: the vocabulary has %d", m.ID, r.Index, vocabulary)
		}
	}
	if r.Mix == nil && (r.ID < 0 || int(r.ID) >= vocabulary) {
		return OutOfRange(r.ID, r.Index, vocabulary)
	}
	return nil
}

// CheckPair returns an error where a row is no input of a draft module of a vocabulary, whose rows have a vector of so many values and so many further ids at most.
func CheckPair(r *forest.Placed, vocabulary, vector, ids int) error {
	switch {
	case r.Resume != forest.Trunk:
		return fmt.Errorf("compute: the row at index %d is resumed; rows of a draft module run at once", r.Index)
	case len(r.Vector) > vector:
		return fmt.Errorf("compute: the row at index %d has a vector of %d values; the module reads %d at most", r.Index, len(r.Vector), vector)
	case len(r.Mix) > ids:
		return fmt.Errorf("compute: the row at index %d has %d further ids; the module reads %d at most", r.Index, len(r.Mix), ids)
	case r.ID < 0 || int(r.ID) >= vocabulary:
		return OutOfRange(r.ID, r.Index, vocabulary)
	}
	for _, m := range r.Mix {
		if m.ID < 0 || int(m.ID) >= vocabulary {
			return OutOfRange(m.ID, r.Index, vocabulary)
		}
	}
	return nil
}

// OutOfRange returns the error of a token of the row at an index that the vocabulary has not.
func OutOfRange(id token.ID, index int32, vocabulary int) error {
	return fmt.Errorf("compute: token id %d at index %d is out of range: the vocabulary has %d", id, index, vocabulary)
}
