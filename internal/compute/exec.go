// Package compute is the arithmetic of models: fused operations over the rows of a step, on buffers that are
// opaque outside this package. A model calls an operation once for all rows. Only the inputs of a step and the
// outputs that its rows want cross the border. DESIGN.md lists the operations.
//
// Every operation treats each row by itself, in a fixed order of arithmetic (N1, N2, N4). A row's bits are
// therefore the same alone, in a batch and with any number of threads (N3).
package compute

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/weights/tensor"
)

// NumericsVersion names the order of arithmetic. Outputs are bit-equal between builds that share it.
const NumericsVersion = "grove-1"

// ErrNotFinite reports NaN or infinity among a model's values.
var ErrNotFinite = errors.New("the model gives NaN or infinity: its weights, or a product of them, are not finite")

// ErrCacheRange reports a key or value that the cache's type cannot hold.
var ErrCacheRange = errors.New("a key or value is beyond the range of the cache's type; use --cache-type f32")

// Buf is a buffer of width values for each row, opaque to models. It is valid until the next [Exec.Enter].
type Buf struct {
	f           []float32
	rows, width int
	id          int // names the content, for the cached quantisation
}

func (b Buf) plain() AdapterRows { return AdapterRows{F: b.f, Width: b.width, ID: b.id} }

func (b Buf) row(i int) []float32 { return b.f[i*b.width : (i+1)*b.width : (i+1)*b.width] }

// Exec runs the steps of one cache. Its buffers grow during the first steps of each size and are kept.
// It is not safe for concurrent use.
type Exec struct {
	Cache *kv.Cache
	Step  *forest.Step

	pool  *par.Pool
	width int // of the residual stream
	tail  int // the first of the last layers that keep nothing: rows of which nothing is wanted end before it
	ctx   context.Context
	err   error

	stream []float32 // rows of the step x width
	active []int32   // rows of the step that run the current layer
	whole  bool      // active is every row
	hidden []float32 // by slot: the stream of rows that stopped early

	pairs       pairs     // of the inputs of a draft module's rows
	carry       int       // values that a row carries beside its stream
	carried     []float32 // by row of the step
	keptCarried []float32 // by slot, of rows that stopped early

	scratch []matmul.Scratch // by worker

	arena  [][]float32 // buffers of a layer, in order of use
	used   int
	lastID int

	quantized     [2]kernel.Rows // activations: the current ones are those of the buffer named quantizedID
	current       int
	quantizedID   int
	quantizedKeys bool // attention reads 8-bit queries

	runs         []forest.Run // the scratch that each row of the step sees
	runEnd       []int32      // end of its runs, by row
	visibleLayer int          // the layer of runs, which serves all layers in a plain step; -1: none
	ropes        []ropeTable

	source   forest.Seq // whose source is read
	sourceAt int        // the first of its tokens that are read

	rowTask     rowTask
	products    []Buf // what Linears returns
	linearTask  linearTask
	expertTask  expertTask
	routing     Routing
	everyHead   Routing // the heads of LinearHeads, as experts of every row
	adapt       Additions
	transfers   TransferTask
	bands       []kernel.Rows // by worker: the rows of its item
	touched     int           // experts that the rows of the step used, summed over layers
	priors      PriorTask
	substitutes SubstituteTask
	attendTask  attendTask
	walk        WalkTask // of recurrences
	walked      bool     // its plan serves all layers that every row runs

	outputs   []int32     // rows of the step that want logits or their state
	heads     int         // of these, the first so many need the head
	subset    VocabSubset // of the vocabulary that these rows want
	results   []Result
	logits    []float32
	states    []float32
	hiddenOut []float32
}

// NewExec makes an executor for a model whose residual stream has width values a row. Its steps have at most
// maxRows rows. It uses the cache and the pool, which the caller owns.
func NewExec(cache *kv.Cache, pool *par.Pool, width, maxRows int) *Exec {
	x := &Exec{
		Cache: cache, Step: cache.Forest.NewStep(maxRows), pool: pool, width: width,
		quantizedKeys: cache.Format.Type == tensor.Q8_0,
		stream:        make([]float32, maxRows*width), active: make([]int32, 0, maxRows),
		runEnd: make([]int32, 0, maxRows), outputs: make([]int32, 0, maxRows), results: make([]Result, maxRows),
	}
	x.tail = kv.Tail(cache.Config().Layers)
	x.products = make([]Buf, 0, maxProjections)
	x.scratch = make([]matmul.Scratch, pool.Threads())
	x.bands = make([]kernel.Rows, pool.Threads())
	x.attendTask.init(x)
	x.walk = NewWalkTask(pool.Threads())
	return x
}

// Run passes the rows of x.Step through forward, which calls x's operations layer by layer, and checks the
// outputs. On success the rows are live nodes with keys, [Exec.Result] gives their outputs, and the caller
// resets the step. On error, and when ctx ends, Run aborts the step: the forest is as before its first Add.
func (x *Exec) Run(ctx context.Context, forward func(*Exec)) error {
	if err := x.Step.Check(); err != nil {
		x.Step.Abort()
		return err
	}
	if err := x.Cache.Advance(x.Step); err != nil {
		x.Step.Abort()
		return err
	}
	x.ctx, x.err = ctx, nil
	x.whole, x.walked = false, false
	x.active = x.active[:0]
	x.quantizedID, x.used, x.touched = 0, 0, 0
	for i := range x.ropes {
		x.ropes[i].rows = 0
	}
	x.captureInit()
	x.visibleLayer = -1
	x.adapt.Begin(x.Step.Rows(), x.scratch)
	x.err = x.substitutes.Begin(x.Step.Rows())
	forward(x)
	x.Cache.Advanced(x.err == nil)
	x.capture(x.Cache.Forest.Layers() - 1)
	x.substitutes.End(x.err == nil, x.Step.Rows())
	if x.err != nil {
		x.Step.Abort()
		return x.err
	}
	x.keepStopped()
	return nil
}

// SetAdapters makes n, which is 1 or more, the number of a set of adapters, by which [forest.Row.Adapter] names it. name is a digest
// of all that decides what the set adds: pages of the cache are named by it. It must not be called while a step runs.
func (x *Exec) SetAdapters(n int, name [32]byte, set []Adapted) {
	x.adapt.Set(n, set)
	x.Cache.Forest.Adapt(n, name)
}

// SetSubstitutes says what stands for the layers of rows that substitute them ([forest.Row]). It must not be called while a step runs.
func (x *Exec) SetSubstitutes(l SubstituteLayers) { x.substitutes = NewSubstitute(l, x.width) }

// Touched returns the number of experts that the rows of the last step used, summed over layers.
func (x *Exec) Touched() int { return x.touched }

// fail keeps the first error of a step. Results of later operations are not used.
func (x *Exec) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

// alloc returns a buffer from the arena with unspecified contents.
func (x *Exec) alloc(rows, width int) Buf {
	if x.used == len(x.arena) {
		x.arena = append(x.arena, nil)
	}
	n := rows * width
	if cap(x.arena[x.used]) < n {
		x.arena[x.used] = make([]float32, n)
	}
	b := Buf{f: x.arena[x.used][:n], rows: rows, width: width}
	x.used++
	return x.changed(b)
}

// changed gives a buffer that was written a new id.
func (x *Exec) changed(b Buf) Buf {
	x.lastID++
	b.id = x.lastID
	return b
}

// idle reports whether nothing is made of a row's stream from a layer on, behind the layers that keep something.
func (x *Exec) idle(r *forest.Placed, layer int) bool {
	return layer >= x.tail && r.To == x.Cache.Forest.Layers() && !r.Want.Output() && r.Want.Hidden.Minus(forest.LayerRange(0, layer)).Len() == 0
}

// Enter begins a layer and returns the residual stream of the rows that run it, which operations may change
// in place. It returns false where no row runs the layer, the step has failed, or its context has ended.
// Rows whose outputs nobody wants, as those of a prompt, run the last layers only as far as these keep something, or as their stream is wanted.
func (x *Exec) Enter(layer int) (Buf, bool) { return x.enter(layer, false) }

// EnterFeedForward is Enter for the second part of a layer, behind the Leave of the first: of the rows that run that part. A model that calls it says so by
// model.Info.AttentionShare; without it no row may skip a part.
func (x *Exec) EnterFeedForward(layer int) (Buf, bool) { return x.enter(layer, true) }

func (x *Exec) enter(layer int, second bool) (Buf, bool) {
	if x.err == nil && x.ctx.Err() != nil {
		x.fail(x.ctx.Err())
	}
	if x.err != nil {
		return Buf{}, false
	}
	rows := x.Step.Rows()
	if !second {
		x.capture(layer - 1)
		if x.err = x.transfers.Enter(layer, rows, x.stream, x.width, x.pool, x.scratch); x.err != nil {
			return Buf{}, false
		}
	}
	x.active = x.active[:0]
	for i := range rows {
		if rows[i].Runs(layer, second) && !x.idle(&rows[i], layer) {
			x.active = append(x.active, int32(i))
		}
	}
	return x.gather()
}

// gather returns the stream of the active rows, and false where there are none.
func (x *Exec) gather() (Buf, bool) {
	rows := x.Step.Rows()
	x.used = 0
	x.whole = len(x.active) == len(rows)
	x.adapt.Group(rows, x.active)
	if x.whole {
		return x.changed(Buf{f: x.stream[:len(rows)*x.width], rows: len(rows), width: x.width}), true
	}
	b := x.alloc(len(x.active), x.width)
	for a, i := range x.active {
		copy(b.row(a), x.streamRow(i))
	}
	return b, len(x.active) > 0
}

func (x *Exec) streamRow(i int32) []float32 {
	return x.stream[int(i)*x.width : (int(i)+1)*x.width]
}

// Leave ends a layer: b is the stream that Enter gave, with the layer's additions.
func (x *Exec) Leave(b Buf) {
	if x.err == nil && !x.whole {
		for a, i := range x.active {
			copy(x.streamRow(i), b.row(a))
		}
	}
}

// keepStopped stores the stream of the rows that stop before the last layer, which may be resumed.
func (x *Exec) keepStopped() {
	rows := x.Step.Rows()
	for i := range rows {
		if rows[i].To == x.Cache.Forest.Layers() {
			continue
		}
		if x.hidden == nil {
			x.hidden = make([]float32, x.Cache.Forest.Slots()*x.width)
		}
		copy(x.hidden[int(rows[i].Slot)*x.width:], x.streamRow(int32(i)))
		x.keepCarried(int32(i))
	}
}

// Embed begins a step: it fills the residual stream with the rows' inputs. An id gives its embedding times
// scale, a mixture the weighted sum of these, a vector itself, and a resumed row the stream where it stopped; a prior with a weight
// adds what it expects.
func (x *Exec) Embed(table *Matrix, scale float32) {
	rows := x.Step.Rows()
	mixed := false
	for i := range rows {
		if err := x.check(&rows[i], table.Out()); err != nil {
			x.fail(err)
			return
		}
		mixed = mixed || rows[i].Mix != nil
	}
	x.rowTask = rowTask{kind: embedRows, x: x, table: table, scale: scale}
	if mixed {
		x.rowTask.a = x.alloc(len(rows), x.width)
	}
	x.runRows(len(rows), x.width*4)
	x.smooth(table, scale)
}

// Positions adds to each row's input, after [Exec.Embed], the table's vector of its position. A position outside
// the table fails the step.
func (x *Exec) Positions(table *Matrix) {
	rows := x.Step.Rows()
	for i := range rows {
		if p := rows[i].Pos; rows[i].Resume == forest.Trunk && int(p) >= table.Out() {
			x.fail(fmt.Errorf("compute: the row at index %d has position %d; the model has positions 0 to %d", rows[i].Index, p, table.Out()-1))
		}
	}
	if x.err != nil {
		return
	}
	x.rowTask = rowTask{kind: positionRows, x: x, table: table, a: x.alloc(len(rows), x.width)}
	x.runRows(len(rows), x.width*4)
}

// NormInputs adds a vector, unless it is empty, to each row's input and applies LayerNorm in place, after [Exec.Embed]
// and [Exec.Positions]. Resumed rows stay as they are.
func (x *Exec) NormInputs(add, w, b Vector, eps float32) {
	if x.err != nil {
		return
	}
	x.rowTask = rowTask{kind: inputRows, x: x, add: add.F, weight: w.F, bias: b.F, eps: eps}
	x.runRows(len(x.Step.Rows()), x.width*2)
}

// check returns an error where a row's input or an output that it wants is not possible.
func (x *Exec) check(r *forest.Placed, vocabulary int) error {
	if err := CheckVocab(r, vocabulary); err != nil {
		return err
	}
	if r.Want.Hidden.Minus(forest.LayerRange(max(0, r.From-1), r.To)).Len() > 0 { // a resumed row has the stream behind the layer before
		return fmt.Errorf("compute: the row at index %d wants hidden states of layers that it does not reach; it runs layers %d to %d", r.Index, r.From, r.To-1)
	}
	switch {
	case x.pairs.on:
		return CheckPair(r, vocabulary, x.pairs.vector, x.pairs.ids)
	case r.Resume != forest.Trunk && r.Want.Embedding:
		return fmt.Errorf("compute: the row at index %d is resumed at layer %d and wants its embedding, which the row that it resumes has", r.Index, r.From)
	case r.Resume != forest.Trunk:
		return nil
	}
	return CheckInput(r, vocabulary, x.width)
}
