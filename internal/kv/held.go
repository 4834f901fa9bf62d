package kv

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// ErrFile reports a session's file that this cache cannot use: it is damaged, or of another model, cache type or salt.
var ErrFile = errors.New("not a session of this model, cache type and salt, or damaged")

// errCrosses refuses files of pages that depend on a source, which they do not hold.
var errCrosses = errors.New("kv: the model reads a source besides its text, and files of pages have no room for one")

// fileMagic begins a file of pages; the digit is its version.
const fileMagic = "grovekv2"

// Held is the full pages of a text, held apart from any sequence, to write them to a file. The verbs of the cache and
// [Held.Release] need the cache to themselves. [Held.Write] does not: nothing changes these pages (K2).
type Held struct {
	k     *Cache
	text  []token.ID // the whole text, of which the pages hold a prefix
	salt  digest
	pages int
	ids   [][]int32 // by group, from the first page on that the window still sees
	state int32     // of recurrent layers behind the pages; noPage: there is none
}

// Hold holds the sealed pages of a sequence's trunk, as many as another sequence can continue. The trunk's tokens must
// be a prefix of text, which Hold copies. Errors: [forest.ErrSeq], and a token that differs.
func (k *Cache) Hold(s forest.Seq, text []token.ID) (*Held, error) {
	if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
		return nil, err
	}
	if k.Crosses() {
		return nil, errCrosses
	}
	t := &k.seqs[s]
	n := len(t.hashes)
	if t.private != noPage {
		n = min(n, t.private)
	}
	for i := range n * PageTokens {
		if i >= len(text) || t.entries[i] != k.entry(t, i, text[i]) {
			return nil, fmt.Errorf("kv: token %d of the trunk differs from the text's", i)
		}
	}
	for n > 0 && !k.stored(t, 0, n) { // pages behind a window may be gone
		n--
	}
	h := &Held{k: k, text: slices.Clone(text), salt: t.own, pages: n, state: noPage}
	if k.states != nil && n > 0 {
		h.state, _ = k.states.pool.share(t.hashes[n-1])
	}
	for g := range k.groups {
		var ids []int32
		for p := k.firstSeen(g, n*PageTokens); p < n; p++ {
			id, _ := k.groups[g].pool.share(t.hashes[p])
			ids = append(ids, id)
		}
		h.ids = append(h.ids, ids)
	}
	return h, nil
}

// Release gives the pages back. Sealed pages stay findable until their memory is needed.
func (h *Held) Release() {
	for g, ids := range h.ids {
		for i := len(ids) - 1; i >= 0; i-- {
			h.k.groups[g].pool.drop(ids[i])
		}
	}
	h.ids = nil
	if h.state != noPage {
		h.k.states.drop(&h.state)
	}
}

// Write writes the text, its pages, and a digest of both. It may run while the cache is in use.
func (h *Held) Write(w io.Writer) error {
	origin, err := h.k.origin(h.salt)
	if err != nil {
		return err
	}
	sum := sha256.New()
	b := bufio.NewWriter(io.MultiWriter(w, sum))
	b.WriteString(fileMagic)
	b.Write(origin[:])
	number := func(n int) { b.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	number(len(h.text))
	for _, id := range h.text {
		number(int(id))
	}
	number(h.pages)
	for g, ids := range h.ids {
		for _, id := range ids {
			b.Write(h.k.groups[g].pool.bytes(id))
		}
	}
	if h.state != noPage {
		b.Write(h.k.states.pool.bytes(h.state))
	}
	if err := b.Flush(); err != nil { // the first error of all writes
		return err
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// origin returns the digest of what a file's pages belong to: the model, by [Config].Identity, the cache type and the salt.
func (k *Cache) origin(salt digest) (d digest, err error) {
	identity := ""
	if k.config.Identity != nil {
		identity, err = k.config.Identity()
	}
	return sha256.Sum256(append(salt[:], identity...)), err
}

// Reader reads a file that [Held.Write] wrote into a sequence of the cache, in parts: the text, then the pages. Its pages
// stay apart from computed ones: their names begin with the file's digest, so that only sequences of the file find them.
type Reader struct {
	k    *Cache
	r    io.Reader
	sum  hash.Hash // of the bytes that were read
	text []token.ID
	has  int       // pages of the file
	n    int       // of these, the pages to take
	ids  [][]int32 // by group, the pages that were taken; noPage: it is not seen
	name digest    // with which the names of the pages begin

	state int32 // that was taken; NoState: none
}

// NewReader reads the text of a file of size bytes. It returns [ErrFile] where the file is not of the cache's model, cache type
// and salt, has ids that are not below a vocabulary, or another size than it should. A file of a cache with another context is none of these. It may run while the cache is in use.
func (k *Cache) NewReader(r io.Reader, size int64, salt string, vocabulary int) (*Reader, error) {
	return k.NewAdaptedReader(r, size, salt, Adapted{}, vocabulary)
}

// NewAdaptedReader is [Cache.NewReader] for the file of a sequence with adapters.
func (k *Cache) NewAdaptedReader(r io.Reader, size int64, salt string, adapted Adapted, vocabulary int) (*Reader, error) {
	if k.Crosses() {
		return nil, errCrosses
	}
	in := &Reader{k: k, r: bufio.NewReader(r), sum: sha256.New(), state: NoState}
	origin, err := k.origin(adapted.own(k.saltOf(salt)))
	if err != nil {
		return nil, err
	}
	head := make([]byte, len(fileMagic)+len(origin))
	if err := in.full(head); err != nil {
		return nil, err
	}
	if string(head[:len(fileMagic)]) != fileMagic || !bytes.Equal(head[len(fileMagic):], origin[:]) {
		return nil, in.broken("the file has another beginning")
	}
	n, err := in.number(int(min(size/4, math.MaxInt32))) // of a cache with a longer context, it may be longer than this one's
	for i := 0; i < n && err == nil; i++ {
		var id int
		id, err = in.number(vocabulary - 1)
		in.text = append(in.text, token.ID(id))
	}
	if err == nil {
		in.has, err = in.number(n / PageTokens)
	}
	if err != nil {
		return nil, err
	}
	want := int64(len(head) + 4*(n+2) + sha256.Size)
	for g := range k.groups {
		want += int64(in.has-k.firstSeen(g, in.has*PageTokens)) * int64(k.groups[g].pool.pageBytes)
	}
	if k.states != nil && in.has > 0 {
		want += int64(k.states.pool.pageBytes)
	}
	if size != want {
		return nil, in.broken(fmt.Sprintf("the file has %d bytes and should have %d", size, want))
	}
	return in, nil
}

// Use chooses the pages that a text begins with and can go on from, and returns their tokens: a prefix of ids, of which at least
// one is left over. 0: there are none, and the text is computed.
func (in *Reader) Use(ids []token.ID) int {
	same := 0
	for same < min(len(in.text), len(ids)-1) && in.text[same] == ids[same] {
		same++
	}
	in.n = min(in.has, same/PageTokens)
	if st := in.k.states; st != nil && (in.n < in.has || in.n*PageTokens%st.cadence != 0) {
		in.n = 0 // the only state is behind all pages, and not where this cache has states: the file is of one with another context
	}
	for g := range in.k.groups {
		if in.k.firstSeen(g, in.n*PageTokens) < in.k.firstSeen(g, in.has*PageTokens) {
			in.n = 0 // a window has passed what a row behind them sees
		}
	}
	return in.n * PageTokens
}

func (in *Reader) broken(what string) error { return fmt.Errorf("kv: %s: %w", what, ErrFile) }

func (in *Reader) full(b []byte) error {
	if _, err := io.ReadFull(in.r, b); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return in.broken("the file ends early")
	} else if err != nil {
		return err
	}
	in.sum.Write(b)
	return nil
}

func (in *Reader) number(most int) (int, error) {
	var b [4]byte
	if err := in.full(b[:]); err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint32(b[:])
	if uint64(n) > uint64(most) {
		return 0, in.broken(fmt.Sprintf("a number is %d; it must be 0 to %d", n, most))
	}
	return int(n), nil
}

// Take gives an empty sequence the pages that [Reader.Use] chose, behind its end: it is still empty, and [Cache.Truncate] gives
// them back. Errors: [ErrFull]; nothing has changed then. It needs the cache to itself.
func (in *Reader) Take(s forest.Seq) error {
	ids, state, err := in.k.takePages(&in.k.seqs[s], in.n)
	if err == nil {
		in.ids, in.state = ids, state
	}
	return err
}

// Fill reads the pages and checks the file's digest. It returns [ErrFile] where the file is damaged. It may run while
// the cache is in use, as long as the sequence keeps its pages.
func (in *Reader) Fill() error {
	for g, ids := range in.ids {
		unused := make([]byte, in.k.groups[g].pool.pageBytes)
		for p := in.k.firstSeen(g, in.has*PageTokens); p < in.has; p++ {
			page := unused
			if p < in.n && ids[p] != noPage {
				page = in.k.groups[g].pool.bytes(ids[p])
			}
			if err := in.full(page); err != nil {
				return err
			}
		}
	}
	if st := in.k.states; st != nil && in.has > 0 {
		page := make([]byte, st.pool.pageBytes) // for a state that is not used
		if in.state != NoState {
			page = st.pool.bytes(in.state)
		}
		if err := in.full(page); err != nil {
			return err
		}
	}
	want := in.sum.Sum(nil)
	got := make([]byte, len(want)+1)
	if n, err := io.ReadFull(in.r, got); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	} else if n != len(want) || !bytes.Equal(got[:n], want) {
		return in.broken("the file's digest differs from its content's")
	}
	in.name = sha256.Sum256(append([]byte("file"), want...)) // of no other kind of digest, whose lengths differ
	return nil
}

// Adopt makes the pages that [Reader.Fill] has read the trunk of the sequence that took them. It needs the cache to itself.
func (in *Reader) Adopt(s forest.Seq) error {
	t := &in.k.seqs[s]
	t.salt = in.name
	return in.k.adopt(s, in.text, in.n)
}

// takePages gives a trunk of full pages those that a text of n pages has behind them, and that a row behind these sees, and the state
// behind them. It returns the tables of the groups. Errors: [ErrFull]; nothing has changed then.
func (k *Cache) takePages(t *trunk, n int) (tables [][]int32, state int32, err error) {
	have := len(t.hashes)
	for g := range k.groups {
		if need := n - max(have, k.firstSeen(g, n*PageTokens)); need > k.groups[g].pool.available() {
			return nil, NoState, fmt.Errorf("kv: %d pages of a file: %w", need, ErrFull)
		}
	}
	state = NoState
	if st := k.states; st != nil && n > have {
		if state, err = st.take(); err != nil {
			return nil, NoState, err
		}
		st.drop(&t.state.loaded)
		t.state.loaded = state
	}
	k.dropPages(t, have*PageTokens)
	for g := range k.groups {
		for p := have; p < n; p++ {
			id := int32(noPage)
			if p >= k.firstSeen(g, n*PageTokens) {
				id, _ = k.groups[g].pool.take()
			}
			t.tables[g] = append(t.tables[g], id)
		}
		tables = append(tables, slices.Clone(t.tables[g]))
	}
	return tables, state, nil
}

// adopt makes the pages that takePages gave a sequence, and that have been read, its trunk: they hold the first n pages of a text.
func (k *Cache) adopt(s forest.Seq, text []token.ID, n int) error {
	t := &k.seqs[s]
	have := len(t.entries)
	for g := range k.groups { // pages of the trunk as it was, which no later row sees
		for p := range min(have/PageTokens, k.firstSeen(g, n*PageTokens)) {
			if id := t.tables[g][p]; id != noPage {
				k.groups[g].pool.drop(id)
				t.tables[g][p] = noPage
			}
		}
	}
	for _, id := range text[have : n*PageTokens] {
		t.entries = append(t.entries, k.entry(t, len(t.entries), id))
		if len(t.entries)%PageTokens == 0 {
			k.seal(t)
		}
	}
	if st := k.states; st != nil && n*PageTokens > have {
		id := t.state.loaded
		t.state.loaded = NoState
		st.setBase(&t.state, id, len(t.entries))
		k.nameBase(t)
	}
	return k.Forest.Extend(s, len(t.entries)-have)
}
