package kv

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

const (
	headSize = 4
	window   = 70
	chunk    = 90
)

// small is a cache of one layer that sees everything and one with a window: 7 pages in each group.
var small = Config{
	Layers: []Layer{{KVHeads: 1, KeySize: headSize}, {KVHeads: 2, KeySize: headSize, Keeps: Window(window)}},
	Type:   tensor.F32, Context: 300, Tokens: 4 * PageTokens, Seqs: 3, Scratch: 128, Identity: named("test"),
}

// mixed is small with a layer of chunks and layers that read the keys of others.
var mixed = Config{
	Layers: []Layer{
		{KVHeads: 1, KeySize: headSize}, {KVHeads: 2, KeySize: headSize, Keeps: Window(window)}, {KVHeads: 1, KeySize: headSize, Keeps: Chunk(chunk)},
		{KVHeads: 2, KeySize: headSize, Keeps: Share(1)}, {KVHeads: 1, KeySize: headSize, Keeps: Share(2)}, {KVHeads: 1, KeySize: headSize, Keeps: Chunk(chunk)},
	},
	Type: tensor.F32, Context: 300, Tokens: 4 * PageTokens, Seqs: 3, Scratch: 128, Identity: named("test"),
}

// book is a cache and the expected tokens of each of its sequences. The keys of a token are
// made from all that led to it, so that any wrong page shows.
type book struct {
	t     testing.TB
	k     *Cache
	step  *forest.Step
	texts []*text
	nonce int

	sealed map[[2]int]sealedPage // by group and page
}

type sealedPage struct {
	hash  digest
	bytes []byte
}

type text struct {
	seq     forest.Seq
	ids     []token.ID
	content []uint64 // names the keys of each token
	start   uint64   // made from the salt
	salt    string
}

func newBook(t testing.TB, c Config) *book {
	t.Helper()
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &book{t: t, k: k, step: k.Forest.NewStep(c.Scratch), sealed: map[[2]int]sealedPage{}}
}

// mix folds numbers into one that names them all.
func mix(v ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, x := range v {
		h = (h ^ x) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	return h
}

func (b *book) open(salt string) *text {
	x := &text{seq: b.k.NewSeq(salt), start: mix(uint64(len(salt))), salt: salt}
	b.texts = append(b.texts, x)
	return x
}

func (b *book) close(x *text) {
	b.t.Helper()
	if err := b.k.CloseSeq(x.seq); err != nil {
		b.t.Fatal(err)
	}
	b.texts = slices.DeleteFunc(b.texts, func(o *text) bool { return o == x })
}

// follow returns a number for the keys of each id behind a trunk; in a block the numbers are unique.
func (b *book) follow(x *text, ids []token.ID, block bool) (content []uint64) {
	prev := x.start
	if n := len(x.content); n > 0 {
		prev = x.content[n-1]
	}
	for _, id := range ids {
		prev = mix(prev, uint64(id))
		if block {
			b.nonce++
			prev = mix(prev, uint64(b.nonce), 0)
		}
		content = append(content, prev)
	}
	return content
}

// vectors returns the key and the value of a head that content names.
func vectors(content uint64, layer, head int) (k, v [headSize]float32) {
	for e := range headSize {
		h := mix(content, uint64(layer), uint64(head), uint64(e))
		k[e], v[e] = float32(h%100000), float32(h>>32%100000)
	}
	return k, v
}

// grow computes ids behind the trunk as live rows and returns the last row and the numbers of their keys.
func (b *book) grow(x *text, ids []token.ID, block bool) (forest.Node, []uint64) {
	b.t.Helper()
	parent := forest.Trunk
	content := b.follow(x, ids, block)
	for i, id := range ids {
		row := forest.Row{Seq: x.seq, Parent: parent, ID: id}
		if block {
			row.Block = 1
		}
		n, err := b.step.Add(row)
		if err != nil {
			b.t.Fatal(err)
		}
		parent = n
		b.put(b.step.Rows()[i].Slot, content[i])
	}
	b.step.Reset()
	return parent, content
}

// put writes the keys and values that content names.
func (b *book) put(slot int32, content uint64) {
	for l, layer := range b.k.config.Layers {
		for h := range layer.KVHeads {
			if layer.Keeps.Kind != Shared {
				key, value := vectors(content, l, h)
				b.k.Put(l, slot, h, key[:], value[:])
			}
		}
	}
}

// say computes and commits ids; where that is refused, nothing has changed and the error is returned.
func (b *book) say(x *text, ids []token.ID, block bool) error {
	b.t.Helper()
	n, content := b.grow(x, ids, block)
	before := b.state()
	if err := b.k.Commit(x.seq, n); err != nil {
		b.same(before, err)
		if _, lost := b.k.Forest.Index(x.seq, n); lost != nil {
			b.t.Fatalf("a refused commit (%v) dropped the rows", err)
		}
		if err := b.k.Drop(x.seq, forest.Trunk); err != nil {
			b.t.Fatal(err)
		}
		return err
	}
	x.ids, x.content = append(x.ids, ids...), append(x.content, content...)
	return nil
}

// must says ids in steps that scratch has room for.
func (b *book) must(x *text, ids []token.ID) {
	b.t.Helper()
	for part := range slices.Chunk(ids, b.k.config.Scratch) {
		if err := b.say(x, part, false); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *book) truncate(x *text, n int) error {
	before := b.state()
	if err := b.k.Truncate(x.seq, n); err != nil {
		b.same(before, err)
		return err
	}
	x.ids, x.content = x.ids[:n:n], x.content[:n:n]
	return nil
}

func (b *book) reuse(x *text, ids []token.ID) int {
	b.t.Helper()
	n, err := b.k.Reuse(x.seq, ids)
	if err != nil {
		b.t.Fatal(err)
	}
	x.content = b.follow(x, ids[:n], false)
	x.ids = slices.Clone(ids[:n])
	return n
}

// state is all that a refused verb must leave as it was.
func (b *book) state() string {
	s := ""
	for _, x := range b.texts {
		t := &b.k.seqs[x.seq]
		s += fmt.Sprintln(x.seq, b.k.Forest.Len(x.seq), b.k.Forest.Live(x.seq), t.tables, len(t.entries), len(t.hashes), t.private)
	}
	for g := range b.k.groups {
		p := b.k.groups[g].pool
		s += fmt.Sprintln(p.free, p.oldest, p.newest, len(p.byHash), p.available())
	}
	return s
}

func (b *book) same(before string, err error) {
	b.t.Helper()
	if after := b.state(); after != before {
		b.t.Fatalf("a refused verb (%v) changed something (-before +after):\n%s", err, cmp.Diff(before, after))
	}
}

// used returns the pages with references in each group.
func (b *book) used() (n []int) {
	for g := range b.k.groups {
		n = append(n, 0)
		for _, pg := range b.k.groups[g].pool.pages {
			if pg.refs > 0 {
				n[g]++
			}
		}
	}
	return n
}

// check compares every sequence's keys with its text, and checks the pools' rules K1 and K2.
func (b *book) check() {
	b.t.Helper()
	for _, x := range b.texts {
		b.checkText(x)
	}
	for g := range b.k.groups {
		b.checkPool(g)
	}
}

func (b *book) checkText(x *text) {
	b.t.Helper()
	n := len(x.ids)
	if got := b.k.Forest.Len(x.seq); got != n {
		b.t.Fatalf("sequence %d has %d tokens, want %d", x.seq, got, n)
	}
	f := b.k.Format
	kb := f.KeyBytes(headSize)
	stride := kb + f.ValueBytes(headSize)
	for l, layer := range b.k.config.Layers {
		source := l
		if layer.Keeps.Kind == Shared {
			source = layer.Keeps.From
		}
		first := 0 // of what a row at index n sees
		switch keeps := b.k.config.Layers[source].Keeps; keeps.Kind {
		case Windowed:
			first = max(0, n-keeps.Window+1)
		case Chunked:
			first = n / keeps.Window * keeps.Window
		}
		for i := first; i < n; i++ {
			page := b.k.layerPage(&b.k.seqs[x.seq], l, i/PageTokens)
			for h := range layer.KVHeads {
				var key, value [headSize]float32
				f.Get(page[h*stride:][:kb], page[h*stride+kb:][:stride-kb], i%PageTokens, kernel.HeadSize{Key: headSize, Value: headSize}, key[:], value[:])
				if k, v := vectors(x.content[i], source, h); k != key || v != value {
					b.t.Fatalf("sequence %d, layer %d, head %d, token %d of %d: key %v and value %v, want %v and %v",
						x.seq, l, h, i, n, key, value, k, v)
				}
			}
		}
	}
}

func (b *book) checkPool(g int) {
	b.t.Helper()
	p := b.k.groups[g].pool
	refs := make([]int32, len(p.pages))
	for _, x := range b.texts {
		for _, id := range b.k.seqs[x.seq].tables[g] {
			if id != noPage {
				refs[id]++
			}
		}
	}
	listed := map[int32]bool{}
	list := func(id int32, hashed bool) {
		if listed[id] || p.pages[id].refs != 0 || p.pages[id].hashed != hashed { // K1
			b.t.Fatalf("group %d: page %d is listed wrongly: %+v", g, id, p.pages[id])
		}
		listed[id] = true
	}
	for _, id := range p.free {
		list(id, false)
	}
	prev := int32(noPage)
	for id := p.oldest; id != noPage; id = p.pages[id].next {
		list(id, true)
		if p.pages[id].prev != prev {
			b.t.Fatalf("group %d: idle page %d has %d before it, want %d", g, id, p.pages[id].prev, prev)
		}
		prev = id
	}
	if p.newest != prev || p.available() != len(listed) {
		b.t.Fatalf("group %d: the idle list ends in %d, want %d; %d pages are available, want %d", g, p.newest, prev, p.available(), len(listed))
	}
	hashed := 0
	for id := range p.pages {
		pg := &p.pages[id]
		if pg.refs != refs[id] || (pg.refs == 0) != listed[int32(id)] {
			b.t.Fatalf("group %d: page %d has %d references, want %d", g, id, pg.refs, refs[id])
		}
		if !pg.hashed {
			continue
		}
		hashed++
		if p.byHash[pg.hash] != int32(id) {
			b.t.Fatalf("group %d: page %d cannot be found by its hash", g, id)
		}
		b.checkSealed(g, id, sealedPage{pg.hash, p.bytes(int32(id))})
	}
	if hashed != len(p.byHash) {
		b.t.Fatalf("group %d: %d pages have a hash, %d can be found", g, hashed, len(p.byHash))
	}
}

// checkSealed expects a page to have the bytes that it had when it got its hash (K2).
func (b *book) checkSealed(g, id int, now sealedPage) {
	b.t.Helper()
	at := [2]int{g, id}
	if then, ok := b.sealed[at]; ok && then.hash == now.hash {
		if !bytes.Equal(then.bytes, now.bytes) {
			b.t.Fatalf("group %d: the bytes of sealed page %d changed", g, id)
		}
		return
	}
	b.sealed[at] = sealedPage{now.hash, slices.Clone(now.bytes)}
}

// finish closes all sequences and expects every page back.
func (b *book) finish() {
	b.t.Helper()
	for len(b.texts) > 0 {
		b.close(b.texts[0])
		b.check()
	}
	for g := range b.k.groups {
		if p := b.k.groups[g].pool; p.available() != len(p.pages) {
			b.t.Fatalf("group %d: %d of %d pages are left", g, p.available(), len(p.pages))
		}
	}
}

// story returns the token at an index of one of a few texts, which part after 100 tokens.
func story(n, from, to int) (ids []token.ID) {
	for i := from; i < to; i++ {
		id := token.ID(i % 11)
		if i >= 100 {
			id += token.ID(20 * n)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestSharing counts pages: equal prefixes are one copy, found or computed twice; other salts, private
// rows and partial pages are not shared.
func TestSharing(t *testing.T) {
	full := small
	full.Layers = full.Layers[:1]
	full.Tokens = 20 * PageTokens
	ids := story(0, 0, 150)
	expect := func(b *book, what string, want int) {
		t.Helper()
		b.check()
		if got := b.used()[0]; got != want {
			t.Errorf("%s: %d pages are in use, want %d", what, got, want)
		}
	}

	b := newBook(t, full)
	x := b.open("")
	b.must(x, ids)
	expect(b, "one text", 3)
	y := b.open("")
	if n := b.reuse(y, ids); n != 128 {
		t.Errorf("%d tokens are found, want 128", n)
	}
	expect(b, "a prefix that was found", 3)
	b.must(y, ids[128:])
	expect(b, "and the rest", 4)
	z := b.open("")
	b.must(z, ids)
	expect(b, "a text that was computed again", 5)
	b.must(b.open("other"), ids)
	expect(b, "another salt", 8)
	if n := b.reuse(b.open("third"), ids); n != 0 {
		t.Errorf("%d tokens are found across salts", n)
	}
	b.finish()

	b = newBook(t, full)
	x = b.open("")
	b.must(x, ids[:70])
	if err := b.say(x, ids[70:80], true); err != nil {
		t.Fatal(err)
	}
	b.must(x, ids[80:])
	if n := b.reuse(b.open(""), ids); n != 64 {
		t.Errorf("%d tokens are found of a text with private rows from 70 on, want 64", n)
	}
	y = b.open("")
	b.must(y, ids)
	expect(b, "a text beside one with private rows", 5)
	if err := b.truncate(x, 64); err != nil {
		t.Fatal(err)
	}
	b.must(x, ids[64:128])
	expect(b, "after the private rows were cut off", 3)
	b.finish()

	b = newBook(t, full)
	if n := b.reuse(b.open(""), ids[:64]); n != 0 {
		t.Error("an empty cache gives a prefix")
	}
	x = b.open("")
	b.must(x, ids[:128])
	for n, want := range map[int]int{0: 0, 63: 0, 64: 0, 65: 64, 128: 64, 129: 128, 150: 128} {
		y := b.open("")
		if got := b.reuse(y, ids[:n]); got != want {
			t.Errorf("%d tokens of %d are found, want %d", got, n, want)
		}
		b.close(y)
	}
	b.finish()
}

// TestForkCopies writes behind a fork and behind its origin.
func TestForkCopies(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 100))
	n, content := b.grow(x, story(1, 100, 105), false)
	s, err := b.k.Fork(x.seq, n)
	if err != nil {
		t.Fatal(err)
	}
	y := &text{seq: s, ids: append(slices.Clone(x.ids), story(1, 100, 105)...), content: append(slices.Clone(x.content), content...), start: x.start}
	b.texts = append(b.texts, y)
	b.check()
	if d := cmp.Diff([]int{3, 3}, b.used()); d != "" {
		t.Errorf("pages in use (-want +got):\n%s", d)
	}
	if live := b.k.Forest.Live(x.seq); live != 5 {
		t.Errorf("%d live rows after the fork, want 5", live)
	}
	if err := b.k.Drop(x.seq, forest.Trunk); err != nil {
		t.Fatal(err)
	}
	b.must(x, story(0, 100, 140))
	b.check()
	b.must(y, story(2, 105, 128))
	b.check()
	if err := b.truncate(x, 40); err != nil {
		t.Fatal(err)
	}
	b.must(x, story(2, 40, 60))
	b.check()
	b.finish()
}

// TestEviction fills a pool of four pages: the page used last stays longest, and the end of a text is evicted before
// its beginning.
func TestEviction(t *testing.T) {
	c := small
	c.Layers, c.Tokens, c.Seqs = c.Layers[:1], 3*PageTokens, 1
	b := newBook(t, c)
	page := func(n int) []token.ID { return story(0, 1000*n, 1000*n+PageTokens) }
	said := func(n int) {
		x := b.open("")
		b.must(x, page(n))
		b.close(x)
	}
	found := func(n int) bool {
		x := b.open("")
		defer b.close(x)
		return b.reuse(x, append(page(n), 0)) > 0
	}
	for n := range 4 {
		said(n)
	}
	if !found(0) {
		t.Error("page 0 went while there was room")
	}
	said(4)
	for n, want := range []bool{true, false, true, true, true} {
		if found(n) != want {
			t.Errorf("page %d is found: %v, want %v", n, !want, want)
		}
	}
	b.check()
	x := b.open("")
	long := story(0, 5000, 5000+3*PageTokens)
	b.must(x, long)
	b.close(x)
	y := b.open("")
	b.must(y, page(6)[:10])
	b.must(y, story(1, 0, PageTokens)) // two pages: one takes the last other one, one the end of the long text
	z := b.open("")
	if n := b.reuse(z, append(long, 0)); n != 2*PageTokens {
		t.Errorf("%d tokens are left of a long text, want %d", n, 2*PageTokens)
	}
	b.finish()
}

// TestFull asks for more than there is, and then for less.
func TestFull(t *testing.T) {
	b := newBook(t, small) // 7 pages
	x, y := b.open(""), b.open("")
	b.must(x, story(0, 0, 250))
	b.must(y, story(1, 200, 350))
	err := b.say(x, story(0, 250, 257), false)
	if want := "kv: a trunk needs 1 more pages of 64 tokens and 0 are free: cache is full"; !errors.Is(err, ErrFull) || err.Error() != want {
		t.Fatalf("Commit: %v; want %s", err, want)
	}
	b.check()
	n, _ := b.grow(x, story(0, 250, 257), false)
	before := b.state()
	_, err = b.k.Fork(x.seq, n)
	if want := "kv: forking a trunk of 257 tokens needs 2 pages and 0 are free: cache is full"; !errors.Is(err, ErrFull) || err.Error() != want {
		t.Fatalf("Fork: %v; want %s", err, want)
	}
	b.same(before, ErrFull)
	n, _ = b.grow(y, story(1, 350, 380), false) // within the last page
	if _, err := b.k.Fork(y.seq, n); !errors.Is(err, ErrFull) {
		t.Fatalf("Fork: %v; want %v", err, ErrFull)
	}
	if err := errors.Join(b.k.Drop(x.seq, forest.Trunk), b.k.Drop(y.seq, forest.Trunk)); err != nil {
		t.Fatal(err)
	}
	b.must(x, story(0, 250, 256))
	b.check()
	b.finish()
}

// TestTruncateFull cuts into a shared page while no page is free: that is refused for the sequence that
// would need one, and works for the one that gives one back.
func TestTruncateFull(t *testing.T) {
	c := small
	c.Layers, c.Tokens, c.Seqs = c.Layers[:1], PageTokens, 2
	b := newBook(t, c) // 3 pages
	x := b.open("")
	b.must(x, story(0, 0, 64))
	y := b.fork(x)
	b.must(x, story(0, 64, 74))
	b.must(b.open(""), story(1, 200, 210))
	err := b.truncate(y, 30)
	if want := "kv: a trunk of 30 tokens needs a copy of its last page: cache is full"; !errors.Is(err, ErrFull) || err.Error() != want {
		t.Errorf("Truncate: %v; want %s", err, want)
	}
	b.check()
	if err := b.truncate(x, 30); err != nil {
		t.Errorf("Truncate: %v", err)
	}
	b.check()
	if err := b.truncate(y, 30); err != nil { // nobody else uses the page now: it loses its name
		t.Errorf("Truncate: %v", err)
	}
	b.check()
	b.finish()
}

// TestWindow follows a sequence past its window and back.
func TestWindow(t *testing.T) {
	c := small
	c.Layers = c.Layers[1:]
	b := newBook(t, c)
	x := b.open("")
	passed := func() (n int) {
		for _, id := range b.k.seqs[x.seq].tables[0] {
			if id == noPage {
				n++
			}
		}
		return n
	}
	for n, want := range map[int]int{74: 0, 132: 0, 133: 1, 196: 1, 197: 2, 266: 3} { // a row sees 69 back
		b.must(x, story(0, 0, n))
		b.check()
		if got := passed(); got != want {
			t.Errorf("%d tokens: %d pages are passed, want %d", n, got, want)
		}
		if err := b.truncate(x, 0); err != nil {
			t.Fatal(err)
		}
	}
	b.must(x, story(0, 0, 266))

	// The pages that were passed are idle, and come back.
	if err := b.truncate(x, 100); err != nil || passed() != 0 {
		t.Errorf("Truncate: %v, %d pages are passed", err, passed())
	}
	b.check()
	b.must(x, story(0, 100, 266))

	// Others take the pages behind the window.
	for n := range 5 {
		b.must(b.open(""), story(1, 1000*n, 1000*n+30))
	}
	err := b.truncate(x, 100)
	if want := "kv: truncating to 100 tokens: keys behind the sliding window, or the state of recurrent layers, are gone"; !errors.Is(err, ErrEvicted) || err.Error() != want {
		t.Errorf("Truncate: %v; want %s", err, want)
	}
	b.check()
	if err := b.truncate(x, 265); err != nil {
		t.Errorf("Truncate within the window: %v", err)
	}
	b.check()
	if err := b.truncate(x, 0); err != nil {
		t.Errorf("Truncate to nothing: %v", err)
	}
	b.finish()
}

// TestChunk follows a sequence past its chunks and back, and a layer that reads the keys of another beside it.
func TestChunk(t *testing.T) {
	c := mixed
	c.Layers = []Layer{{KVHeads: 1, KeySize: headSize, Keeps: Chunk(chunk)}, {KVHeads: 1, KeySize: headSize, Keeps: Share(0)}}
	b := newBook(t, c)
	x := b.open("")
	passed := func() (n int) {
		for _, id := range b.k.seqs[x.seq].tables[0] {
			if id == noPage {
				n++
			}
		}
		return n
	}
	for n, want := range map[int]int{74: 0, 89: 0, 90: 1, 128: 1, 179: 1, 180: 2, 269: 2, 270: 4, 280: 4} { // chunks begin at 90, 180 and 270
		b.must(x, story(0, 0, n))
		b.check()
		if got := passed(); got != want {
			t.Errorf("%d tokens: %d pages are passed, want %d", n, got, want)
		}
		if err := b.truncate(x, 0); err != nil {
			t.Fatal(err)
		}
	}
	b.must(x, story(0, 0, 280))
	if one, all := b.k.Bytes(), newBook(t, Config{Layers: c.Layers[:1], Type: c.Type, Context: c.Context, Tokens: c.Tokens, Seqs: c.Seqs, Scratch: c.Scratch}).k.Bytes(); one != all {
		t.Errorf("a cache with a shared layer has %d bytes, without it %d", one, all)
	}

	// The pages that were passed are idle, and come back.
	if err := b.truncate(x, 100); err != nil || passed() != 1 {
		t.Errorf("Truncate: %v, %d pages are passed", err, passed())
	}
	b.check()
	b.must(x, story(0, 100, 280))

	// Others find the beginning, and a file holds the chunk that its text ends in.
	y := b.open("")
	if n := b.reuse(y, story(0, 0, 200)); n != 192 {
		t.Errorf("%d tokens are found, want 192", n)
	}
	b.check()
	b.must(y, story(0, 192, 210))
	b.check()
	file := b.saved(y)
	z := b.open("")
	_, err := load(b.k, z.seq, bytes.NewReader(file), len(file), "", story(0, 0, 211))
	n := b.k.Forest.Len(z.seq)
	if z.ids, z.content = story(0, 0, n), slices.Clone(y.content[:n]); err != nil || n != 192 {
		t.Errorf("a session gives %d tokens: %v", n, err)
	}
	b.check()
	for _, one := range []*text{y, z} {
		b.close(one)
	}

	// Others take the pages of earlier chunks.
	for n := range 3 {
		b.must(b.open(""), story(1, 1000*n, 1000*n+80))
	}
	if err := b.truncate(x, 100); !errors.Is(err, ErrEvicted) {
		t.Errorf("Truncate: %v; want %v", err, ErrEvicted)
	}
	b.check()
	if err := b.truncate(x, 271); err != nil {
		t.Errorf("Truncate within the chunk: %v", err)
	}
	b.check()
	b.finish()
}

// fork opens a text that begins as x does.
func (b *book) fork(x *text) *text {
	b.t.Helper()
	s, err := b.k.Fork(x.seq, forest.Trunk)
	if err != nil {
		b.t.Fatal(err)
	}
	y := &text{seq: s, ids: slices.Clone(x.ids), content: slices.Clone(x.content), start: x.start}
	b.texts = append(b.texts, y)
	return y
}

// TestWindowRecall cuts back to pages behind the window that somebody has kept.
func TestWindowRecall(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 128))
	b.fork(x)
	b.must(x, story(0, 128, 250))
	if d := cmp.Diff([]int{4, 4}, b.used()); d != "" {
		t.Errorf("pages in use (-want +got):\n%s", d)
	}
	if err := b.truncate(x, 127); err != nil {
		t.Errorf("Truncate to the pages of a fork: %v", err)
	}
	b.check()
	b.finish()

	b = newBook(t, small)
	x = b.open("")
	b.must(x, story(0, 0, 128))
	if err := b.truncate(x, 64); err != nil {
		t.Fatal(err)
	}
	b.must(x, story(1, 64, 250))
	if err := b.truncate(x, 127); err != nil {
		t.Errorf("Truncate to idle pages: %v", err)
	}
	b.check() // they are those of the second story
	b.finish()

	b = newBook(t, small)
	x, y := b.open(""), b.open("")
	if err := b.say(x, story(0, 0, 10), true); err != nil {
		t.Fatal(err)
	}
	b.must(x, story(0, 10, 150))
	b.must(y, story(0, 0, 66)) // the same tokens, but not the same keys
	if err := b.truncate(x, 127); !errors.Is(err, ErrEvicted) {
		t.Errorf("Truncate to private pages: %v", err)
	}
	b.check()
	b.finish()
}

// TestWindowRecallFull cuts back to an idle page, the only one there is, and into one that is shared.
func TestWindowRecallFull(t *testing.T) {
	c := small
	c.Layers, c.Tokens = c.Layers[1:], 2*PageTokens // 5 pages
	b := newBook(t, c)
	x := b.open("")
	b.must(x, story(0, 0, 128))
	b.must(b.fork(x), story(0, 128, 140))
	b.must(x, story(1, 128, 256))
	b.fork(x)
	if n := b.k.groups[0].pool.available(); n != 1 {
		t.Fatalf("%d pages are available, want 1", n)
	}
	if err := b.truncate(x, 100); !errors.Is(err, ErrFull) {
		t.Errorf("Truncate: %v", err)
	}
	b.check()
	if err := b.truncate(x, 128); err != nil { // no page of its own
		t.Errorf("Truncate: %v", err)
	}
	b.check()
	b.finish()
}

func TestNewRefusals(t *testing.T) {
	tests := []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"cache type", func(c *Config) { c.Type = tensor.Q4_0 }, "kv: cache type Q4_0 is not supported; F32, F16 and Q8_0 are"},
		{"head size", func(c *Config) {
			c.Type, c.Layers = tensor.Q8_0, []Layer{{KVHeads: 1, KeySize: 32}, {KVHeads: 1, KeySize: 48}}
		},
			"kv: cache type Q8_0 needs heads of a multiple of 32 values; layer 1 has 48 (use --cache-type f16 or f32)"},
		{"value size", func(c *Config) { c.Type, c.Layers = tensor.Q8_0, []Layer{{KVHeads: 1, KeySize: 32, ValueSize: 40}} },
			"kv: cache type Q8_0 needs heads of a multiple of 32 values; layer 0 has 40 (use --cache-type f16 or f32)"},
		{"head size 0", func(c *Config) { c.Layers = []Layer{{KVHeads: 1}} },
			"kv: cache type F32 needs heads of a multiple of 1 values; layer 0 has 0 (use --cache-type f16 or f32)"},
		{"context", func(c *Config) { c.Context = 0 }, "kv: a cache for 0 indices, 256 tokens, 3 sequences and 128 rows; each must be 1 or more"},
		{"tokens", func(c *Config) { c.Tokens = -1 }, "kv: a cache for 300 indices, -1 tokens, 3 sequences and 128 rows; each must be 1 or more"},
		{"sequences", func(c *Config) { c.Seqs = 0 }, "kv: a cache for 300 indices, 256 tokens, 0 sequences and 128 rows; each must be 1 or more"},
		{"rows", func(c *Config) { c.Scratch = 0 }, "kv: a cache for 300 indices, 256 tokens, 3 sequences and 0 rows; each must be 1 or more"},
		{"layers", func(c *Config) { c.Layers = nil }, "forest: the model has 0 layers; 1 to 128 are supported"},
		{"memory", func(c *Config) { c.Tokens, c.Limit = 1<<30, 1<<30 },
			"kv: a cache of 1073741824 tokens takes 32.0 GiB and 1.0 GiB may be used: not enough memory; a shorter context (-c) or --cache-type q8_0 takes less"},
		{"overflow", func(c *Config) { c.Tokens, c.Layers = math.MaxInt/2, []Layer{{KVHeads: 1 << 12, KeySize: 1 << 12}} },
			fmt.Sprintf("kv: a cache of %d tokens takes %.1f GiB and %.1f GiB may be used: not enough memory; a shorter context (-c) or --cache-type q8_0 takes less",
				math.MaxInt/2, float64(math.MaxInt/2)*(1<<27)/(1<<30), 65536.0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := small
			tt.change(&c)
			if _, err := New(c); err == nil || err.Error() != tt.want {
				t.Errorf("New: %v; want %s", err, tt.want)
			}
		})
	}
}

// TestVerbRefusals expects the verbs to refuse nodes and sequences that do not exist, and to change nothing.
func TestVerbRefusals(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 70))
	gone := b.open("")
	node, _ := b.grow(gone, story(0, 0, 3), false)
	b.close(gone)
	before := b.state()
	_, forked := b.k.Fork(x.seq, node)
	_, closed := b.k.Reuse(gone.seq, story(0, 0, 70))
	_, never := b.k.Reuse(9, story(0, 0, 70))
	live, _ := b.grow(b.open(""), story(0, 0, 2), false)
	other := b.texts[1]
	_, busy := b.k.Reuse(other.seq, story(0, 0, 70))
	b.close(other)
	dead := fmt.Sprintf("forest: node %#x of sequence 0: node is not live", uint64(node))
	for _, tt := range []struct {
		err  error
		want string
		is   error
	}{
		{forked, dead, forest.ErrNode},
		{b.k.Commit(x.seq, node), dead, forest.ErrNode},
		{b.k.Drop(x.seq, node), dead, forest.ErrNode},
		{busy, "kv: reusing a prefix for a sequence with 2 live rows; drop them first", nil},
		{closed, "forest: sequence 1: sequence is not open", forest.ErrSeq},
		{never, "forest: sequence 9: sequence is not open", forest.ErrSeq},
		{b.k.CloseSeq(gone.seq), "forest: sequence 1: sequence is not open", forest.ErrSeq},
		{b.k.Commit(gone.seq, live), "forest: sequence 1: sequence is not open", forest.ErrSeq},
		{b.k.Truncate(gone.seq, 1), "forest: sequence 1: sequence is not open", forest.ErrSeq},
		{b.k.Truncate(x.seq, 71), "forest: truncating a trunk of 70 tokens to 71; 0 to 70 are possible", nil},
		{b.k.Truncate(x.seq, -1), "forest: truncating a trunk of 70 tokens to -1; 0 to 70 are possible", nil},
	} {
		if tt.err == nil || tt.err.Error() != tt.want || tt.is != nil && !errors.Is(tt.err, tt.is) {
			t.Errorf("%v; want %s", tt.err, tt.want)
		}
	}
	b.same(before, nil)
	b.check()
	b.finish()
}

// TestNames expects the name of a page to change with every number of its entries, and with the name of the page before.
func TestNames(t *testing.T) {
	entries := make([]forest.Entry, PageTokens)
	for i := range entries {
		entries[i] = forest.IDEntry(token.ID(i))
	}
	seen := map[digest]string{chain(digest{}, entries): "nothing"}
	note := func(what string, d digest) {
		if first, twice := seen[d]; twice {
			t.Errorf("%s changes the name as %s does", what, first)
		}
		seen[d] = what
	}
	for i := range entries {
		for bit := 0; bit < 64; bit += 21 {
			other := slices.Clone(entries)
			other[i].A ^= 1 << bit
			note(fmt.Sprintf("bit %d of the first number of entry %d", bit, i), chain(digest{}, other))
			other = slices.Clone(entries)
			other[i].B ^= 1 << bit
			note(fmt.Sprintf("bit %d of the second number of entry %d", bit, i), chain(digest{}, other))
		}
	}
	for i := range len(digest{}) {
		var before digest
		before[i] = 1
		note(fmt.Sprintf("byte %d of the name before", i), chain(before, entries))
	}
}
