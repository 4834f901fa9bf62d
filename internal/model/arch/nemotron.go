package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("nemotron", openNemotron) }

// openNemotron opens Nemotron 3 and 4 and Minitron (Parmar et al. 2024; Muralidharan et al. 2024): GPT-2's layers, whose
// heads rotate in part, by halves, and whose feed-forward blocks have the square of ReLU. The weights of its norms are
// trained as distances from 1; files hold the sums.
func openNemotron(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	m := loadGPT2(l, s, l.Rope(s, true))
	m.activate = (*compute.Exec).ReluSquared
	return m
}
