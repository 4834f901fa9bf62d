package method

import (
	"grove/internal/compute"
	"grove/internal/forest"
)

// Extra is a row that the verifying step runs behind a draft beside the drafts: a vector, such as PPD's learned ones, or a row that begins as a product of
// the draft's. Rules do not see it, and it never becomes text. Its keys go with the drafts' that were rejected.
type Extra struct {
	Parent int32 // the draft's place in the tree, or [Root]
	After  int32 // the place among the extra rows of the one behind which it is; [Root]: it is right behind the draft
	Row    forest.Row
	source uint8
}

// ExtraResult has the outputs of an extra row behind the last draft that was accepted, or behind the text's last token where none was.
type ExtraResult struct {
	Extra int32 // its place among the extra rows
	Index int32 // its place in the text of the round, from the text's beginning
	compute.Result
}

// AddExtra puts an extra row behind a draft (or [Root]) or, with after, behind an earlier extra row there, and returns its place among these. It runs where
// the draft does and there is room. The row's input, layers and wants count; one with Through begins as a product of the draft's row, and is left out where
// that is resumed above the layer. Slices are not copied. It returns [Root], and adds nothing, where there are as many as may hang from a trunk.
func (t *Tree) AddExtra(parent, after int, row forest.Row) int {
	if len(t.extras) == MaxLive {
		return Root
	}
	t.extras = append(t.extras, Extra{Parent: int32(parent), After: int32(after), Row: row, source: t.source})
	return len(t.extras) - 1
}

// Extras returns the extra rows, in the order in which they were added. The caller does not change them.
func (t *Tree) Extras() []Extra { return t.extras }

// ExtraDrafter returns the drafter that added an extra row, by its turn.
func (t *Tree) ExtraDrafter(extra int) int { return int(t.extras[extra].source) }
