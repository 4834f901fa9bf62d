// Package fill gives the tokens of an answer whose canvases passes of an engine fill, as soon as they are certain from the beginning on.
package fill

import (
	"context"
	"errors"

	"grove/diffuse"
	"grove/internal/engine"
	"grove/internal/sample"
)

// Answer has the settings of an answer's canvases, of masks or of random tokens.
type Answer struct {
	Masks  *diffuse.Settings
	Random *diffuse.RenoiseSettings // nil: Masks
}

// Watch lets f be told of the canvas before each pass.
func (a *Answer) Watch(f func([]diffuse.Run)) {
	if a.Random != nil {
		a.Random.Watch = f
	} else {
		a.Masks.Watch = f
	}
}

// Request has all that decides the tokens of an answer.
type Request struct {
	Answer
	diffuse.Draws
	Terms    engine.Terms
	Session  string              // the file of a session, which may hold keys of the prompt's beginning; "": none
	Progress func(done, all int) // is told how many tokens of the prompt before canvases of random tokens are computed; nil: nobody is
}

// canvas is a [diffuse.Generator] or a [diffuse.Renoiser].
type canvas interface {
	Next(ctx context.Context) (p diffuse.Place, more bool, err error)
	Ended() bool
	Stats() diffuse.Stats
}

// Canvas is an answer that is filled. It is for one goroutine.
type Canvas struct {
	canvas canvas
	board  *Board
}

// Open begins an answer. It must be closed. Errors: those of [OpenBoard] and of the settings.
func Open(e *engine.Engine, r *Request) (*Canvas, error) {
	c, places := &Canvas{}, r.Masks
	if r.Random != nil {
		places = &diffuse.Settings{Length: r.Random.Length}
	}
	var err error
	if c.board, err = OpenBoard(e, places, len(r.Prompt), r.Terms); err != nil {
		return nil, err
	}
	c.board.SetSession(r.Session)
	if r.Random != nil {
		err = c.openRandom(r)
	} else {
		err = c.openMasks(r)
	}
	if err != nil {
		return nil, errors.Join(err, c.board.Close())
	}
	return c, nil
}

func (c *Canvas) openMasks(r *Request) error {
	sampler, err := diffuse.NewSampler(r.Draws, r.Masks.Left)
	if err != nil {
		return err
	}
	c.canvas, err = diffuse.New(r.Prompt, *r.Masks, c.board, sampler)
	return err
}

func (c *Canvas) openRandom(r *Request) error {
	shaper, err := diffuse.NewShaper(r.Draws)
	if err != nil {
		return err
	}
	if r.Progress != nil {
		r.Progress(0, len(r.Prompt))
		c.board.SetProgress(r.Progress)
	}
	c.canvas, err = diffuse.NewRenoiser(r.Prompt, *r.Random, c.board, shaper)
	return err
}

// Close gives the answer's place back.
func (c *Canvas) Close() error { return c.board.Close() }

// Save writes what the cache has of the prompt and of finished blocks and canvases to the file of a session. Errors: [engine.ErrSession].
func (c *Canvas) Save(path string) error { return c.board.Save(path) }

// Restored reports whether keys were read from the file of a session.
func (c *Canvas) Restored() bool { return c.board.Restored() }

// Reused returns how many tokens of the prompt the cache had.
func (c *Canvas) Reused() int { return c.board.Reused() }

// Ended reports whether Next has given all of a text that ended before its length.
func (c *Canvas) Ended() bool { return c.canvas.Ended() }

// Stats returns how the canvases were filled so far.
func (c *Canvas) Stats() diffuse.Stats { return c.canvas.Stats() }

// Next returns the next token, and runs as many passes as it takes. Errors: [engine.ErrContext] behind the last token; ctx's, and those of a pass.
func (c *Canvas) Next(ctx context.Context) (engine.SampledToken, error) {
	p, more, err := c.canvas.Next(ctx)
	c.board.SetProgress(nil) // the prompt is read
	if err == nil && !more {
		err = engine.ErrContext
	}
	return engine.SampledToken{Token: sample.Token{ID: p.ID, Logprob: p.Logprob()}, Top: p.Top()}, err
}
