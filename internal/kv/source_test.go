package kv

import (
	"errors"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// crossing is a cache whose layer reads sources.
func crossing(t *testing.T, change func(*Config)) *Cache {
	t.Helper()
	c := small
	c.Layers = []Layer{{KVHeads: 1, KeySize: headSize, Cross: Heads{KVHeads: 1, KeySize: headSize}}}
	if change != nil {
		change(&c)
	}
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestSourceSharing expects sequences of one salt and source to share its pages, and no others.
func TestSourceSharing(t *testing.T) {
	k := crossing(t, nil)
	set := func(salt, name string, n int) (forest.Seq, bool) {
		t.Helper()
		s := k.NewSeq(salt)
		stored, err := k.SetSource(s, name, n)
		if err != nil {
			t.Fatal(err)
		}
		return s, stored
	}
	free := k.sources.pool.available()
	a, stored := set("", "one", 70)
	if stored {
		t.Fatal("a new source is stored")
	}
	b, stored := set("", "one", 70)
	if stored {
		t.Fatal("a source that is not sealed is found")
	}
	k.SealSource(a)
	k.SealSource(b)
	if k.seqs[a].source.table[0] != k.seqs[b].source.table[0] {
		t.Error("equal sources have two pages")
	}
	for _, c := range []struct {
		salt, name string
		want       bool
	}{{"", "one", true}, {"other", "one", false}, {"", "two", false}} {
		s, stored := set(c.salt, c.name, 70)
		if stored != c.want {
			t.Errorf("salt %q, source %q: stored is %v", c.salt, c.name, stored)
		}
		if err := k.CloseSeq(s); err != nil {
			t.Fatal(err)
		}
	}
	f, err := k.Fork(a, forest.Trunk)
	if err != nil || k.SourceLen(f) != 70 {
		t.Fatalf("a fork has a source of %d tokens: %v", k.SourceLen(f), err)
	}
	for _, s := range []forest.Seq{a, b, f} {
		if err := k.CloseSeq(s); err != nil {
			t.Fatal(err)
		}
	}
	if n := k.sources.pool.available(); n != free {
		t.Errorf("%d of %d pages are available when all is closed", n, free)
	}
}

// TestSourceNames expects the pages of a text to be found behind the same source only.
func TestSourceNames(t *testing.T) {
	k := crossing(t, nil)
	ids := make([]token.ID, 2*PageTokens)
	for i := range ids {
		ids[i] = token.ID(i)
	}
	open := func(name string) forest.Seq {
		s := k.NewSeq("")
		if _, err := k.SetSource(s, name, 3); err != nil {
			t.Fatal(err)
		}
		k.SealSource(s)
		return s
	}
	s := open("one")
	for _, id := range ids[:PageTokens] {
		step := k.Forest.NewStep(1)
		n, err := step.Add(forest.Row{Seq: s, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Commit(s, n); err != nil {
			t.Fatal(err)
		}
		step.Reset()
	}
	if n, err := k.Reuse(open("two"), ids); err != nil || n != 0 {
		t.Errorf("behind another source %d tokens are found: %v", n, err)
	}
	if n, err := k.Reuse(open("one"), ids); err != nil || n != PageTokens {
		t.Errorf("behind the same source %d tokens are found: %v", n, err)
	}
}

// TestSourceRefused goes through what is not allowed.
func TestSourceRefused(t *testing.T) {
	k := crossing(t, nil)
	s := k.NewSeq("")
	for _, n := range []int{0, -1, small.Context + 1} {
		if _, err := k.SetSource(s, "", n); err == nil {
			t.Errorf("a source of %d tokens", n)
		}
	}
	if _, err := k.SetSource(s, "", small.Context); err != nil {
		t.Fatal(err)
	}
	if _, err := k.SetSource(s, "", 1); err == nil {
		t.Error("a second source")
	}
	if _, err := k.Hold(s, nil); err == nil || !strings.Contains(err.Error(), "source") {
		t.Errorf("Hold: %v", err)
	}
	if _, err := k.NewReader(strings.NewReader(""), 0, "", 9); err == nil || !strings.Contains(err.Error(), "source") {
		t.Errorf("NewReader: %v", err)
	}
	plain := crossing(t, func(c *Config) { c.Layers = []Layer{{KVHeads: 1, KeySize: headSize}} })
	if _, err := plain.SetSource(plain.NewSeq(""), "", 1); err == nil {
		t.Error("a source for a model that reads none")
	}
	c := small
	c.Layers = []Layer{{KVHeads: 1, KeySize: headSize, Cross: Heads{KVHeads: 1, KeySize: -4}}}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "cross attention") {
		t.Errorf("heads of -4 values: %v", err)
	}
	without, with := plain.Bytes(), k.Bytes()
	c = small
	c.Layers = []Layer{{KVHeads: 1, KeySize: headSize, Cross: Heads{KVHeads: 1, KeySize: headSize}}}
	c.Limit = uint64(with - 1)
	if _, err := New(c); !errors.Is(err, ErrMemory) || with <= without {
		t.Errorf("%d bytes with a source, %d without; a limit below: %v", with, without, err)
	}
}
