package wire

import (
	"errors"
	"strings"

	"grove"
)

// Diffusion is the field diffusion: how a model of masked diffusion fills the canvas of an answer.
type Diffusion struct {
	Steps  *int   `json:"steps" range:"1 65536"` // absent: one for each token
	Block  int    `json:"block" range:"0 65536"`
	Policy string `json:"policy" bytes:"256"`
	Cache  string `json:"cache" bytes:"64"`
	Blocks string `json:"blocks" bytes:"64"`
	Early  string `json:"early" bytes:"64"`
	Drafts int    `json:"drafts" range:"0 64"`

	Progress bool `json:"progress"` // of a stream: parts tell how far the canvas is
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

// Watched reports whether a stream tells how far the canvas is. An error is one of a request that does not stream.
func (d *Diffusion) Watched(streams bool) (bool, error) {
	if d == nil || !d.Progress || streams {
		return d != nil && d.Progress, nil
	}
	return false, Refuse("diffusion.progress", "diffusion.progress: it is of streams, and stream is not true")
}

// Canvas returns the runs of a canvas as the routes send them: a text, or the number of masks.
func Canvas(runs []grove.CanvasRun) (all []any) {
	for _, r := range runs {
		if r.Masks > 0 {
			all = append(all, r.Masks)
		} else {
			all = append(all, r.Text)
		}
	}
	return all
}

// canvasField returns the field that an error of a canvas blames; "": none.
func canvasField(err error) string {
	of := new(grove.DiffusionError)
	switch {
	case !errors.As(err, &of):
		return ""
	case of.Setting == "length":
		return "max_tokens"
	case of.Setting == "":
		return "model"
	case strings.Contains(" steps block policy cache blocks early drafts ", " "+of.Setting+" "):
		return "diffusion." + of.Setting
	}
	return of.Setting
}
