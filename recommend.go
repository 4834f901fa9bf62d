package grove

import "grove/internal/sample"

// Advice has the settings that a model's file recommends for the draw of tokens. A field that is nil is not recommended, or the file's
// value cannot be honoured. The zero value recommends nothing.
type Advice = sample.Advice

// Advice returns what the model's file recommends for the draw of tokens, as [Info] has it.
func (m *Model) Advice() Advice { return m.advice }

// DefaultSampling returns the settings of `grove run` for the model: those of [DefaultSampling], where the model's file
// recommends none.
func (m *Model) DefaultSampling() Sampling {
	s, p := DefaultSampling(), Penalties{}
	if d := m.resident.Model.Info().Diffusion; d != nil && d.Renoise != nil {
		s = Sampling{Temperature: 1, Order: s.Order} // the file's schedule of temperatures is the draw
	}
	m.advice.Apply(&s, &p)
	return s
}

// DefaultPenalties returns the penalties of `grove run` for the model: those that the model's file recommends, if any.
func (m *Model) DefaultPenalties() Penalties {
	s, p := Sampling{}, Penalties{}
	m.advice.Apply(&s, &p)
	return p
}
