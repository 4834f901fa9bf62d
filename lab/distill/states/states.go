// Package states writes the states that a model computes of texts, for the training of drafting heads: they have the bits of inference.
package states

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"grove"
	"grove/internal/text/token"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// Options say of what texts which states are written.
type Options struct {
	States grove.StatesOptions
	Type   tensor.Type // of the values: F32, F16

	Texts     Texts  // the texts, unless IDs names a file
	IDs       string // a file of token ids, little-endian numbers of Bytes bytes
	Bytes     int    // of an id: 2 (without a sign), 4
	Length    int    // tokens of a text at most: what is longer is cut into texts of so many; 0: the model's context
	MaxTokens int    // tokens of all texts together, at most; 0: any

	Metadata map[string]string // of the file, besides model, sample_digest and numerics
	// Progress, where it is not nil, is told how many tokens are computed, of all, by a goroutine that computes. It must not wait.
	Progress func(done, all int)
}

// Texts calls do with the name and the content of each text, until do returns an error, which it returns. It is called twice, and must give the same
// texts again.
type Texts func(do func(name, text string) error) error

// Final is the name of the tensor of states behind the final norm.
const Final = "final"

// Layer returns the name of the tensor of the residual stream behind the first k layers.
func Layer(k int) string { return fmt.Sprintf("layer.%d", k) }

// Write writes the states of texts as a safetensors file: the tensors ids [n] (I32), the ids of all texts one behind the other; starts [m+1] (I64), where each
// of the m texts begins in it, and n; and [n, width] of the type, for each layer of the states and the final ones, [Layer] and [Final]. It counts the texts first, so that
// neither they nor the states are ever in memory together. It returns their number, and that of their tokens.
//
// Each text begins at index 0, with nothing before it. Where the model asks for tokens that begin a text, each has them, also one that was cut off; special
// tokens that a text spells are plain text. Ids of a file are computed exactly as they are.
//
// Errors: a [*grove.OptionError], those of [grove.Model.States]; a text that is empty, or a file of ids that ends within one, or that has one beyond the
// vocabulary; a value that the type cannot hold; texts that differ when they are given again; to's, ctx's.
func Write(ctx context.Context, m *grove.Model, o Options, to io.WriterAt) (texts, tokens int, err error) {
	w := &writer{m: m, o: o}
	if err := w.open(); err != nil {
		return 0, 0, err
	}
	err = w.each(ctx, func(ids []token.ID) error {
		texts, tokens = texts+1, tokens+len(ids)
		return nil
	})
	switch {
	case err != nil:
		return 0, 0, err
	case texts == 0:
		return 0, 0, errors.New("states: there is no text")
	}
	if err := w.begin(to, texts, tokens); err != nil {
		return 0, 0, err
	}
	if err := w.each(ctx, func(ids []token.ID) error { return w.text(ctx, ids) }); err != nil {
		return 0, 0, err
	}
	if w.done < w.all {
		return 0, 0, errChanged
	}
	if err := w.start(); err != nil {
		return 0, 0, err
	}
	return texts, tokens, w.file.Close()
}

var errChanged = errors.New("states: the texts have changed: they had another number of tokens when they were counted")

// writer writes the file.
type writer struct {
	m     *grove.Model
	o     Options
	first []token.ID // with which each text begins

	all, done int // tokens
	file      *safetensors.Writer
	names     []string // of the tensors of states
	buf       []byte
}

// The tensors before those of states.
const (
	idsPart = iota
	startsPart
	statesPart
)

// begin writes the header.
func (w *writer) begin(to io.WriterAt, texts, tokens int) (err error) {
	w.all = tokens
	parts := []safetensors.Tensor{{Name: "ids", Type: "I32", Shape: []int{tokens}}, {Name: "starts", Type: "I64", Shape: []int{texts + 1}}}
	for _, k := range w.o.States.Layers {
		w.names = append(w.names, Layer(k))
	}
	if w.o.States.Final {
		w.names = append(w.names, Final)
	}
	info := w.m.Info()
	for _, name := range w.names {
		parts = append(parts, safetensors.Tensor{Name: name, Type: safetensors.DType(w.o.Type.String()), Shape: []int{tokens, info.Width}})
	}
	metadata := map[string]string{"model": info.Name, "sample_digest": fmt.Sprintf("%x", info.SampleDigest), "numerics": grove.Numerics}
	maps.Copy(metadata, w.o.Metadata)
	w.file, err = safetensors.NewWriter(to, metadata, parts...)
	return err
}

// text writes a text and its states.
func (w *writer) text(ctx context.Context, ids []token.ID) error {
	if len(ids) > w.all-w.done {
		return errChanged
	}
	if err := w.start(); err != nil {
		return err
	}
	w.buf = w.buf[:0]
	for _, id := range ids {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(id))
	}
	if err := w.file.Append(idsPart, w.buf); err != nil {
		return err
	}
	return w.m.States(ctx, ids, w.o.States, func(states [][]float32) error {
		for i, row := range states {
			if err := w.row(i, row); err != nil {
				return err
			}
		}
		if w.done++; w.o.Progress != nil {
			w.o.Progress(w.done, w.all)
		}
		return nil
	})
}

// start writes where the next text begins.
func (w *writer) start() error {
	w.buf = binary.LittleEndian.AppendUint64(w.buf[:0], uint64(w.done))
	return w.file.Append(startsPart, w.buf)
}

// row writes a state.
func (w *writer) row(i int, row []float32) error {
	const beyond = 65520 // rounds to infinity as F16
	for _, v := range row {
		if w.o.Type == tensor.F16 && math.Abs(float64(v)) >= beyond {
			return fmt.Errorf("states: %s of token %d has the value %v, and F16 reaches 65504; write F32", w.names[i], w.done, v)
		}
	}
	bytes, _ := w.o.Type.RowBytes(len(row))
	w.buf = slices.Grow(w.buf[:0], bytes)[:bytes]
	if err := tensor.Pack(w.o.Type, w.buf, row); err != nil {
		return fmt.Errorf("states: %w", err)
	}
	return w.file.Append(statesPart+i, w.buf)
}
