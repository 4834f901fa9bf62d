package kv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/history"
	"grove/internal/kernel"
	"grove/internal/text/token"
)

// verbs are the operations on a cache that is too small for all texts. Sequences and nodes have numbers; an operation on a sequence that is
// not open, and one that opens an open one, is passed over.
var verbs = history.Verbs{
	"cache":    {About: 1},                               // the first one: 0 is small, 1 is mixed
	"open":     {About: 1, Names: "salt story tokens"},   // a text that begins with stored pages of a story
	"close":    {About: 1},                               //
	"add":      {About: 1, Names: "tokens story block"},  // tokens of a story behind the trunk, committed; live rows end
	"draft":    {About: 1, Names: "behind tokens story"}, // live rows behind a live row, the oldest being 1, or the trunk, 0
	"commit":   {About: 1, Names: "node"},                // the path to a live row
	"drop":     {About: 1, Names: "node"},                // a live row and what is behind it; 0: all
	"truncate": {About: 1, Names: "to"},                  //
	"reserve":  {About: 1, Names: "tokens near"},         // pages ahead
	"fork":     {About: 2, Names: "node"},                // of the first sequence, at a live row, as the second one
	"session":  {About: 2, Names: "tokens damaged"},      // the second one reads a file of the first one's text
}

// histories are the kind of history of a cache: against a naive model, with every rule checked behind every operation.
var histories = history.Kind{Verbs: verbs, Random: randomHistory, Run: replay}

// TestHistories replays the histories of testdata.
func TestHistories(t *testing.T) { histories.Replay(t) }

// TestRandomHistories makes histories up.
func TestRandomHistories(t *testing.T) {
	n := 250
	if os.Getenv("GROVE_LONG") != "" {
		n = 2000
	}
	histories.Check(t, n)
}

// randomHistory makes a history up. Numbers that are out of range are brought into it when it is replayed.
func randomHistory(r *rand.Rand) (h history.History) {
	add := func(verb string, about []int, named ...history.Named) {
		h = append(h, history.Op{Verb: verb, About: about, Named: named})
	}
	is := func(name string, n int) history.Named { return history.Named{Name: name, Number: n} }
	add("cache", []int{r.IntN(2)})
	var open []int
	for range 20 + r.IntN(60) {
		free := slices.DeleteFunc([]int{1, 2, 3, 4, 5}, func(n int) bool { return slices.Contains(open, n) })
		story, node, verb := is("story", r.IntN(3)), is("node", r.IntN(8)), r.IntN(16)
		if len(open) == 0 || len(free) > 0 && verb < 3 {
			add("open", free[:1], is("salt", r.IntN(3)/2), story, is("tokens", r.IntN(300)))
			open = append(open, free[0])
			continue
		}
		at := r.IntN(len(open))
		one := open[at : at+1 : at+1]
		switch {
		case verb < 6:
			add("add", one, is("tokens", 1+r.IntN(100)), story, is("block", r.IntN(6)/5))
		case verb < 8:
			add("draft", one, is("behind", r.IntN(8)), is("tokens", 1+r.IntN(12)), story)
		case verb == 8:
			add("draft", one, is("behind", 0), is("tokens", 20+r.IntN(60)), story)
		case verb == 9:
			add("commit", one, node)
		case verb == 10:
			add("drop", one, node)
		case verb < 13:
			add("truncate", one, is("to", r.IntN(300)))
		case verb == 13:
			add("reserve", one, is("tokens", r.IntN(300)), is("near", r.IntN(120)))
		case len(free) == 0 || r.IntN(3) == 0:
			add("close", one)
			open = slices.Delete(open, at, at+1)
		case verb == 14:
			add("fork", []int{one[0], free[0]}, node)
			open = append(open, free[0])
		case verb == 15:
			add("session", []int{one[0], free[0]}, is("tokens", r.IntN(300)), is("damaged", r.IntN(4)/3))
			open = append(open, free[0])
		}
	}
	return h
}

// failed is what a check of a book found.
type failed struct{ error }

// checker turns failures of a book into panics that replay returns as errors.
type checker struct{ testing.TB }

func (checker) Helper()                        {}
func (checker) Fatal(args ...any)              { panic(failed{errors.New(fmt.Sprint(args...))}) }
func (checker) Fatalf(format string, a ...any) { panic(failed{fmt.Errorf(format, a...)}) }

// leaf is a live row as the naive model has it.
type leaf struct {
	node    forest.Node
	above   *leaf // nil: the trunk's end
	id      token.ID
	content uint64
}

// path returns a leaf and those above it, the uppermost first.
func (l *leaf) path() (up []*leaf) {
	for ; l != nil; l = l.above {
		up = append(up, l)
	}
	slices.Reverse(up)
	return up
}

// player replays a history on a book.
type player struct {
	*book
	named  map[int]*text
	leaves map[*text][]*leaf // parents first
}

// replay replays a history on a cache of its own.
func replay(h history.History) (err error) {
	config, at := small, 0
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failed:
			err = fmt.Errorf("operation %d: %w", at+1, p.error)
		default:
			panic(p)
		}
	}()
	if len(h) > 0 && h[0].Verb == "cache" && h[0].About[0] == 1 {
		config = mixed
	}
	p := &player{book: newBook(checker{}, config), named: map[int]*text{}, leaves: map[*text][]*leaf{}}
	var o history.Op
	for at, o = range h {
		p.do(o)
		p.check()
		for _, x := range p.texts {
			p.checkLeaves(x)
		}
	}
	p.finish()
	return nil
}

// do does an operation.
func (p *player) do(o history.Op) {
	x := p.named[o.About[0]]
	switch {
	case o.Verb == "cache" || (x == nil) != (o.Verb == "open"):
		return
	case o.Verb == "fork" || o.Verb == "session":
		if p.named[o.About[1]] != nil {
			return
		}
	}
	switch o.Verb {
	case "open":
		x = p.open([]string{"", "salt"}[o.Get("salt", 0)&1])
		p.named[o.About[0]] = x
		p.reuse(x, story(o.Get("story", 0), 0, max(0, o.Get("tokens", 0))))
	case "close":
		p.close(x)
		delete(p.leaves, x)
		delete(p.named, o.About[0])
	case "add":
		p.add(x, o)
	case "draft":
		p.draft(x, o)
	case "commit":
		p.commit(x, p.leaf(x, o.Get("node", 0)))
	case "drop":
		p.drop(x, p.leaf(x, o.Get("node", 0)))
	case "truncate":
		n := min(max(0, o.Get("to", 0)), len(x.ids))
		if err := p.truncate(x, n); err == nil {
			p.leaves[x] = nil
		} else if n == 0 || !errors.Is(err, ErrEvicted) && !errors.Is(err, ErrFull) {
			p.t.Fatalf("truncate: %v", err)
		}
	case "reserve":
		if err := p.k.Reserve(x.seq, o.Get("tokens", 0), o.Get("near", 0)); err != nil && !errors.Is(err, ErrFull) {
			p.t.Fatalf("reserve: %v", err)
		}
	case "fork":
		p.fork(x, o)
	case "session":
		p.session(x, o)
	}
}

// leaf returns a live row by its number, nil for 0 and where none is live.
func (p *player) leaf(x *text, n int) *leaf {
	if all := p.leaves[x]; n > 0 && len(all) > 0 {
		return all[(n-1)%len(all)]
	}
	return nil
}

func (l *leaf) of() forest.Node {
	if l == nil {
		return forest.Trunk
	}
	return l.node
}

// room returns how many of some tokens fit behind an index and into scratch.
func (p *player) room(index, n int) int {
	return max(0, min(n, p.k.config.Context-index, p.k.config.Scratch-p.k.Forest.AllLive()))
}

// full reports whether some group has too few pages for a trunk of n tokens.
func (p *player) full(x *text, n int) bool {
	for g := range p.k.groups {
		if pagesOf(n)-len(p.k.seqs[x.seq].tables[g]) > p.k.groups[g].pool.available() {
			return true
		}
	}
	return false
}

func (p *player) add(x *text, o history.Op) {
	n := p.room(len(x.ids), o.Get("tokens", 0))
	full := n > 0 && p.full(x, len(x.ids)+n)
	err := p.say(x, story(o.Get("story", 0), len(x.ids), len(x.ids)+n), o.Get("block", 0) > 0)
	if errors.Is(err, ErrFull) != full || err != nil && !full {
		p.t.Fatalf("commit: %v; the pages say %v", err, full)
	}
	if n > 0 {
		p.leaves[x] = nil
	}
}

func (p *player) draft(x *text, o history.Op) {
	above := p.leaf(x, o.Get("behind", 0))
	index, content := len(x.ids), x.start
	if len(x.content) > 0 {
		content = x.content[len(x.content)-1]
	}
	if above != nil {
		index, content = index+len(above.path()), above.content
	}
	n := p.room(index, o.Get("tokens", 0))
	for _, id := range story(o.Get("story", 0), index, index+n) {
		node, err := p.step.Add(forest.Row{Seq: x.seq, Parent: above.of(), ID: id})
		if err != nil {
			p.t.Fatal(err)
		}
		content = mix(content, uint64(id))
		p.put(p.step.Rows()[len(p.step.Rows())-1].Slot, content)
		above = &leaf{node, above, id, content}
		p.leaves[x] = append(p.leaves[x], above)
	}
	p.step.Reset()
}

func (p *player) commit(x *text, to *leaf) {
	path := to.path()
	full := len(path) > 0 && p.full(x, len(x.ids)+len(path))
	before := p.state()
	if err := p.k.Commit(x.seq, to.of()); err != nil {
		if p.same(before, err); !full || !errors.Is(err, ErrFull) {
			p.t.Fatalf("commit: %v; the pages say %v", err, full)
		}
		return
	}
	if full {
		p.t.Fatalf("commit: no error; the pages say %v", full)
	}
	if to == nil {
		return
	}
	for _, l := range path {
		x.ids, x.content = append(x.ids, l.id), append(x.content, l.content)
	}
	p.leaves[x] = slices.DeleteFunc(p.leaves[x], func(l *leaf) bool { return l == to || !slices.Contains(l.path(), to) })
	for _, l := range p.leaves[x] {
		if l.above == to {
			l.above = nil
		}
	}
}

func (p *player) drop(x *text, from *leaf) {
	if err := p.k.Drop(x.seq, from.of()); err != nil {
		p.t.Fatal(err)
	}
	p.leaves[x] = slices.DeleteFunc(p.leaves[x], func(l *leaf) bool { return from == nil || slices.Contains(l.path(), from) })
}

func (p *player) fork(x *text, o history.Op) {
	at := p.leaf(x, o.Get("node", 0))
	limit, before := len(p.texts) >= p.k.config.Seqs, p.state()
	s, err := p.k.Fork(x.seq, at.of())
	if errors.Is(err, ErrSeqs) != limit {
		p.t.Fatalf("fork beside %d sequences: %v", len(p.texts), err)
	}
	if err != nil {
		if p.same(before, err); !limit && !errors.Is(err, ErrFull) {
			p.t.Fatalf("fork: %v", err)
		}
		return
	}
	y := &text{seq: s, ids: slices.Clone(x.ids), content: slices.Clone(x.content), start: x.start, salt: x.salt}
	for _, l := range at.path() {
		y.ids, y.content = append(y.ids, l.id), append(y.content, l.content)
	}
	p.texts, p.named[o.About[1]] = append(p.texts, y), y
}

func (p *player) session(x *text, o history.Op) {
	file, damaged := p.saved(x), o.Get("damaged", 0) > 0
	if damaged {
		file[len(file)-1] ^= 1
	}
	y := p.open(x.salt)
	p.named[o.About[1]] = y
	ids := append(slices.Clone(x.ids[:min(max(0, o.Get("tokens", 0)), len(x.ids))]), story(2, 0, 9)...)
	_, err := load(p.k, y.seq, bytes.NewReader(file), len(file), x.salt, ids)
	if damaged != errors.Is(err, ErrFile) && !errors.Is(err, ErrFull) || err != nil && p.k.Forest.Len(y.seq) != 0 {
		p.t.Fatalf("a session, damaged: %v: %v", damaged, err)
	}
	n := p.k.Forest.Len(y.seq)
	y.ids, y.content = ids[:n:n], slices.Clone(x.content[:n])
}

// checkLeaves expects the live rows of a text, no others, and their keys and values.
func (p *player) checkLeaves(x *text) {
	if got := p.k.Forest.Live(x.seq); got != len(p.leaves[x]) {
		p.t.Fatalf("sequence %d has %d live rows, want %d", x.seq, got, len(p.leaves[x]))
	}
	size := kernel.HeadSize{Key: headSize, Value: headSize}
	for _, l := range p.leaves[x] {
		slots, err := p.k.Forest.Path(x.seq, l.node)
		if err != nil || len(slots) != len(l.path()) {
			p.t.Fatalf("sequence %d: a path of %d live rows has %d: %v", x.seq, len(l.path()), len(slots), err)
		}
		slot := slots[len(slots)-1]
		for layer, c := range p.k.config.Layers {
			for h := range c.KVHeads {
				if c.Keeps.Kind == Shared {
					continue
				}
				var key, value [headSize]float32
				keys, values := p.k.Scratch(layer, int(slot)/PageTokens, h)
				p.k.Format.Get(keys, values, int(slot)%PageTokens, size, key[:], value[:])
				if k, v := vectors(l.content, layer, h); k != key || v != value {
					p.t.Fatalf("sequence %d, layer %d, head %d, live row in slot %d: key %v and value %v, want %v and %v", x.seq, layer, h, slot, key, value, k, v)
				}
			}
		}
	}
}
