package compute

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// leaky is a recurrence whose state depends on every row and on their order.
type leaky struct{ parts, size int }

func (o *leaky) Parts() int  { return o.parts }
func (o *leaky) Size() int   { return o.size }
func (o *leaky) Record() int { return o.parts * o.size }
func (o *leaky) Out() int    { return o.parts * o.size }

func (o *leaky) Advance(part int, state, from, in []float32, inStride, n int, out []float32, outStride int) {
	copy(state, from)
	for i := range n {
		row := in[i*inStride:][part*o.size:]
		for j := range state {
			state[j] = float32(0.5*state[j]) + float32(0.25*state[(j+1)%o.size]) + row[j]
		}
		if out != nil {
			copy(out[i*outStride:][part*o.size:], state[:o.size])
		}
	}
}

const toyWidth = 12

// toyLayers are recurrences of several shapes, a layer with two, and one with none.
var toyLayers = [][]*leaky{{{3, 4}}, {{12, 1}, {2, 6}}, {}, {{1, 12}}}

// toyKeys are the layers that keep keys, too, which nothing reads.
var toyKeys = map[int]kv.Keep{2: kv.Window(70), 3: {}}

func toyConfig(c kv.Config) kv.Config {
	c.Type = tensor.F32
	for l, ops := range toyLayers {
		layer := kv.Layer{}
		if keeps, ok := toyKeys[l]; ok {
			layer = kv.Layer{KVHeads: 1, KeySize: 4, Keeps: keeps}
		}
		for _, o := range ops {
			layer.States = append(layer.States, kv.State{Parts: o.parts, Size: o.size, Record: o.Record()})
		}
		c.Layers = append(c.Layers, layer)
	}
	return c
}

func toyInput(dst []float32, id token.ID) {
	for j := range dst {
		dst[j] = float32((int(id)*31+j*17)%101) / 64
	}
}

// toyForward is a model of the recurrences alone.
func toyForward(x *Exec) {
	rows := x.Step.Rows()
	for i := range rows {
		dst := x.streamRow(int32(i))
		if rows[i].Resume != forest.Trunk {
			copy(dst, x.hidden[int(rows[i].Slot)*x.width:])
		} else {
			toyInput(dst, rows[i].ID)
		}
	}
	for l, ops := range toyLayers {
		b, ok := x.Enter(l)
		if !ok {
			continue
		}
		if _, keys := toyKeys[l]; keys {
			for a, i := range x.active {
				x.Cache.Put(l, rows[i].Slot, 0, b.row(a)[:4], b.row(a)[4:8])
			}
		}
		for s, o := range ops {
			b = x.Add(b, x.Recur(l, s, o, b))
		}
		x.Leave(b)
	}
}

// toyRow is a row of a text as the reference knows it.
type toyRow struct {
	id   token.ID
	runs forest.Layers
}

// toyReference returns the stream of the last row of a path, from its first row on.
func toyReference(path []toyRow) []float32 {
	streams := make([][]float32, len(path))
	for i, r := range path {
		streams[i] = make([]float32, toyWidth)
		toyInput(streams[i], r.id)
	}
	for l, ops := range toyLayers {
		for _, o := range ops {
			state, out := make([]float32, o.parts*o.size), make([]float32, toyWidth)
			for i, r := range path {
				if !r.runs.Has(l) {
					continue
				}
				for p := range o.parts {
					o.Advance(p, state[p*o.size:(p+1)*o.size], state[p*o.size:(p+1)*o.size], streams[i], toyWidth, 1, out, toyWidth)
				}
				for j := range out {
					streams[i][j] += out[j]
				}
			}
		}
	}
	return streams[len(path)-1]
}

// toy is a cache with its texts as the reference knows them.
type toy struct {
	t     *testing.T
	x     *Exec
	rng   *rand.Rand
	texts map[forest.Seq]*toyText
	all   forest.Layers

	reused, restored int // tokens
}

type toyText struct {
	trunk []toyRow
	live  map[forest.Node]*toyNode
}

type toyNode struct {
	up      forest.Node
	row     toyRow
	to      int
	passing bool
}

func newToy(t *testing.T, seed uint64, threads int, c kv.Config) *toy {
	k, err := kv.New(toyConfig(c))
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(threads)
	t.Cleanup(pool.Close)
	return &toy{
		t: t, x: NewExec(k, pool, toyWidth, c.Scratch), rng: rand.New(rand.NewPCG(seed, 1)), texts: map[forest.Seq]*toyText{},
		all: forest.LayerRange(0, len(toyLayers)),
	}
}

func (y *toy) open() forest.Seq {
	s := y.x.Cache.NewSeq("")
	y.texts[s] = &toyText{live: map[forest.Node]*toyNode{}}
	return s
}

// path returns the rows up to a node, from the text's first.
func (x *toyText) path(n forest.Node) []toyRow {
	var rows []toyRow
	for ; n != forest.Trunk; n = x.live[n].up {
		rows = append(rows, x.live[n].row)
	}
	slices.Reverse(rows)
	return append(slices.Clone(x.trunk), rows...)
}

// nodes returns the live nodes in an order that the seed decides alone.
func (x *toyText) nodes() (n []forest.Node) {
	for node := range x.live {
		n = append(n, node)
	}
	slices.Sort(n)
	return n
}

// add adds a row to the step, and to the text as if the step had run.
func (y *toy) add(s forest.Seq, r forest.Row) (forest.Node, error) {
	r.Seq = s
	n, err := y.x.Step.Add(r)
	if err != nil {
		return n, err
	}
	if r.To == 0 {
		r.To = len(toyLayers)
	}
	runs := forest.LayerRange(r.From, r.To).Minus(r.Skip)
	text := y.texts[s]
	if r.Resume != forest.Trunk {
		old := *text.live[n]
		old.row.runs, old.to = old.row.runs.Union(runs), r.To
		text.live[n] = &old
	} else {
		text.live[n] = &toyNode{r.Parent, toyRow{r.ID, runs}, r.To, r.Transient}
	}
	return n, nil
}

// run runs the step and compares every row's stream with the reference.
func (y *toy) run() error {
	y.t.Helper()
	if err := y.x.Run(context.Background(), toyForward); err != nil {
		return err
	}
	for i, r := range y.x.Step.Rows() {
		want := toyReference(y.texts[r.Seq].path(r.Node))
		for j, v := range y.x.streamRow(int32(i)) {
			if math.Float32bits(v) != math.Float32bits(want[j]) {
				y.t.Fatalf("sequence %d, index %d, value %d: %g, want %g", r.Seq, r.Index, j, v, want[j])
			}
		}
	}
	y.x.Step.Reset()
	return nil
}

// prompt adds a path of passing rows but for the last, and commits it.
func (y *toy) prompt(s forest.Seq, n int) {
	y.t.Helper()
	end := forest.Trunk
	for i := range n {
		var err error
		if end, err = y.add(s, forest.Row{Parent: end, ID: token.ID(y.rng.IntN(9)), Transient: i < n-1}); err != nil {
			y.t.Fatal(err)
		}
	}
	if err := y.run(); errors.Is(err, forest.ErrScratch) {
		y.texts[s].live = map[forest.Node]*toyNode{}
		return
	} else if err != nil {
		y.t.Fatal(err)
	}
	var err error
	if y.rng.IntN(6) > 0 {
		err = y.commit(s, end)
	} else { // it is not wanted after all
		y.texts[s].live = map[forest.Node]*toyNode{}
		err = y.x.Cache.Drop(s, forest.Trunk)
	}
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *toy) commit(s forest.Seq, n forest.Node) error {
	if err := y.x.Cache.Commit(s, n); err != nil {
		return err
	}
	text := y.texts[s]
	trunk := text.path(n)
	for _, m := range text.nodes() {
		up := m
		for up != forest.Trunk && up != n {
			up = text.live[up].up
		}
		if up != n || m == n {
			defer delete(text.live, m)
		} else if text.live[m].up == n {
			moved := *text.live[m]
			moved.up = forest.Trunk
			defer func() { text.live[m] = &moved }()
		}
	}
	text.trunk = trunk
	return nil
}

// TestRecurHistories runs random histories of all verbs over trees of rows, some of which skip layers or stop early and go on
// later, and expects every row's bits to be those of its path alone (N8).
func TestRecurHistories(t *testing.T) {
	reused, restored, seeds := 0, 0, uint64(150)
	if testing.Short() { // as with the race detector
		seeds = 40
	}
	for seed := range seeds {
		y := newToy(t, seed, 1+int(seed%2)*2, kv.Config{Context: 400, Tokens: 1600, Seqs: 4, Scratch: 64, Records: 40 + int(seed%3)*45})
		for range 60 {
			y.act()
		}
		for s := range y.texts {
			if err := y.x.Cache.CloseSeq(s); err != nil {
				t.Fatal(err)
			}
		}
		if u := y.x.Cache.Usage(); u.Used != 0 {
			t.Fatalf("seed %d: %d states are still used", seed, u.Used)
		}
		y.texts = map[forest.Seq]*toyText{}
		s := y.open()
		for range min(64, y.x.Cache.Config().Records) { // and as few records
			if _, err := y.add(s, forest.Row{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := y.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		reused, restored = reused+y.reused, restored+y.restored
	}
	if reused == 0 || restored == 0 {
		t.Errorf("%d tokens were found by name and %d read from files", reused, restored)
	}
	t.Logf("%d tokens were found by name and %d read from files", reused, restored)
}

// any returns an open sequence.
func (y *toy) any() (forest.Seq, *toyText) {
	var open []forest.Seq
	for s := range y.texts {
		open = append(open, s)
	}
	slices.Sort(open)
	s := open[y.rng.IntN(len(open))]
	return s, y.texts[s]
}

func (y *toy) act() {
	y.t.Helper()
	if len(y.texts) == 0 {
		y.open()
	}
	s, text := y.any()
	k := y.x.Cache
	nodes := append(text.nodes(), forest.Trunk)
	n := nodes[y.rng.IntN(len(nodes))]
	switch p := y.rng.IntN(100); {
	case p < 35:
		y.step()
	case p < 45:
		if err := k.Drop(s, forest.Trunk); err != nil {
			y.t.Fatal(err)
		}
		text.live = map[forest.Node]*toyNode{}
		if rows := min(1+y.rng.IntN(64), 64-k.Forest.AllLive()); rows > 0 && len(text.trunk) < 300 {
			y.prompt(s, rows)
		}
	case p < 75:
		y.tryCommit(s, n)
	case p < 80:
		if err := k.Drop(s, n); err != nil {
			y.t.Fatal(err)
		}
		y.cut(text, n)
	case p < 87:
		y.truncate(s, text)
	case p < 92:
		c, err := k.Fork(s, n)
		if err == nil {
			y.texts[c] = &toyText{trunk: text.path(n), live: map[forest.Node]*toyNode{}}
		}
	case p < 95:
		if err := k.CloseSeq(s); err != nil {
			y.t.Fatal(err)
		}
		delete(y.texts, s)
	case p < 96:
		if len(y.texts) < 4 {
			y.open()
		}
	case p < 98:
		y.reuse(s, text)
	default:
		y.session(s, text)
	}
}

// cut removes a node and its descendants.
func (y *toy) cut(text *toyText, n forest.Node) {
	for _, m := range text.nodes() {
		up := m
		for up != forest.Trunk && up != n {
			up = text.live[up].up
		}
		if up == n {
			defer delete(text.live, m)
		}
	}
}

// complete reports whether all rows of the path to a node have run all layers.
func (y *toy) complete(text *toyText, n forest.Node) bool {
	for ; n != forest.Trunk; n = text.live[n].up {
		if text.live[n].row.runs != y.all {
			return false
		}
	}
	return true
}

func (y *toy) tryCommit(s forest.Seq, n forest.Node) {
	text := y.texts[s]
	whole := y.complete(text, n)
	if err := y.commit(s, n); (err == nil) != whole {
		y.t.Fatalf("committing a path, complete %v: %v", whole, err)
	}
}

func (y *toy) truncate(s forest.Seq, text *toyText) {
	n := y.rng.IntN(len(text.trunk) + 1)
	err := y.x.Cache.Truncate(s, n)
	if errors.Is(err, kv.ErrEvicted) {
		most := n
		if n, err = y.x.Cache.Rewind(s, n); n > most || n%kv.PageTokens != 0 {
			y.t.Fatalf("rewound from %d to %d", most, n)
		}
	}
	if err != nil {
		y.t.Fatal(err)
	}
	text.trunk, text.live = text.trunk[:n:n], map[forest.Node]*toyNode{}
}

// ids returns the tokens of the trunk.
func (x *toyText) ids() (ids []token.ID) {
	for _, r := range x.trunk {
		ids = append(ids, r.id)
	}
	return ids
}

// session writes a text to a file and goes on from what another sequence reads of it.
func (y *toy) session(s forest.Seq, text *toyText) {
	k := y.x.Cache
	if len(y.texts) == 4 || len(text.trunk) < 70 {
		return
	}
	held, err := k.Hold(s, text.ids())
	if err != nil {
		y.t.Fatal(err)
	}
	var file bytes.Buffer
	err = held.Write(&file)
	held.Release()
	if err != nil {
		y.t.Fatal(err)
	}
	in, err := k.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "", 9)
	if err != nil {
		y.t.Fatal(err)
	}
	n := in.Use(text.ids())
	c := y.open()
	if err := in.Take(c); errors.Is(err, kv.ErrFull) {
		return
	} else if err != nil {
		y.t.Fatal(err)
	}
	if err := in.Fill(); err != nil {
		y.t.Fatal(err)
	}
	if y.rng.IntN(4) == 0 { // what was read is not used
		if err := k.Truncate(c, 0); err != nil {
			y.t.Fatal(err)
		}
		return
	}
	if err := in.Adopt(c); err != nil {
		y.t.Fatal(err)
	}
	y.texts[c].trunk = text.trunk[:n:n]
	y.restored += n
}

// reuse computes the text again from what is found by name.
func (y *toy) reuse(s forest.Seq, text *toyText) {
	k := y.x.Cache
	if err := k.Truncate(s, 0); err != nil {
		y.t.Fatal(err)
	}
	n, err := k.Reuse(s, text.ids())
	if err != nil || n%k.Cadence() != 0 {
		y.t.Fatalf("%d tokens are found: %v", n, err)
	}
	text.trunk, text.live = text.trunk[:n:n], map[forest.Node]*toyNode{}
	y.reused += n
}

// step runs a step of random rows of several sequences, or one that fails.
func (y *toy) step() {
	before := map[forest.Seq]map[forest.Node]*toyNode{}
	for s, text := range y.texts {
		before[s] = map[forest.Node]*toyNode{}
		for n, v := range text.live {
			before[s][n] = v
		}
	}
	for range 1 + y.rng.IntN(20) {
		s, text := y.any()
		nodes := text.nodes()
		parent := forest.Trunk
		if len(nodes) > 0 && y.rng.IntN(6) > 0 {
			parent = nodes[y.rng.IntN(len(nodes))]
		}
		r := forest.Row{Parent: parent, ID: token.ID(y.rng.IntN(9))}
		if parent != forest.Trunk {
			r.To = text.live[parent].to
			if r.To < len(toyLayers) && before[s][parent] != nil && y.rng.IntN(3) > 0 {
				r = forest.Row{Resume: parent, From: r.To}
			}
		}
		if r.Resume == forest.Trunk && y.rng.IntN(6) == 0 {
			r.To = 1 + y.rng.IntN(len(toyLayers))
		}
		if y.rng.IntN(12) == 0 {
			r.Skip = forest.LayerRange(0, len(toyLayers)).Minus(forest.LayerRange(0, 1+y.rng.IntN(2)))
		}
		_, _ = y.add(s, r) // refused rows leave no trace
	}
	if y.rng.IntN(8) > 0 {
		if err := y.run(); err == nil {
			return
		}
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		if err := y.x.Run(ctx, func(x *Exec) { toyForward(x); cancel(); x.Enter(0) }); err == nil && len(y.x.Step.Rows()) > 0 {
			y.t.Fatal("a cancelled step has run")
		}
	}
	y.x.Step.Reset()
	for s, text := range y.texts {
		text.live = before[s]
	}
}

// TestRecurPassing expects paths through passing rows to be followed from their end alone, and what is refused to change nothing.
func TestRecurPassing(t *testing.T) {
	y := newToy(t, 1, 1, kv.Config{Context: 400, Tokens: 400, Seqs: 2, Scratch: 64})
	s := y.open()
	grow := func(parent forest.Node, passing bool) forest.Node {
		t.Helper()
		n, err := y.add(s, forest.Row{Parent: parent, ID: 3, Transient: passing})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := grow(forest.Trunk, true)
	middle := grow(first, true)
	last := grow(middle, false)
	if err := y.run(); err != nil {
		t.Fatal(err)
	}
	want := "kv: the row at index 0 was added as passing: no path that ends with it, or goes on in another step, can be committed"
	if err := y.x.Cache.Commit(s, middle); err == nil || err.Error() != want {
		t.Errorf("committing a passing row: %v, want %s", err, want)
	}
	if _, err := y.x.Cache.Fork(s, middle); err == nil || err.Error() != want {
		t.Errorf("forking at a passing row: %v", err)
	}
	child := y.texts[s].live
	_, _ = y.x.Step.Add(forest.Row{Seq: s, Parent: middle})
	want = "kv: the state behind the row at index 1 is gone: it was added as passing"
	if err := y.x.Run(context.Background(), toyForward); err == nil || err.Error() != want {
		t.Errorf("a row behind a passing one: %v, want %s", err, want)
	}
	y.texts[s].live = child
	a, b := grow(last, false), grow(last, false)
	if err := y.run(); err != nil {
		t.Fatal(err)
	}
	grow(a, false)
	if err := y.run(); err != nil {
		t.Fatal(err)
	}
	grow(b, false)
	if err := y.run(); err != nil {
		t.Fatal(err)
	}
	if err := y.commit(s, b); err != nil {
		t.Fatal(err)
	}
}

// TestRecurRefusals expects rows that a recurrence cannot follow, and an operation of another shape, to be refused by name.
func TestRecurRefusals(t *testing.T) {
	y := newToy(t, 1, 1, kv.Config{Context: 400, Tokens: 400, Seqs: 1, Scratch: 64, Records: 2})
	s := y.open()
	_, _ = y.x.Step.Add(forest.Row{Seq: s, Block: 1})
	want := "kv: the row at index 0 is of block 1, whose rows see each other; a recurrent layer reads rows in order alone"
	if err := y.x.Run(context.Background(), toyForward); err == nil || err.Error() != want {
		t.Errorf("a block: %v, want %s", err, want)
	}
	for range 3 {
		_, _ = y.x.Step.Add(forest.Row{Seq: s})
	}
	want = "kv: 2 rows with records: no scratch slot is free; add rows that nothing follows as passing"
	if err := y.x.Run(context.Background(), toyForward); !errors.Is(err, forest.ErrScratch) || err.Error() != want {
		t.Errorf("three records: %v, want %s", err, want)
	}
	_, _ = y.x.Step.Add(forest.Row{Seq: s})
	want = "compute: recurrence 0 of layer 0 has 3 parts of 5 values and inputs of 12, and the cache's have 3, 4 and 12"
	err := y.x.Run(context.Background(), func(x *Exec) {
		b, _ := x.Enter(0)
		x.Recur(0, 0, &leaky{3, 5}, b)
	})
	if err == nil || err.Error() != want {
		t.Errorf("another shape: %v, want %s", err, want)
	}
	if u := y.x.Cache.Usage(); u.Used != 0 {
		t.Errorf("%d states are used by steps that failed", u.Used)
	}
}

// TestRecurAllocs expects steps to allocate nothing once their rooms have grown: single rows, and rounds of drafts of which some
// are committed.
func TestRecurAllocs(t *testing.T) {
	y := newToy(t, 1, 2, kv.Config{Context: 4000, Tokens: 4000, Seqs: 1, Scratch: 64})
	s, x := y.open(), y.x
	round := func() {
		first, _ := x.Step.Add(forest.Row{Seq: s, ID: 1})
		last := first
		for i := range 12 {
			parent := first
			if i%3 > 0 {
				parent = last
			}
			last, _ = x.Step.Add(forest.Row{Seq: s, Parent: parent, ID: token.ID(i)})
		}
		if err := x.Run(context.Background(), toyForward); err != nil {
			t.Fatal(err)
		}
		x.Step.Reset()
		if err := x.Cache.Commit(s, last); err != nil {
			t.Fatal(err)
		}
		if err := x.Cache.Drop(s, forest.Trunk); err != nil {
			t.Fatal(err)
		}
		one, _ := x.Step.Add(forest.Row{Seq: s, ID: 2})
		if err := x.Run(context.Background(), toyForward); err != nil {
			t.Fatal(err)
		}
		x.Step.Reset()
		if err := x.Cache.Commit(s, one); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(50, round); n > 1 { // a text grows
		t.Errorf("%g allocations a round", n)
	}
}

// TestRecurThreads expects the same bits of any number of threads, where the parts of states are shared out.
func TestRecurThreads(t *testing.T) {
	const width, rows = 1024, 40
	run := func(threads int) []float32 {
		op := &leaky{32, width / 32}
		k, err := kv.New(kv.Config{
			Layers: []kv.Layer{{States: []kv.State{{Parts: op.parts, Size: op.size, Record: width}}}},
			Type:   tensor.F32, Context: 100, Tokens: 100, Seqs: 3, Scratch: 128,
		})
		if err != nil {
			t.Fatal(err)
		}
		pool := par.New(threads)
		defer pool.Close()
		x := NewExec(k, pool, width, 128)
		rng := rand.New(rand.NewPCG(7, 7))
		for range 3 {
			s := k.NewSeq("")
			nodes := []forest.Node{forest.Trunk}
			for range rows {
				n, err := x.Step.Add(forest.Row{Seq: s, Parent: nodes[rng.IntN(len(nodes))]})
				if err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, n)
			}
		}
		var got []float32
		err = x.Run(context.Background(), func(x *Exec) {
			for i := range x.stream[:3*rows*width] {
				x.stream[i] = float32(i%257) / 64
			}
			b, _ := x.Enter(0)
			got = slices.Clone(x.Recur(0, 0, op, b).f)
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := run(1)
	for _, threads := range []int{2, 3, 16} {
		for i, v := range run(threads) {
			if v != want[i] {
				t.Fatalf("%d threads: value %d is %g, want %g", threads, i, v, want[i])
			}
		}
	}
}
