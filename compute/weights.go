package compute

import (
	"encoding/binary"
	"fmt"
	"math"

	"grove/internal/kernel"
	"grove/internal/par"
	"grove/quant"
	"grove/tensor"
)

// Weights owns the storage of a model's weights: it packs matrices for the kernels and gives the
// mapped pages back that it has copied. It is used while a model is opened, by one goroutine.
type Weights struct {
	pool    *par.Pool
	release func([]byte)
	pack    packTask
	bytes   int
}

// NewWeights makes an empty store. release, where it is not nil, is told of file bytes that are no
// longer read.
func NewWeights(pool *par.Pool, release func([]byte)) *Weights {
	return &Weights{pool: pool, release: release}
}

// Bytes returns the memory that the weights take, mapped or copied.
func (w *Weights) Bytes() int { return w.bytes }

// Matrix is a weight matrix, or a stack of them with one for each expert, as the kernels read it. It
// is read-only and safe for concurrent use.
type Matrix struct {
	format  *kernel.Format
	data    []byte
	out, k  int
	experts int
	stride  int // bytes of one expert
}

// Out returns the number of outputs, In the number of inputs, Experts the matrices in the stack.
func (m *Matrix) Out() int { return m.out }

// In returns the number of inputs.
func (m *Matrix) In() int { return m.k }

// Experts returns the number of matrices in the stack, 1 for a plain matrix.
func (m *Matrix) Experts() int { return m.experts }

// Bytes returns the bytes of one matrix of the stack.
func (m *Matrix) Bytes() int { return m.stride }

// Vector is a row of weights in float32: a norm's scale, a bias. It is read-only.
type Vector struct{ f []float32 }

// Len returns the number of weights.
func (v Vector) Len() int { return len(v.f) }

// Matrix stores the view [outputs, inputs] or [experts, outputs, inputs]. Types without a packed
// layout are read where they are, so the view's bytes must outlive the model. It returns an error that
// names the tensor where its type has no kernel.
func (w *Weights) Matrix(v tensor.View) (*Matrix, error) {
	if len(v.Shape) != 2 && len(v.Shape) != 3 {
		return nil, fmt.Errorf("compute: tensor %q has %d dimensions; a matrix has 2, a stack of experts 3", v.Name, len(v.Shape))
	}
	format, ok := kernel.FormatOf(v.Type)
	if !ok {
		return nil, fmt.Errorf("compute: tensor %q has type %v, which has no kernel", v.Name, v.Type)
	}
	m := &Matrix{format: format, experts: 1, out: v.Shape[len(v.Shape)-2], k: v.Shape[len(v.Shape)-1]}
	if len(v.Shape) == 3 {
		m.experts = v.Shape[0]
	}
	row, ok := v.Type.RowBytes(m.k)
	if !ok || m.k%format.BlockK != 0 || len(v.Data) != row*m.out*m.experts {
		return nil, fmt.Errorf("compute: tensor %q of type %v: %d bytes do not hold shape %v", v.Name, v.Type, len(v.Data), v.Shape)
	}
	if format.Group == 1 {
		m.data, m.stride = v.Data, row*m.out
		w.bytes += len(m.data)
		return m, nil
	}
	m.stride = format.PackedSize(m.out, m.k)
	m.data = make([]byte, m.stride*m.experts)
	w.pack = packTask{m: m, src: v.Data, groups: groupsOf(m), expertBytes: row * m.out}
	w.pool.Run(m.experts*w.pack.groups, &w.pack)
	w.bytes += len(m.data)
	if w.release != nil {
		w.release(v.Data)
	}
	return m, nil
}

// packTask packs one group of outputs of one expert.
type packTask struct {
	m           *Matrix
	src         []byte
	groups      int
	expertBytes int
}

func (t *packTask) Do(_, item int) {
	e, g := item/t.groups, item%t.groups
	m := t.m
	m.format.Pack(m.data[e*m.stride:(e+1)*m.stride], t.src[e*t.expertBytes:(e+1)*t.expertBytes], m.out, m.k, g, g+1)
}

func groupsOf(m *Matrix) int { return (m.out + m.format.Group - 1) / m.format.Group }

// Vector stores a view of one dimension as float32.
func (w *Weights) Vector(v tensor.View) (Vector, error) {
	if len(v.Shape) != 1 {
		return Vector{}, fmt.Errorf("compute: tensor %q has %d dimensions; a vector has 1", v.Name, len(v.Shape))
	}
	f := make([]float32, v.Shape[0])
	if v.Type == tensor.F32 && len(v.Data) == 4*len(f) {
		for i := range f {
			f[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:]))
		}
	} else if err := quant.Unpack(v.Type, f, v.Data); err != nil {
		return Vector{}, fmt.Errorf("compute: tensor %q: %w", v.Name, err)
	}
	w.bytes += 4 * len(f)
	return Vector{f: f}, nil
}

// Floats returns a copy of the weights, for settings that a model file stores as a tensor.
func (v Vector) Floats() []float32 { return append([]float32(nil), v.f...) }
