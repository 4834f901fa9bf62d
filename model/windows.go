package model

import (
	"grove/kv"
	"grove/weights/gguf"
)

// Windows gives layers a sliding window, and reports for each layer whether it has one: all layers but the last
// of every period, all where period is 0, none where window is 0. The hyperparameter
// attention.sliding_window_pattern replaces period, by a number or by a bool for each layer. A window that is not
// smaller than the context is not set.
func (l *Loader) Windows(window, period int) (windowed []bool) {
	return l.keep(kv.Window(window), period)
}

// Chunks gives layers chunks of n tokens, beyond which they do not see, as [Loader.Windows] gives them a window.
func (l *Loader) Chunks(n, period int) (chunked []bool) { return l.keep(kv.Chunk(n), period) }

func (l *Loader) keep(keeps kv.Keep, period int) []bool {
	has := l.pattern(period)
	if keeps.Window == 0 {
		clear(has)
	}
	for i, is := range has {
		if is && keeps.Window < l.info.Context {
			l.info.Layers[i].Keeps = keeps
		}
	}
	return has
}

func (l *Loader) pattern(period int) []bool {
	const name = "attention.sliding_window_pattern"
	layers := len(l.info.Layers)
	if v, ok := l.file.Lookup(l.key(name)); ok && v.Kind() == gguf.Array {
		pattern, ok := v.Any().([]bool)
		if ok && len(pattern) == layers {
			return pattern
		}
		l.fail("%s is %s; it must be a number, or a bool for each of %d layers", l.key(name), v.Type(), layers)
	}
	period = l.CountOr(name, period, 0, maxContext)
	pattern := make([]bool, layers)
	for i := range pattern {
		pattern[i] = period == 0 || i%period != period-1
	}
	return pattern
}
