package flags

import (
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"

	"grove"
)

// Diffusion says how a model of masked diffusion fills the canvas of an answer, which has -n tokens.
type Diffusion struct {
	CanvasSteps
	Policy canvasName `name:"policy" placeholder:"NAME:OPTIONS" var:"GROVE_POLICY" help:"Of a diffusion model: which tokens a pass fixes, such as threshold:p=0.9 (see grove methods)."`
	Keys   canvasName `name:"canvas-cache" placeholder:"NAME:OPTIONS" var:"GROVE_CANVAS_CACHE" help:"Of a diffusion model: whose keys of earlier passes a pass sees, such as dual or window:masks=64 (see grove methods); all are lossy but for none and, of a model of blocks, blocks, its usual one."`
	Blocks canvasName `name:"blocks" placeholder:"adaptive:P" var:"GROVE_BLOCKS" help:"Of a diffusion model: end a block behind the end of a line that has at least the probability P."`
	Early  canvasName `name:"early" placeholder:"prophet|end" var:"GROVE_EARLY" help:"Of a diffusion model: prophet fixes all tokens once they are sure; end ends the canvas with the text."`
	Drafts Count      `name:"canvas-drafts" placeholder:"N" var:"GROVE_CANVAS_DRAFTS" help:"Of a diffusion model with the policy static: states of the canvas that a pass verifies (FreeDave). The text is the same."`
}

// CanvasSteps is --steps and --block.
type CanvasSteps struct {
	Steps stepCount `name:"steps" placeholder:"N" var:"GROVE_STEPS" help:"Of a diffusion model: passes over the canvas of -n tokens, for policies that count them, from 1 up; without it, one for each token."`
	Block Count     `name:"block" placeholder:"N" var:"GROVE_BLOCK" help:"Of a diffusion model: tokens of a block; blocks are filled one after the other. 0: the canvas is one, or the length that the model has."`
}

// Setting returns what the flags say; nil: nothing.
func (d Diffusion) Setting() *grove.Diffusion {
	if d == (Diffusion{}) {
		return nil
	}
	return &grove.Diffusion{Steps: int(d.Steps), Block: int(d.Block), Policy: string(d.Policy), Cache: string(d.Keys), Blocks: string(d.Blocks), Early: string(d.Early), Drafts: int(d.Drafts)}
}

// canvasName is the name of one of the settings of [grove.Diffusion], with its options. The name of its flag says which.
type canvasName string

// Decode implements [kong.MapperValue]: it refuses a name that there is not.
func (n *canvasName) Decode(ctx *kong.DecodeContext) error {
	if err := ctx.Scan.PopValueInto("name", (*string)(n)); err != nil {
		return err
	}
	var d grove.Diffusion
	*map[string]*string{"policy": &d.Policy, "canvas-cache": &d.Cache, "blocks": &d.Blocks, "early": &d.Early}[ctx.Value.Name] = string(*n)
	return grove.CheckDiffusion(d)
}

// stepCount is a number from 1 up.
type stepCount int

// UnmarshalText implements [encoding.TextUnmarshaler].
func (n *stepCount) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil || v == 0 {
		return fmt.Errorf("%.20q; it must be a number from 1 up", text)
	}
	*n = stepCount(v)
	return nil
}
