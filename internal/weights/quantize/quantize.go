// Package quantize writes models with their weights in other types: smaller ones, by the mixes that
// llama.cpp knows by name.
package quantize

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Job is a model and the types that its tensors get.
type Job struct {
	file     *gguf.File
	metadata []gguf.KV
	tensors  []tensor.View // of the file to write, without Data
	size     int64
}

// New plans the file that [Job.Write] writes: the metadata and tensors of f, in the types of the mix of
// that name; [Keep] leaves the types as they are. Weights that are quantised already get another type only if again is
// set. f must stay open until Write returns.
func New(f *gguf.File, name string, again bool) (*Job, error) {
	m, err := mixOf(name)
	if err != nil {
		return nil, fmt.Errorf("quantize: %w", err)
	}
	c, err := newChooser(f, m)
	if err != nil {
		return nil, err
	}
	j := &Job{file: f}
	for _, t := range f.Tensors {
		to := c.typeOf(t)
		if err := supported(t, to, again); err != nil {
			return nil, err
		}
		j.size += int64(t.Bytes())
		j.tensors = append(j.tensors, tensor.View{Name: t.Name, Type: to, Shape: t.Shape})
	}
	replaced := []string{"general.file_type", "general.quantization_version", "split.no", "split.count", "split.tensors.count"}
	for _, kv := range f.Metadata {
		if !slices.Contains(replaced, kv.Key) {
			j.metadata = append(j.metadata, kv)
		}
	}
	j.metadata = append(j.metadata,
		gguf.KV{Key: "general.quantization_version", Value: gguf.Of(uint32(2))},
		gguf.KV{Key: "general.file_type", Value: gguf.Of(c.fileType(j.tensors))})
	return j, nil
}

// InMemory returns a model with its weights in the types of the mix of that name, whatever they were: a file in memory, which keeps nothing of f.
func InMemory(f *gguf.File, name string, pool *par.Pool) (*gguf.File, error) {
	j, err := New(f, name, true)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := j.Write(context.Background(), &b, pool, nil); err != nil {
		return nil, err
	}
	return gguf.Parse(b.Bytes())
}

// Size returns the bytes that Write reads, which it counts as its progress.
func (j *Job) Size() int64 { return j.size }

// Tensors returns the tensors of the file to write, without their bytes.
func (j *Job) Tensors() []tensor.View { return slices.Clone(j.tensors) }

const (
	itemElems  = 1 << 15 // elements of one item of work, in whole rows: some hundred microseconds
	batchItems = 128     // items whose results are written together
)

// Write writes the file. Progress, if it is not nil, is called with the bytes read so far. Weights that are
// not finite, or too large for their new type, are refused. Write needs a few megabytes of memory and the largest
// tensor that has to be made (see [gguf.File.Load]). The same file and mix give the same bytes. When ctx ends, Write soon
// returns its error.
func (j *Job) Write(ctx context.Context, w io.Writer, pool *par.Pool, progress func(done int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	t := &task{scratch: make([][]float32, pool.Threads())}
	var done int64
	return gguf.Stream(w, j.metadata, j.tensors, func(w io.Writer, i int) error {
		v, err := j.file.Load(j.file.Tensors[i])
		if err != nil {
			return err
		}
		t.begin(v, j.tensors[i].Type)
		for t.first < t.rows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			out, err := t.batch(pool)
			if err != nil {
				return err
			}
			if _, err := w.Write(out); err != nil {
				return err
			}
			progress(done + int64(t.first)*int64(t.inRow))
		}
		done += int64(len(v.Data))
		j.file.Release(v.Data)
		return j.file.Check()
	})
}

// task changes the type of a tensor, batch by batch; an item is some rows.
type task struct {
	view          tensor.View
	to            tensor.Type
	limit         float32 // the largest magnitude that stays finite in it
	rows, elems   int     // rows of the tensor, elements of a row
	inRow, outRow int     // bytes of a row
	perItem       int     // rows
	first, end    int     // rows of the batch
	out           []byte
	scratch       [][]float32 // of each worker: a row
	mu            sync.Mutex
	failed        error // of the lowest row that failed
	failedAt      int
}

func (t *task) begin(v tensor.View, to tensor.Type) {
	t.view, t.to = v, to
	if codec, ok := tensor.CodecOf(to); ok {
		t.limit = cmp.Or(codec.Max, math.MaxFloat32)
	}
	t.elems = v.Shape[len(v.Shape)-1]
	t.rows = v.Elems() / t.elems
	t.inRow, _ = v.Type.RowBytes(t.elems)
	t.outRow, _ = to.RowBytes(t.elems)
	t.perItem = max(1, itemElems/t.elems)
	t.first = 0
	for i := range t.scratch {
		t.scratch[i] = slices.Grow(t.scratch[i][:0], t.elems)[:t.elems]
	}
}

// batch converts the next rows and returns their bytes, which are valid until the next call.
func (t *task) batch(pool *par.Pool) ([]byte, error) {
	first := t.first
	t.end = min(t.rows, first+batchItems*t.perItem)
	if t.view.Type == t.to {
		t.first = t.end
		return t.view.Data[first*t.inRow : t.end*t.inRow], nil
	}
	size := (t.end - first) * t.outRow
	t.out = slices.Grow(t.out[:0], size)[:size]
	pool.Run((t.end-first+t.perItem-1)/t.perItem, t)
	t.first = t.end
	return t.out, t.failed
}

// Do implements [par.Task].
func (t *task) Do(worker, item int) {
	from := t.first + item*t.perItem
	for row := from; row < min(from+t.perItem, t.end); row++ {
		if err := t.row(t.scratch[worker], row); err != nil {
			t.fail(row, err)
			return
		}
	}
}

func (t *task) row(x []float32, row int) error {
	if err := tensor.Unpack(t.view.Type, x, t.view.Data[row*t.inRow:][:t.inRow]); err != nil {
		return err
	}
	for i, v := range x {
		if !(v <= t.limit && v >= -t.limit) {
			return fmt.Errorf("element %d is %v; %v holds values within ±%v", i, v, t.to, t.limit)
		}
	}
	return tensor.Pack(t.to, t.out[(row-t.first)*t.outRow:][:t.outRow], x)
}

// fail keeps the error of the lowest row, so that the message does not depend on the threads.
func (t *task) fail(row int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil || row < t.failedAt {
		t.failed = fmt.Errorf("quantize: %s: row %d: %w", tensor.Label(t.view.Name), row, err)
		t.failedAt = row
	}
}
