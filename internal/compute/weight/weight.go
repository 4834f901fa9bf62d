// Package weight stores the weights of a model as the kernels read them: packed, or as the file has them.
package weight

import (
	"encoding/binary"
	"fmt"
	"math"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/machine"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// Store owns the storage of a model's weights: it packs matrices for the kernels and gives the
// mapped pages back that it has copied. It is used while a model is opened, by one goroutine.
type Store struct {
	// Keep leaves matrices as the file has them: they are packed group by group whenever they are
	// multiplied, which gives the same bits, takes longer, and no memory beyond the mapping.
	Keep bool

	pool    *par.Pool
	release func([]byte)
	pack    packTask
	bytes   int
	room    []byte // for the next matrices
	numbers int    // that [Store.Adaptable] gave
}

// New makes an empty store. release, where it is not nil, is told of file bytes that are no
// longer read.
func New(pool *par.Pool, release func([]byte)) *Store {
	return &Store{pool: pool, release: release}
}

// Pool returns the threads that pack.
func (w *Store) Pool() *par.Pool { return w.pool }

// Bytes returns the memory that the weights take, mapped or copied.
func (w *Store) Bytes() int { return w.bytes }

// Matrix is a weight matrix, or a stack of them with one for each expert, as the kernels read it. It
// is read-only and safe for concurrent use.
type Matrix struct {
	// Format is the type of the weights.
	Format *matmul.Format

	data    []byte
	out, k  int
	experts int
	stride  int // bytes of one expert
	row     int // bytes of an output where data is the file's, 0 where it is packed

	number, lookup int // by which adapters know it; 0: they cannot add to it

	whole *Matrix // that holds it beside others, from a group on; nil: none
	group int
}

// Out returns the number of outputs.
func (m *Matrix) Out() int { return m.out }

// Packed reports whether the matrix is packed for the kernels; otherwise it is whenever it is multiplied.
func (m *Matrix) Packed() bool { return m.row == 0 }

// Experts returns the number of matrices of the stack.
func (m *Matrix) Experts() int { return m.experts }

// In returns the number of inputs.
func (m *Matrix) In() int { return m.k }

// Multiply computes the groups [first, end) of outputs of one expert for all rows. s is the scratch of the
// calling thread.
func (m *Matrix) Multiply(dst []float32, stride, expert, first, end int, rows *kernel.Rows, s *matmul.Scratch) {
	data := m.data[expert*m.stride : (expert+1)*m.stride]
	if m.row == 0 {
		m.Format.MatMul(dst, stride, data, m.out, m.k, first, end, rows, s)
		return
	}
	packed := s.Room(m.Format.PackedSize(m.Format.Group, m.k))
	for g := first; g < end; g++ {
		o := g * m.Format.Group
		n := min(m.Format.Group, m.out-o)
		m.Format.Pack(packed, data[o*m.row:(o+n)*m.row], n, m.k, 0, 1, s)
		m.Format.MatMul(dst[o:], stride, packed, n, m.k, 0, 1, rows, s)
	}
}

// Embedding writes the weights of one output to dst. s is the scratch of the calling thread.
func (m *Matrix) Embedding(dst []float32, o int, s *matmul.Scratch) {
	if m.row == 0 {
		m.Format.Row(dst, m.data, m.out, m.k, o, s)
		return
	}
	if err := tensor.Unpack(m.Format.Type, dst, m.data[o*m.row:(o+1)*m.row]); err != nil {
		panic(err) // a type with a kernel can be unpacked
	}
}

// Bytes returns the bytes of one matrix of the stack.
func (m *Matrix) Bytes() int { return m.stride }

// Vector is a row of weights in float32: a norm's scale, a bias. It is read-only.
type Vector struct {
	F []float32 // empty: there is none
}

// Len returns the number of weights.
func (v Vector) Len() int { return len(v.F) }

// Part returns n weights from place first on, and of no weights none.
func (v Vector) Part(first, n int) Vector {
	if v.F == nil {
		return v
	}
	return Vector{F: v.F[first : first+n]}
}

// Shape returns a packed matrix without weights, for predictions of what products of its shape cost.
func Shape(format *matmul.Format, experts, out, k int) *Matrix {
	return &Matrix{Format: format, out: out, k: k, experts: experts, stride: format.PackedSize(out, k)}
}

// Matrix stores the view [outputs, inputs] or [experts, outputs, inputs]. With Keep it is read where it is,
// so that the view's bytes must outlive the model. It returns an error that names the tensor where its
// type has no kernel.
func (w *Store) Matrix(v tensor.View) (*Matrix, error) {
	shape, err := shaped(v)
	if err != nil {
		return nil, err
	}
	m := &shape
	if w.Keep {
		m.row, _ = v.Type.RowBytes(m.k)
		m.data, m.stride = v.Data, m.row*m.out
		w.bytes += len(m.data)
		return m, nil
	}
	m.data = w.take(m.stride * m.experts)
	w.packed(m, v.Data)
	return m, nil
}

// shaped returns the packed matrix of a view, without its data.
func shaped(v tensor.View) (Matrix, error) {
	if len(v.Shape) != 2 && len(v.Shape) != 3 {
		return Matrix{}, fmt.Errorf("weight: %s: %d dimensions; a matrix has 2, a stack of experts 3", tensor.Label(v.Name), len(v.Shape))
	}
	format, ok := matmul.FormatOf(v.Type)
	if !ok {
		return Matrix{}, fmt.Errorf("weight: %s: type %v has no kernel; use a file of another type, such as Q8_0", tensor.Label(v.Name), v.Type)
	}
	m := Matrix{Format: format, experts: 1, out: v.Shape[len(v.Shape)-2], k: v.Shape[len(v.Shape)-1]}
	if len(v.Shape) == 3 {
		m.experts = v.Shape[0]
	}
	row, ok := v.Type.RowBytes(m.k)
	if !ok || m.k%format.BlockK != 0 || len(v.Data) != row*m.out*m.experts {
		return Matrix{}, fmt.Errorf("weight: %s: %d bytes do not hold shape %v in type %v", tensor.Label(v.Name), len(v.Data), v.Shape, v.Type)
	}
	m.stride = format.PackedSize(m.out, m.k)
	return m, nil
}

// packed packs a file's bytes into a matrix.
func (w *Store) packed(m *Matrix, data []byte) {
	if w.pack.scratch == nil {
		w.pack.scratch = make([]matmul.Scratch, w.pool.Threads())
	}
	w.pack = packTask{m: m, src: data, groups: m.Groups(), expertBytes: len(data) / m.experts, scratch: w.pack.scratch}
	w.pool.Run(m.experts*w.pack.groups, &w.pack)
	w.bytes += len(m.data)
	if w.release != nil {
		w.release(data)
	}
}

// take returns n bytes of zeros. Matrices share allocations that grow with the model, so that large pages hold all but
// their ends.
func (w *Store) take(n int) []byte {
	const (
		page    = 4096
		maxRoom = 32 << 20
	)
	size := (n + page - 1) &^ (page - 1)
	if size > len(w.room) {
		fresh := make([]byte, max(size, min(w.bytes, maxRoom)))
		machine.HugePages(fresh)
		if len(fresh)-size < len(w.room) {
			return fresh[:n:n]
		}
		w.room = fresh
	}
	data := w.room[:n:n]
	w.room = w.room[size:]
	return data
}

// packTask packs one group of outputs of one expert.
type packTask struct {
	m           *Matrix
	src         []byte
	groups      int
	expertBytes int
	scratch     []matmul.Scratch // by worker
}

// Do implements [par.Task].
func (t *packTask) Do(worker, item int) {
	e, g := item/t.groups, item%t.groups
	m := t.m
	m.Format.Pack(m.data[e*m.stride:(e+1)*m.stride], t.src[e*t.expertBytes:(e+1)*t.expertBytes], m.out, m.k, g, g+1, &t.scratch[worker])
}

// Groups returns the number of groups of outputs of one expert.
func (m *Matrix) Groups() int { return m.Format.Groups(m.out) }

// GroupBytes returns the bytes of a group of outputs of one expert, of a matrix that is not empty.
func (m *Matrix) GroupBytes() int { return m.stride / max(1, m.Groups()) }

// Vector stores a view of one dimension as float32.
func (w *Store) Vector(v tensor.View) (Vector, error) {
	if len(v.Shape) != 1 {
		return Vector{}, fmt.Errorf("weight: %s: %d dimensions; a vector has 1", tensor.Label(v.Name), len(v.Shape))
	}
	f := make([]float32, v.Shape[0])
	if v.Type == tensor.F32 && len(v.Data) == 4*len(f) {
		for i := range f {
			f[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:]))
		}
	} else if err := tensor.Unpack(v.Type, f, v.Data); err != nil {
		return Vector{}, fmt.Errorf("weight: %s: %w", tensor.Label(v.Name), err)
	}
	if w.release != nil && !w.Keep {
		w.release(v.Data)
	}
	w.bytes += 4 * len(f)
	return Vector{F: f}, nil
}

// Ones returns n weights of 1, for norms that have none.
func Ones(n int) Vector {
	v := Vector{F: make([]float32, n)}
	for i := range v.F {
		v.F[i] = 1
	}
	return v
}

// Floats returns a copy of the weights, for settings that a model file stores as a tensor.
func (v Vector) Floats() []float32 { return append([]float32(nil), v.F...) }
