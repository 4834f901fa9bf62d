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
	windowed = l.pattern(period)
	if window == 0 {
		clear(windowed)
	}
	for i, is := range windowed {
		if is && window < l.info.Context {
			l.info.Layers[i].Keeps = kv.Window(window)
		}
	}
	return windowed
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
