package flags

import "grove"

// Diffusion says how a model of masked diffusion fills the canvas of an answer, which has -n tokens.
type Diffusion struct {
	Steps  Count        `name:"steps" placeholder:"N" var:"GROVE_STEPS" help:"Of a diffusion model: passes over the canvas of -n tokens, for policies that count them; 0: one for each token."`
	Block  Count        `name:"block" placeholder:"N" var:"GROVE_BLOCK" help:"Of a diffusion model: tokens of a block; blocks are filled one after the other. 0: the canvas is one."`
	Policy canvasPolicy `name:"policy" placeholder:"NAME:OPTIONS" var:"GROVE_POLICY" help:"Of a diffusion model: which tokens a pass fixes, such as threshold:p=0.9 (see grove methods)."`
	Keys   canvasCache  `name:"canvas-cache" placeholder:"NAME:OPTIONS" var:"GROVE_CANVAS_CACHE" help:"Of a diffusion model: whose keys of earlier passes a pass sees, such as dual or window:masks=64 (see grove methods); all but none are lossy."`
	Blocks canvasBlocks `name:"blocks" placeholder:"adaptive:P" var:"GROVE_BLOCKS" help:"Of a diffusion model: end a block behind the end of a line that has at least the probability P."`
	Early  canvasEarly  `name:"early" placeholder:"prophet|end" var:"GROVE_EARLY" help:"Of a diffusion model: prophet fixes all tokens once they are sure; end ends the canvas with the text."`
	Drafts Count        `name:"canvas-drafts" placeholder:"N" var:"GROVE_CANVAS_DRAFTS" help:"Of a diffusion model with the policy static: states of the canvas that a pass verifies (FreeDave). The text is the same."`
}

// Setting returns what the flags say; nil: nothing.
func (d Diffusion) Setting() *grove.Diffusion {
	if d == (Diffusion{}) {
		return nil
	}
	return &grove.Diffusion{Steps: int(d.Steps), Block: int(d.Block), Policy: string(d.Policy), Cache: string(d.Keys), Blocks: string(d.Blocks), Early: string(d.Early), Drafts: int(d.Drafts)}
}

type (
	canvasPolicy string
	canvasCache  string
	canvasBlocks string
	canvasEarly  string
)

// Validate implements the check of kong's values.
func (p canvasPolicy) Validate() error {
	return grove.CheckDiffusion(grove.Diffusion{Policy: string(p)})
}

// Validate implements the check of kong's values.
func (c canvasCache) Validate() error { return grove.CheckDiffusion(grove.Diffusion{Cache: string(c)}) }

// Validate implements the check of kong's values.
func (b canvasBlocks) Validate() error {
	return grove.CheckDiffusion(grove.Diffusion{Blocks: string(b)})
}

// Validate implements the check of kong's values.
func (e canvasEarly) Validate() error { return grove.CheckDiffusion(grove.Diffusion{Early: string(e)}) }
