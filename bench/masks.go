package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"grove"
	"grove/internal/stat"
)

// MaskSchema is a schema, and texts with whether they are valid.
type MaskSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Tests  []struct {
		Valid bool            `json:"valid"`
		Data  json.RawMessage `json:"data"`
	} `json:"tests"`
}

// ReadMaskSchemas reads schemas in the layout of MaskBench, one JSON object a line, compressed by gzip or not. Errors name the line.
func ReadMaskSchemas(r io.Reader) ([]MaskSchema, error) {
	in := bufio.NewReader(r)
	if head, _ := in.Peek(2); string(head) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("bench: the schemas: %w", err)
		}
		in = bufio.NewReader(z)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, MaxWorkloadLine)
	var all []MaskSchema
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var s MaskSchema
		err := json.Unmarshal(lines.Bytes(), &s)
		if err == nil && len(s.Schema) == 0 {
			err = errors.New("it has no schema")
		}
		if err != nil {
			return nil, fmt.Errorf("bench: line %d of the schemas: %w", n, err)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("bench: the schemas: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("bench: there are no schemas")
	}
	return all, nil
}

// MaskTimes are times of masks in microseconds, each with the step behind it.
type MaskTimes struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

func maskTimes(us []float64) (t MaskTimes) {
	if len(us) == 0 {
		return t
	}
	us = slices.Sorted(slices.Values(us))
	sum := 0.0
	for _, x := range us {
		sum += x
	}
	return MaskTimes{len(us), sum / float64(len(us)), stat.Quantile(us, 0.5), stat.Quantile(us, 0.99), us[len(us)-1]}
}

// MaskFigures are the figures of one schema. A text counts as accepted where all its tokens are legal and it may end.
type MaskFigures struct {
	Name            string    `json:"name"`
	CompileUS       float64   `json:"compile_us"`
	FirstMaskUS     float64   `json:"first_mask_us"`
	Masks           MaskTimes `json:"masks"`
	ValidAccepted   int       `json:"valid_accepted"`
	ValidTotal      int       `json:"valid_total"`
	InvalidRejected int       `json:"invalid_rejected"`
	InvalidTotal    int       `json:"invalid_total"`
	Error           string    `json:"error,omitempty"`

	Peer *MaskPeerFigures `json:"peer,omitempty"`

	invalidRead int // invalid texts all of whose tokens are legal, though they may not end
}

// MaskCounts count schemas. Each is in one of the counts behind the first, in the order errors, invalid texts, valid texts.
type MaskCounts struct {
	Schemas       int `json:"schemas"`
	Passed        int `json:"passed"` // no error, all valid texts accepted, all invalid ones rejected
	CompileErrors int `json:"compile_errors"`
	Errors        int `json:"errors"`              // budgets that were spent behind the first mask
	Validation    int `json:"validation_errors"`   // schemas with a valid text that was rejected
	Invalidation  int `json:"invalidation_errors"` // schemas with an invalid text that was accepted
}

// MaskSummary is the sum over all schemas.
type MaskSummary struct {
	MaskCounts
	Unended int       `json:"invalid_without_end"` // invalid texts whose tokens are all legal, though they may not end there
	Compile MaskTimes `json:"compile"`
	First   MaskTimes `json:"first_mask"`
	Masks   MaskTimes `json:"masks"`
}

// MaskReport is the result of [Masks].
type MaskReport struct {
	Schemas []MaskFigures
	Summary MaskSummary
	Peer    *MaskPeerSummary // nil: none was measured
}

// MaskOptions control [Masks].
type MaskOptions struct {
	FreeOrder bool      // the members of objects come in any order
	Peer      *MaskPeer // if there is one, each schema goes through it too, behind its own measurement
}

// Masks compiles schemas, and reads their texts token by token with a mask before each, as MaskBench does: the texts are written with
// ", " and ": ", in the order of the file.
func Masks(ctx context.Context, m *grove.MaskMeter, schemas []MaskSchema, o MaskOptions, progress Progress) (*MaskReport, error) {
	r := &MaskReport{}
	var compile, first, steps []float64
	var peer peerSum
	for i, s := range schemas {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, all, err := measureSchema(m, s, o)
		if err == nil && o.Peer != nil {
			err = peer.measure(o.Peer, s, &f)
		}
		if err != nil {
			return nil, fmt.Errorf("bench: schema %q: %w", s.Name, err)
		}
		r.Schemas = append(r.Schemas, f)
		r.Summary.add(f)
		if f.FirstMaskUS > 0 {
			compile, first = append(compile, f.CompileUS), append(first, f.FirstMaskUS)
		}
		steps = append(steps, all...)
		progress.show(i+1, len(schemas))
	}
	r.Summary.Compile, r.Summary.First, r.Summary.Masks = maskTimes(compile), maskTimes(first), maskTimes(steps)
	if o.Peer != nil {
		r.Peer = peer.summary(o.Peer)
	}
	return r, nil
}

// texts returns the texts as they are read.
func (s MaskSchema) texts() ([]string, error) {
	var all []string
	for _, t := range s.Tests {
		text, err := spaced(t.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// measureSchema returns the figures of a schema, and the times of its masks.
func measureSchema(m *grove.MaskMeter, s MaskSchema, o MaskOptions) (f MaskFigures, steps []float64, err error) {
	f.Name = s.Name
	texts, err := s.texts()
	if err != nil {
		return f, nil, err
	}
	for _, t := range s.Tests {
		if t.Valid {
			f.ValidTotal++
		} else {
			f.InvalidTotal++
		}
	}
	got, err := m.Measure(grove.Constraint{Schema: s.Schema, FreeOrder: o.FreeOrder}, texts)
	f.CompileUS, f.FirstMaskUS = microseconds(got.Compile), microseconds(got.First)
	for _, d := range got.Steps {
		steps = append(steps, microseconds(d))
	}
	f.Masks = maskTimes(steps)
	for i, legal := range got.Legal {
		switch {
		case s.Tests[i].Valid && legal:
			f.ValidAccepted++
		case !s.Tests[i].Valid && !legal:
			f.InvalidRejected++
			if got.Read[i] {
				f.invalidRead++
			}
		}
	}
	if err != nil {
		f.Error = err.Error()
	}
	return f, steps, nil
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// add counts a schema.
func (s *MaskSummary) add(f MaskFigures) {
	s.Unended += f.invalidRead
	s.count(f.Error, f.FirstMaskUS == 0, f.InvalidRejected < f.InvalidTotal, f.ValidAccepted < f.ValidTotal)
}

// count counts a schema with an error, which came before the grammar was there or behind that, with accepted invalid or rejected valid texts.
func (c *MaskCounts) count(err string, refused, wrong, short bool) {
	c.Schemas++
	switch {
	case err != "" && refused:
		c.CompileErrors++
	case err != "":
		c.Errors++
	case wrong:
		c.Invalidation++
	case short:
		c.Validation++
	default:
		c.Passed++
	}
}

// WriteText writes the summary, and the schemas with errors.
func (r *MaskReport) WriteText(w io.Writer) error {
	for _, f := range r.Schemas {
		switch {
		case f.Error != "":
			fmt.Fprintf(w, "%s: %s\n", f.Name, f.Error)
		case f.ValidAccepted < f.ValidTotal || f.InvalidRejected < f.InvalidTotal:
			fmt.Fprintf(w, "%s: %d of %d valid texts accepted, %d of %d invalid ones rejected\n", f.Name, f.ValidAccepted, f.ValidTotal, f.InvalidRejected, f.InvalidTotal)
		}
	}
	s := r.Summary
	s.writeText(w, "")
	err := writeTimes(w, []namedTimes{{"compile", s.Compile}, {"first mask", s.First}, {"mask", s.Masks}})
	if r.Peer != nil {
		err = r.Peer.writeText(w)
	}
	return err
}

func (c MaskCounts) writeText(w io.Writer, who string) {
	fmt.Fprintf(w, "%s%d of %d schemas pass (%.1f %%); %d are refused, %d spend a budget, %d reject a valid text, %d accept an invalid one\n",
		who, c.Passed, c.Schemas, 100*float64(c.Passed)/float64(c.Schemas), c.CompileErrors, c.Errors, c.Validation, c.Invalidation)
}

type namedTimes struct {
	name string
	t    MaskTimes
}

func writeTimes(w io.Writer, lines []namedTimes) (err error) {
	for _, l := range lines {
		_, err = fmt.Fprintf(w, "%-16s %8d times, µs: mean %.1f, p50 %.1f, p99 %.1f, max %.1f\n", l.name, l.t.N, l.t.Mean, l.t.P50, l.t.P99, l.t.Max)
	}
	return err
}

// WriteJSON writes a line for each schema, and one of the summary.
func (r *MaskReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, f := range r.Schemas {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	return e.Encode(struct {
		Summary MaskSummary      `json:"summary"`
		Peer    *MaskPeerSummary `json:"peer,omitempty"`
	}{r.Summary, r.Peer})
}
