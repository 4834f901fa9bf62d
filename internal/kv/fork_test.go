package kv

import (
	"errors"
	"fmt"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// TestFork forks trunks of several lengths, at their end and at the end of a path, and commits in both sequences; each
// keeps its own text, and closing them in either order gives every page back.
func TestFork(t *testing.T) {
	for _, length := range []int{0, 1, 63, 64, 65, 100, 128} {
		for _, path := range []int{0, 1, 64} {
			for _, first := range []string{"fork", "origin"} {
				t.Run(fmt.Sprintf("trunk=%d/path=%d/%s first", length, path, first), func(t *testing.T) {
					checkFork(t, length, path, first == "fork")
				})
			}
		}
	}
}

func checkFork(t *testing.T, length, path int, forkFirst bool) {
	c := small
	c.Tokens = 12 * PageTokens
	b := newBook(t, c)
	x := b.open("")
	b.must(x, story(0, 0, length))
	node, content := b.grow(x, story(1, length, length+path), false)
	s, err := b.k.Fork(x.seq, node)
	if err != nil {
		t.Fatal(err)
	}
	y := &text{seq: s, start: x.start}
	y.ids = append(append(y.ids, x.ids...), story(1, length, length+path)...)
	y.content = append(append(y.content, x.content...), content...)
	b.texts = append(b.texts, y)
	b.check()
	if got := b.k.Forest.Live(s); got != 0 {
		t.Errorf("the fork has %d live nodes", got)
	}
	if got := b.k.Forest.Live(x.seq); got != path {
		t.Errorf("the origin has %d live nodes, want %d", got, path)
	}
	if path > 0 { // the origin goes on with the same path
		if err := b.k.Commit(x.seq, node); err != nil {
			t.Fatal(err)
		}
		x.ids, x.content = append([]token.ID(nil), y.ids...), append([]uint64(nil), y.content...)
		b.check()
	}
	b.must(x, story(0, length+path, length+path+70))
	b.check()
	b.must(y, story(2, length+path, length+path+70))
	b.check()
	if !forkFirst {
		b.close(x)
		b.check()
	}
	b.finish()
	if used := b.k.Usage().Used; used != 0 {
		t.Errorf("%d pages are in use behind all", used)
	}
}

// TestForkShares counts pages: the full pages of the origin exist once.
func TestForkShares(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 130))
	for range 2 {
		b.fork(x)
	}
	b.check()
	if got := b.used(); got[0] != 2+3 { // two full pages, three copies of the partial one
		t.Errorf("%d pages are in use, want 5", got[0])
	}
	b.finish()
}

// TestForkRefusals expects a fork to be refused by kind, and to change nothing.
func TestForkRefusals(t *testing.T) {
	b := newBook(t, small) // for 3 sequences
	x := b.open("")
	b.must(x, story(0, 0, 70))
	node, _ := b.grow(x, story(0, 70, 72), false)
	stopped, err := b.step.Add(forest.Row{Seq: x.seq, Parent: node, ID: 1, To: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.step.Reset()
	expect := func(s forest.Seq, n forest.Node, want string, kind error) {
		t.Helper()
		before := b.state()
		got, err := b.k.Fork(s, n)
		if err == nil || err.Error() != want || kind != nil && !errors.Is(err, kind) {
			t.Errorf("Fork: %v; want %s", err, want)
		}
		if got != -1 {
			t.Errorf("a refused fork returns sequence %d", got)
		}
		b.same(before, err)
	}
	expect(7, forest.Trunk, "forest: sequence 7: sequence is not open", forest.ErrSeq)
	expect(-1, forest.Trunk, "forest: sequence -1: sequence is not open", forest.ErrSeq)
	expect(x.seq, node+1<<32, fmt.Sprintf("forest: node %#x of sequence 0: node is not live", uint64(node+1<<32)), forest.ErrNode)
	expect(x.seq, stopped, "forest: the row at index 72 has run layers 0 to 1 of 2: resume it before it is committed", nil)
	y := b.fork(x)
	b.fork(x)
	expect(x.seq, node, "kv: forking beside 3 open sequences: no sequence is free; close one, or make the cache for more than 3", ErrSeqs)
	b.close(y)
	b.fork(x)
	if err := b.k.Drop(x.seq, forest.Trunk); err != nil {
		t.Fatal(err)
	}
	b.check()
	b.finish()
}

// TestForkAllocates expects a fork and its end to allocate nothing that grows with the trunk, once a sequence of that
// length was open.
func TestForkAllocates(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 250))
	step := func() {
		s, err := b.k.Fork(x.seq, forest.Trunk)
		if err == nil {
			err = b.k.CloseSeq(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(10, step); n > 1 { // the hash of the salt
		t.Errorf("a fork allocates %v times", n)
	}
	b.finish()
}
