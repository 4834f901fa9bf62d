package resident

import (
	"fmt"
	"log/slog"

	"grove/internal/engine"
	"grove/internal/machine"
	"grove/internal/model"
	"grove/internal/weights/gguf"
	"grove/internal/weights/ollama"
)

// contextStep is what the context of a model that nobody chose is a multiple of, where it is less than the model's own.
const contextStep = 256

// context returns the tokens of a text where none are asked for: those that the model was trained for, if the keys and values of as many
// texts as are computed at a time take half of the memory that is left, or else the most that do. Up to [engine.DefaultContext] tokens they
// may take all of it. A text that is one step has no more than those, as the step has a row for each of its tokens.
func (m *Model) context(o Options) int {
	info := m.Model.Info()
	own := info.Context
	if n := advised(m.File); n > 0 {
		own = min(own, n)
	}
	most := min(own, engine.DefaultContext)
	if oneStep(info) {
		return most
	}
	all, err := room(o.Memory, info.Bytes)
	if err != nil || all == 0 {
		return most // which the engine refuses, or the machine does not say
	}
	beside := m.bytes() - uint64(info.Bytes)
	left := all - min(all, beside)
	if o.Memory == 0 {
		left = all - min(all, m.bytes()+taken.Load())
	} else {
		all = left
	}
	half := left / 2 / uint64(1+len(m.Guides))
	fits := func(n int, bound uint64) bool {
		o.Context = n
		all, _, err := engine.MemoryOf(info, o.engine(info, m.drafting, 0, 0))
		return err == nil && uint64(all.Total()) <= bound
	}
	switch {
	case fits(own, half):
		return own
	case fits(most, half):
		return largest(most, own, func(n int) bool { return fits(n, half) })
	case fits(most, all):
		return most
	}
	return largest(min(contextStep, most), most, func(n int) bool { return fits(n, all) })
}

// largest returns the largest multiple of contextStep from low to high that fits, or low.
func largest(low, high int, fits func(int) bool) int {
	a, b := low/contextStep, high/contextStep+1 // a fits, b does not
	for a+1 < b {
		if n := (a + b) / 2; fits(n * contextStep) {
			a = n
		} else {
			b = n
		}
	}
	return max(low, a*contextStep)
}

// advised returns the context that a file's maker chose for it (num_ctx of a Modelfile); 0: none.
func advised(f *gguf.File) int {
	n, ok, err := f.Uint(ollama.KeyContext)
	if err != nil || !ok {
		return 0
	}
	return n
}

// oneStep reports that all tokens of a text are computed in one step.
func oneStep(info *model.Info) bool { return info.Whole() || info.Full || info.Source != nil }

// LogContext logs the tokens of a text, and why they are less than the model's own where nobody chose them.
func (m *Model) LogContext(log *slog.Logger) {
	tokens, own := m.Engine.Context(), m.Model.Info().Context
	if n := advised(m.File); m.life.asked != 0 || tokens >= own || tokens == n {
		log.Info("context", "tokens", tokens, "trained", own)
		return
	}
	if oneStep(m.Model.Info()) {
		log.Info("context", "tokens", tokens, "trained", own, "reason", "the tokens of a text are one step; -c gives more")
		return
	}
	memory := m.options.Memory
	if memory == 0 {
		memory = machine.Memory()
	}
	log.Warn("the context is less than the model's own", "tokens", tokens, "trained", own, "reason",
		fmt.Sprintf("more would take over half of what the weights leave of %.1f GiB; -c, --parallel below %d or --cache-type q8_0 give more",
			float64(memory)/(1<<30), m.options.Parallel))
}
