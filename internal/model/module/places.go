package module

import (
	"slices"

	"grove/internal/model"
	"grove/internal/text/token"
)

// readTaps reads the places of the target's stream that a module reads, or returns other where the file names none. They are distinct, from 1
// to the target's layers.
func readTaps(l *model.Loader, n int, other []int) []int {
	taps, ok := l.Ints("taps")
	if !ok {
		sorted := slices.Sorted(slices.Values(other))
		if taps = other; l.OK() && (sorted[0] < 1 || len(slices.Compact(sorted)) < len(other)) {
			l.Fail("%s.taps is missing, and the usual places of the target's stream, %v of %d layers, are not distinct; the file must name %d", l.Info().Arch, other, len(l.Target().Layers), n)
			return nil
		}
	}
	if l.OK() && len(taps) != n {
		l.Fail("%s.taps has %d values; the module reads %d", l.Info().Arch, len(taps), n)
	}
	checkTaps(l, "taps", taps, 1)
	return taps
}

// layerTaps is readTaps of a module that reads 1 to most places, of a name: first is the number that stands for the stream behind the first layer.
func layerTaps(l *model.Loader, name string, first, most int) []int {
	taps, _ := l.Ints(name)
	if l.OK() && (len(taps) < 1 || len(taps) > most) {
		l.Fail("%s.%s has %d values; the module reads 1 to %d places of the target's stream", l.Info().Arch, name, len(taps), most)
	}
	checkTaps(l, name, taps, first)
	out := make([]int, len(taps))
	for i, t := range taps {
		out[i] = t - first + 1
	}
	return out
}

// checkTaps refuses taps that are not distinct layers of the target, of which the first has a number.
func checkTaps(l *model.Loader, name string, taps []int, first int) {
	last := len(l.Target().Layers) + first - 1
	for i, t := range taps {
		if t < first || t > last || slices.Contains(taps[:i], t) {
			l.Fail("value %d of %s.%s is %d; taps are distinct, from %d to %d by the target's layers", i, l.Info().Arch, name, t, first, last)
		}
	}
}

// draftVocabulary reads the target's ids of the tokens that a module drafts; nil where the file names none.
func draftVocabulary(l *model.Loader) []token.ID {
	ids, ok := l.Ints("draft_vocabulary")
	if !ok || !l.OK() {
		return nil
	}
	out, last := make([]token.ID, len(ids)), -1
	for i, id := range ids {
		if id <= last || id >= l.Target().Vocabulary {
			l.Fail("value %d of %s.draft_vocabulary is %d; ids ascend, up to %d", i, l.Info().Arch, id, l.Target().Vocabulary-1)
			return nil
		}
		out[i], last = token.ID(id), id
	}
	return out
}
