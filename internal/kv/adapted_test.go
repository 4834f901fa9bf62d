package kv

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"grove/internal/forest"
)

// TestAdapted: rows with adapters are found by sequences that have the same set from the same row on, and by no others; the rows before
// them are found by all. A file of such a sequence is refused for another set and for another row.
func TestAdapted(t *testing.T) {
	b := newBook(t, small)
	a := Adapted{Name: digest{1}, From: 70}
	b.k.Forest.Adapt(1, a.Name)
	b.k.Forest.Adapt(2, digest{2})
	ids := story(0, 0, 200)
	s := b.k.NewSeq("")
	b.k.Adapt(s, 1, a)
	for part := range slices.Chunk(ids, 50) {
		end := forest.Trunk
		for _, id := range part {
			row := forest.Row{Seq: s, Parent: end, ID: id}
			if at, _ := b.k.Forest.Index(s, end); at+1 >= a.From {
				row.Adapter = 1
			}
			n, err := b.step.Add(row)
			if err != nil {
				t.Fatal(err)
			}
			end = n
		}
		b.step.Reset()
		if err := b.k.Commit(s, end); err != nil {
			t.Fatal(err)
		}
	}
	file := save(t, b.k, s, ids)
	fork, err := b.k.Fork(s, forest.Trunk)
	if err != nil {
		t.Fatal(err)
	}
	b.k.Adapt(fork, 1, a) // as its slot does
	if string(save(t, b.k, fork, ids)) != string(file) {
		t.Error("a fork's file differs")
	}
	if err := b.k.CloseSeq(fork); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		number  int
		adapted Adapted
		found   int
	}{
		{"the same", 1, a, 192}, {"a row later", 1, Adapted{Name: a.Name, From: 71}, 64}, {"a row before", 1, Adapted{Name: a.Name, From: 69}, 64},
		{"from the first row", 1, Adapted{Name: a.Name}, 0}, {"another set", 2, Adapted{Name: digest{2}, From: 70}, 64}, {"none", 0, Adapted{}, 64},
		{"in blocks", 1, Adapted{a.Name, 70, 4}, 0}, {"in blocks alone", 0, Adapted{Block: 4}, 0},
	} {
		o := b.k.NewSeq("")
		b.k.Adapt(o, c.number, c.adapted)
		if n, err := b.k.Reuse(o, ids); n != c.found || err != nil {
			t.Errorf("%s: %d tokens are found (%v), want %d", c.name, n, err, c.found)
		}
		if err := b.k.CloseSeq(o); err != nil {
			t.Fatal(err)
		}
		_, err := b.k.NewAdaptedReader(bytes.NewReader(file), int64(len(file)), "", c.adapted, vocabulary)
		if same := c.adapted == a; same != (err == nil) || !same && !errors.Is(err, ErrFile) {
			t.Errorf("%s: a file is read with the error %v", c.name, err)
		}
	}
}

// TestBlockPages: pages of rows that see their blocks are found, and their file is read, by sequences of blocks of the same length alone.
func TestBlockPages(t *testing.T) {
	b := newBook(t, small)
	ids := story(0, 0, 130)
	s := b.k.NewSeq("")
	b.k.Adapt(s, 0, Adapted{Block: 4})
	for part := range slices.Chunk(ids, 65) {
		end := forest.Trunk
		for i, id := range part {
			n, err := b.step.Add(forest.Row{Seq: s, Parent: end, ID: id, Block: 1 + i/4, Named: true})
			if err != nil {
				t.Fatal(err)
			}
			end = n
		}
		b.step.Reset()
		if err := b.k.Commit(s, end); err != nil {
			t.Fatal(err)
		}
	}
	file := save(t, b.k, s, ids)
	for _, c := range []struct{ block, found int }{{4, 128}, {2, 0}, {8, 0}, {0, 0}} {
		as := Adapted{Block: c.block}
		o := b.k.NewSeq("")
		b.k.Adapt(o, 0, as)
		if n, err := b.k.Reuse(o, ids); n != c.found || err != nil {
			t.Errorf("blocks of %d: %d tokens are found (%v), want %d", c.block, n, err, c.found)
		}
		if err := b.k.CloseSeq(o); err != nil {
			t.Fatal(err)
		}
		if _, err := b.k.NewAdaptedReader(bytes.NewReader(file), int64(len(file)), "", as, vocabulary); (err == nil) != (c.block == 4) || err != nil && !errors.Is(err, ErrFile) {
			t.Errorf("blocks of %d: a file is read with the error %v", c.block, err)
		}
	}
}
