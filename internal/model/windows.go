package model

import (
	"grove/internal/kv"
	"grove/internal/weights/gguf"
)

// Windows gives layers a sliding window, and reports for each layer whether it has one: all layers but the last
// of every period, all where period is 0, none where window is 0. The hyperparameter
// attention.sliding_window_pattern replaces period, by a number or by a bool, or 0 or 1, for each layer. A window that is not
// smaller than the context is not set.
func (l *Loader) Windows(window, period int) (windowed []bool) {
	return l.keep(kv.Window(window), period)
}

// Chunks gives layers chunks of n tokens, beyond which they do not see, as [Loader.Windows] gives them a window.
func (l *Loader) Chunks(n, period int) (chunked []bool) { return l.keep(kv.Chunk(n), period) }

func (l *Loader) keep(keeps kv.Keep, period int) []bool {
	has := l.pattern(period, false)
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

// CenteredWindows gives the layers of an encoder a window of attention.sliding_window tokens, half of them on each side, and reports for each
// layer whether it has one: all layers but the last of every period, or but the first where firstFull is set; none where the file has
// no window. The hyperparameter attention.sliding_window_pattern replaces period as in [Loader.Windows].
func (l *Loader) CenteredWindows(period int, firstFull bool) (windowed []bool) {
	window := l.CountOr("attention.sliding_window", 0, 0, maxContext)
	windowed = l.pattern(period, firstFull)
	if window == 0 {
		clear(windowed)
	}
	for i, is := range windowed {
		if reach := window/2 + 1; is && reach < l.info.Context {
			l.info.Layers[i].Keeps = kv.Window(reach)
		}
	}
	return windowed
}

// pattern reports for each layer whether it is not the full one of its period, which is the last or the first.
func (l *Loader) pattern(period int, firstFull bool) []bool {
	const name = "attention.sliding_window_pattern"
	layers := len(l.info.Layers)
	if v, ok := l.file.Lookup(l.key(name)); ok && v.Kind() == gguf.Array {
		if pattern, ok := v.Bools(); ok && len(pattern) == layers {
			return pattern
		}
		l.fail("%s is %s; it must be a number, or a bool or 0 or 1 for each of %d layers", l.key(name), v.Type(), layers)
	}
	period = l.CountOr(name, period, 0, maxContext)
	pattern, full := make([]bool, layers), period-1
	if firstFull {
		full = 0
	}
	for i := range pattern {
		pattern[i] = period == 0 || i%period != full
	}
	return pattern
}

// LayerBools returns the hyperparameter arch.name, a bool or 0 or 1 for each layer, and whether the file has it.
func (l *Loader) LayerBools(name string) ([]bool, bool) {
	v, ok := l.file.Lookup(l.key(name))
	if !ok {
		return nil, false
	}
	values, ok := v.Bools()
	if !ok || len(values) != len(l.info.Layers) {
		l.fail("%s is %s; it must be a bool or 0 or 1 for each of %d layers", l.key(name), v.Type(), len(l.info.Layers))
		return make([]bool, len(l.info.Layers)), true
	}
	return values, true
}
