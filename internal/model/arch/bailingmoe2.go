package arch

import "grove/internal/model"

func init() { model.Register("bailingmoe2", openBailingMoE2) }

// openBailingMoE2 opens Ling 2 (Ling team 2025): the layers of dots.llm1 with queries, keys and values in one tensor.
// Experts are chosen from the best groups.
func openBailingMoE2(l *model.Loader) model.Model { return openNormedMixture(l) }
