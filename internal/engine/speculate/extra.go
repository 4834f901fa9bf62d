package speculate

import (
	"grove/internal/compute"
	"grove/method"
)

// ClearExtra drops what was kept of extra rows; see [method.Extra].
func (x *Text) ClearExtra() {
	x.extra = x.extra[:0]
	x.extras.Reset()
}

// KeepExtra copies what an extra row gave, for the drafter that added it: its place among those of the tree, and in the text.
func (x *Text) KeepExtra(place, index int32, result *compute.Result) {
	x.extra = append(x.extra, method.ExtraResult{Extra: place, Index: index, Result: x.extras.Keep(result)})
}

// extraOf returns what was kept of the extra rows of a drafter, which are side by side: drafters add theirs in turn.
func (x *Text) extraOf(drafter int) []method.ExtraResult {
	first, end := 0, 0
	for i, e := range x.extra {
		if x.Tree.ExtraDrafter(int(e.Extra)) == drafter {
			if end == 0 {
				first = i
			}
			end = i + 1
		}
	}
	return x.extra[first:end]
}

// added returns how many extra rows a drafter has added to the tree.
func (x *Text) added(drafter int) (n int) {
	for i := range x.Tree.Extras() {
		if x.Tree.ExtraDrafter(i) == drafter {
			n++
		}
	}
	return n
}
