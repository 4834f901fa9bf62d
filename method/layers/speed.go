package layers

import "grove/method"

// Tokens returns how many tokens a round gives on average: the drafts of a chain that are accepted, each with the chance alpha where the
// one before it was, and the token behind them.
func Tokens(alpha float64, drafts int) float64 {
	all, chance := 1.0, 1.0
	for range drafts {
		chance *= alpha
		all += chance
	}
	return all
}

// Model predicts how long the rounds of a model take that drafts with its own layers.
type Model struct {
	method.Steps
	Layers int
}

// Units returns the times of a model in units of a layer: rows beside each other and the head take none. With them the rate of a chain is
// the tokens per layer of DEL (2025).
func Units(layers int) Model { return Model{units{}, layers} }

type units struct{}

func (units) LayerSeconds(_, layers int) float64 { return float64(layers) }

func (units) HeadSeconds(int) float64 { return 0 }

// Plain returns the tokens a second of plain decoding.
func (m Model) Plain() float64 { return 1 / (m.LayerSeconds(1, m.Layers) + m.HeadSeconds(1)) }

// Exit returns the seconds of a round whose drafts come from the first layers: each but the last leaves its row, which the verifying
// step takes further.
func (m Model) Exit(layers, drafts int) float64 {
	rows := drafts + 1
	passes := float64(drafts) * (m.LayerSeconds(1, layers) + m.HeadSeconds(1))
	return passes + m.LayerSeconds(1, layers) + m.LayerSeconds(rows, m.Layers-layers) + m.HeadSeconds(rows)
}

// Skip returns the seconds of a round whose drafts pass over so much of the model as a number of layers: the verifying step runs all layers of all rows.
func (m Model) Skip(passed float64, drafts int) float64 {
	rows := drafts + 1
	pass := m.LayerSeconds(1, m.Layers) * (float64(m.Layers) - passed) / float64(m.Layers)
	return float64(drafts)*(pass+m.HeadSeconds(1)) + m.LayerSeconds(rows, m.Layers) + m.HeadSeconds(rows)
}

// Best returns the number of drafts, from 1 to most, that gives the most tokens a second where each is accepted with the chance alpha, and that
// rate. round is [Model.Exit] or [Model.Skip], and n its layers. Of equals it is the smaller number.
func Best[N int | float64](alpha float64, n N, most int, round func(n N, drafts int) float64) (drafts int, rate float64) {
	for d := 1; d <= most; d++ {
		if r := Tokens(alpha, d) / round(n, d); r > rate {
			drafts, rate = d, r
		}
	}
	return drafts, rate
}
