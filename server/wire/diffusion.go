package wire

import "grove"

// Diffusion is the field diffusion: how a model of masked diffusion fills the canvas of an answer.
type Diffusion struct {
	Steps  *int   `json:"steps" range:"1 65536"` // absent: one for each token
	Block  int    `json:"block" range:"0 65536"`
	Policy string `json:"policy" bytes:"256"`
	Cache  string `json:"cache" bytes:"64"`
	Blocks string `json:"blocks" bytes:"64"`
	Early  string `json:"early" bytes:"64"`
	Drafts int    `json:"drafts" range:"0 64"`
}

// setting returns what the field says; nil: nothing.
func (d *Diffusion) setting() *grove.Diffusion {
	if d == nil {
		return nil
	}
	s := &grove.Diffusion{Block: d.Block, Policy: d.Policy, Cache: d.Cache, Blocks: d.Blocks, Early: d.Early, Drafts: d.Drafts}
	Set(&s.Steps, d.Steps)
	return s
}
