package kv

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// ledger is a cache of a recurrence of one value, and the texts that its sequences should have.
type ledger struct {
	k     *Cache
	step  *forest.Step
	texts []*recurrentText
}

type recurrentText struct {
	seq  forest.Seq
	ids  []token.ID
	live []recurrentNode
}

// recurrentNode is a live row: ids is the whole text up to it.
type recurrentNode struct {
	node    forest.Node
	ids     []token.ID
	passing bool
}

// advance is the recurrence, in numbers that float32 holds.
func advance(state float32, id token.ID) float32 {
	return float32((int(state)*31 + int(id) + 1) % 4093)
}

func stateOf(ids []token.ID) (s float32) {
	for _, id := range ids {
		s = advance(s, id)
	}
	return s
}

func (l *ledger) value(id int32) *float32 {
	if id == NoState {
		return new(float32)
	}
	return &l.k.State(id, 0, 0)[0]
}

func (l *ledger) record(i int32) *float32 {
	values, _ := l.k.Records(i, 0, 0)
	return &values[0]
}

// run adds rows to a text, as a path or at random places, and runs them as a model does.
func (l *ledger) run(t *rapid.T) {
	x := l.pick(t)
	at := recurrentNode{node: forest.Trunk, ids: x.ids}
	if ends := slices.DeleteFunc(slices.Clone(x.live), func(n recurrentNode) bool { return n.passing }); len(ends) > 0 && rapid.IntRange(0, 3).Draw(t, "trunk") > 0 {
		at = ends[rapid.IntRange(0, len(ends)-1).Draw(t, "parent")]
	}
	rows := rapid.SampledFrom([]int{1, 1, 2, 5, 30, 64, 70}).Draw(t, "rows")
	prompt, path := len(x.live) == 0 && rapid.Bool().Draw(t, "prompt"), rapid.IntRange(0, 2).Draw(t, "path") > 0
	if !prompt && !path {
		rows = min(rows, 5)
	}
	var added []recurrentNode
	for i := range rows {
		parent := at
		if i > 0 {
			parent = added[i-1]
		}
		if i > 0 && !path && !prompt {
			parent = append([]recurrentNode{at}, added...)[rapid.IntRange(0, i).Draw(t, "behind")]
		}
		id := token.ID(len(parent.ids) % 7)
		if rapid.IntRange(0, 15).Draw(t, "other") == 0 {
			id = 9
		}
		row := forest.Row{Seq: x.seq, Parent: parent.node, ID: id, Transient: prompt && i < rows-1}
		n, err := l.step.Add(row)
		if errors.Is(err, forest.ErrContext) || errors.Is(err, forest.ErrScratch) {
			l.step.Abort()
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, recurrentNode{n, append(slices.Clone(parent.ids), id), row.Transient})
	}
	if err := l.k.Advance(l.step); err != nil {
		t.Fatalf("Advance: %v", err)
	}
	l.forward(t, x, added)
	if rapid.IntRange(0, 7).Draw(t, "fails") == 0 {
		l.k.Advanced(false)
		l.step.Abort()
		return
	}
	l.k.Advanced(true)
	l.step.Reset()
	x.live = append(x.live, added...)
}

// forward writes what a step of rows that were added writes, and expects each row to find the state that it goes on from.
func (l *ledger) forward(t *rapid.T, x *recurrentText, added []recurrentNode) {
	r := l.k.Recurrence(x.seq)
	store := func(state float32, index int) {
		for _, s := range r.Next.Snapshots {
			if s.Index == index {
				*l.value(s.State) = state
			}
		}
	}
	trunk := *l.value(r.Base)
	for i, record := range r.Tail {
		trunk = advance(trunk, token.ID(*l.record(record)))
		store(trunk, r.Index+i+1)
	}
	if trunk != stateOf(x.ids) {
		t.Fatalf("the state behind %d tokens, with %d in the tail, is %v, want %v", len(x.ids), len(r.Tail), trunk, stateOf(x.ids))
	}
	if r.Next.Base != NoState {
		*l.value(r.Next.Base) = trunk
	}
	states := map[int32]float32{}
	for i, n := range added {
		slot := forest.SlotOf(n.node)
		var path []int32 // without a state, the last first
		state := trunk
		for up := l.k.Forest.Up(slot); up != forest.NoSlot; up = l.k.Forest.Up(up) {
			if s, ok := states[up]; ok {
				state = s
				break
			}
			if l.k.Forest.At(up) == r.Ahead {
				state = *l.value(r.AheadState)
				break
			}
			path = append(path, up)
		}
		for _, up := range slices.Backward(path) {
			record, has := l.k.RecordOf(up)
			if !has {
				t.Fatalf("a row behind one whose record is gone")
			}
			state = advance(state, token.ID(*l.record(record)))
		}
		id := n.ids[len(n.ids)-1]
		if state = advance(state, id); state != stateOf(n.ids) {
			t.Fatalf("the state behind row %d is %v, want %v", i, state, stateOf(n.ids))
		}
		states[slot] = state
		if record, has := l.k.RecordOf(slot); has {
			*l.record(record) = float32(id)
		} else if !n.passing {
			t.Fatalf("row %d has no record", i)
		}
		if r.Next.Ahead != NoState {
			store(state, len(n.ids))
			*l.value(r.Next.Ahead) = state
		}
	}
}

func (l *ledger) pick(t *rapid.T) *recurrentText {
	if len(l.texts) == 0 {
		l.open(t)
	}
	return l.texts[rapid.IntRange(0, len(l.texts)-1).Draw(t, "text")]
}

func (l *ledger) open(t *rapid.T) {
	if len(l.texts) < l.k.config.Seqs {
		l.texts = append(l.texts, &recurrentText{seq: l.k.NewSeq("")})
	}
}

func (l *ledger) close(t *rapid.T) {
	x := l.pick(t)
	if err := l.k.CloseSeq(x.seq); err != nil {
		t.Fatal(err)
	}
	l.texts = slices.DeleteFunc(l.texts, func(o *recurrentText) bool { return o == x })
}

// node returns a live node that may be committed; the trunk's end where there is none.
func (l *ledger) node(t *rapid.T, x *recurrentText) recurrentNode {
	nodes := slices.DeleteFunc(slices.Clone(x.live), func(n recurrentNode) bool { return n.passing })
	if len(nodes) == 0 {
		return recurrentNode{node: forest.Trunk, ids: x.ids}
	}
	return nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "node")]
}

func (l *ledger) commit(t *rapid.T) {
	x := l.pick(t)
	n := l.node(t, x)
	if err := l.k.Commit(x.seq, n.node); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	x.ids = n.ids
	l.bury(x)
}

// bury forgets nodes that are no longer live.
func (l *ledger) bury(x *recurrentText) {
	x.live = slices.DeleteFunc(x.live, func(n recurrentNode) bool {
		_, err := l.k.Forest.Index(x.seq, n.node)
		return err != nil
	})
}

func (l *ledger) drop(t *rapid.T) {
	x := l.pick(t)
	if err := l.k.Drop(x.seq, l.node(t, x).node); err != nil {
		t.Fatal(err)
	}
	l.bury(x)
}

// truncate cuts a text; where the tail reaches that far, or nothing is left, it may not be refused.
func (l *ledger) truncate(t *rapid.T) {
	x := l.pick(t)
	n := max(0, len(x.ids)-rapid.SampledFrom([]int{0, 1, 2, 5, 30, 64, 128, 1000}).Draw(t, "tokens"))
	from := l.k.Recurrence(x.seq).Index
	err := l.k.Truncate(x.seq, n)
	if err != nil && (!errors.Is(err, ErrEvicted) || n >= from || n == 0) {
		t.Fatalf("Truncate to %d of %d tokens, of which %d have passed: %v", n, len(x.ids), from, err)
	}
	if err == nil {
		x.ids, x.live = x.ids[:n:n], nil
	}
}

func (l *ledger) fork(t *rapid.T) {
	x := l.pick(t)
	n := l.node(t, x)
	seq, err := l.k.Fork(x.seq, n.node)
	switch full := len(l.texts) == l.k.config.Seqs; {
	case full != errors.Is(err, ErrSeqs) && !errors.Is(err, ErrFull), err != nil && !full && !errors.Is(err, ErrFull):
		t.Fatalf("Fork: %v", err)
	case err == nil:
		l.texts = append(l.texts, &recurrentText{seq: seq, ids: n.ids})
	}
}

// reuse opens a text with what is stored of another one.
func (l *ledger) reuse(t *rapid.T) {
	ids := slices.Clone(l.pick(t).ids)
	if len(l.texts) == l.k.config.Seqs {
		return
	}
	l.open(t)
	x := l.texts[len(l.texts)-1]
	n, err := l.k.Reuse(x.seq, ids)
	if err != nil || n%l.k.Cadence() != 0 || n > 0 && n >= len(ids) {
		t.Fatalf("Reuse of %d tokens: %d, %v", len(ids), n, err)
	}
	x.ids = ids[:n:n]
}

// check holds K1, K3 and K5 and the stored states to the texts.
func (l *ledger) check(t *rapid.T) {
	refs, records := map[int32]int32{}, map[int32]string{}
	has := func(record int32, who string) {
		if other, ok := records[record]; ok {
			t.Fatalf("record %d belongs to %s and %s", record, other, who)
		}
		records[record] = who
	}
	for _, x := range l.texts {
		r := l.k.Recurrence(x.seq)
		if r.Index+len(r.Tail) != len(x.ids) || len(x.ids) != l.k.Forest.Len(x.seq) {
			t.Fatalf("a base at %d and a tail of %d for a trunk of %d tokens, want %d", r.Index, len(r.Tail), l.k.Forest.Len(x.seq), len(x.ids))
		}
		if got, want := *l.value(r.Base), stateOf(x.ids[:r.Index]); got != want {
			t.Fatalf("the base at %d is %v, want %v", r.Index, got, want)
		}
		for _, record := range r.Tail {
			has(record, fmt.Sprintf("the tail of %d", x.seq))
		}
		held := []int32{r.Base, r.AheadState, r.loaded, r.Next.Base, r.Next.Ahead}
		for _, s := range r.pending {
			held = append(held, s.State)
		}
		for _, id := range held {
			if id != NoState {
				refs[id]++
			}
		}
		if i := slices.IndexFunc(x.live, func(n recurrentNode) bool { return n.node == r.Ahead }); r.Ahead != forest.Trunk && (i < 0 || *l.value(r.AheadState) != stateOf(x.live[i].ids)) {
			t.Fatalf("the state ahead is not that of its node %d", i)
		}
	}
	st := l.k.states
	for _, record := range st.free {
		has(record, "none")
	}
	for slot, b := range st.bySlot {
		if b.node != forest.Trunk {
			has(b.record, fmt.Sprintf("slot %d", slot))
		}
	}
	if len(records) != l.k.config.Records {
		t.Fatalf("%d records are known of %d", len(records), l.k.config.Records)
	}
	for id, page := range st.pool.pages {
		if page.refs != refs[int32(id)] {
			t.Fatalf("state %d has %d references, want %d", id, page.refs, refs[int32(id)])
		}
	}
}

// TestRecurrentAgainstModel walks over all verbs of a cache with a recurrence. A row that is not passing can always be committed and
// followed: its state comes from the one ahead or from records.
func TestRecurrentAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, err := New(Config{
			Layers: []Layer{{States: []State{{1, 1, 1}}}}, Type: tensor.F32, Context: 400, Tokens: 1200, Seqs: 3, Scratch: 192, Records: 1600,
		})
		if err != nil {
			t.Fatal(err)
		}
		l := &ledger{k: k, step: k.Forest.NewStep(70)}
		t.Repeat(map[string]func(*rapid.T){
			"": l.check, "run": l.run, "run more": l.run, "run on": l.run, "commit": l.commit, "commit more": l.commit, "drop": l.drop, "open": l.open,
			"truncate": l.truncate, "fork": l.fork, "reuse": l.reuse, "close": l.close,
		})
	})
}

// TestAheadKept: the state behind a prompt whose rows have no records is kept while rows follow elsewhere.
func TestAheadKept(t *testing.T) {
	k, err := New(recurrent)
	if err != nil {
		t.Fatal(err)
	}
	s, step := k.NewSeq(""), k.Forest.NewStep(8)
	run := func(parent forest.Node, passing ...bool) forest.Node {
		t.Helper()
		for _, p := range passing {
			if parent, err = step.Add(forest.Row{Seq: s, Parent: parent, Transient: p}); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Advance(step); err != nil {
			t.Fatal(err)
		}
		k.Advanced(true)
		step.Reset()
		return parent
	}
	prompt := run(forest.Trunk, true, true, false)
	next := run(prompt, false)
	run(forest.Trunk, false)
	if err := k.Commit(s, next); err != nil {
		t.Error(err)
	}
}
