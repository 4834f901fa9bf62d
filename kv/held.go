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
	"slices"

	"grove/forest"
	"grove/text/token"
)

// ErrFile reports a file without pages for this cache: it is damaged, or of another model, cache type or salt.
var ErrFile = errors.New("not a session of this model, cache type and salt, or damaged")

// fileMagic begins a file of pages; the digit is its version.
const fileMagic = "grovekv2"

// Held is the full pages of a text, held apart from any sequence, to write them to a file or to read them from one.
// The verbs of the cache and [Held.Release] need the cache to themselves. [Held.Write] and [Reader.Fill] do not:
// nothing changes these pages (K2).
type Held struct {
	Text []token.ID // the whole text, of which the pages hold a prefix

	k      *Cache
	salt   digest
	hashes []digest
	first  []int     // by group: the first page that the window still sees
	ids    [][]int32 // by group
}

// Hold holds the sealed pages of a sequence's trunk, as many as another sequence can continue. The trunk's tokens must
// be a prefix of text, which Hold copies. Errors: [forest.ErrSeq], and a token that differs.
func (k *Cache) Hold(s forest.Seq, text []token.ID) (*Held, error) {
	if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
		return nil, err
	}
	t := &k.seqs[s]
	n := len(t.hashes)
	if t.private != noPage {
		n = min(n, t.private)
	}
	for i := range n * PageTokens {
		if i >= len(text) || t.entries[i] != forest.IDEntry(text[i]) {
			return nil, fmt.Errorf("kv: token %d of the trunk differs from the text's", i)
		}
	}
	for n > 0 && !k.stored(t, 0, n) { // pages behind a window may be gone
		n--
	}
	h := &Held{k: k, Text: slices.Clone(text), salt: t.salt, hashes: slices.Clone(t.hashes[:n])}
	for g := range k.groups {
		first := k.firstSeen(g, n*PageTokens)
		var ids []int32
		for p := first; p < n; p++ {
			id, _ := k.groups[g].pool.share(t.hashes[p])
			ids = append(ids, id)
		}
		h.first, h.ids = append(h.first, first), append(h.ids, ids)
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
	number(len(h.Text))
	for _, id := range h.Text {
		number(int(id))
	}
	number(len(h.hashes))
	for g, ids := range h.ids {
		for _, id := range ids {
			b.Write(h.k.groups[g].pool.bytes(id))
		}
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

// Reader reads a file that [Held.Write] wrote, in two parts: the text, then the pages.
type Reader struct {
	k      *Cache
	r      io.Reader
	sum    hash.Hash // of the bytes that were read
	held   *Held
	nPages int
}

// NewReader reads a file's text. It returns [ErrFile] where the file is not of the cache's model, cache type and the
// salt. It may run while the cache is in use.
func (k *Cache) NewReader(r io.Reader, salt string) (*Reader, error) {
	in := &Reader{k: k, r: bufio.NewReader(r), sum: sha256.New(), held: &Held{k: k, salt: k.saltOf(salt)}}
	origin, err := k.origin(in.held.salt)
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
	n, err := in.number(k.config.Context)
	for i := 0; i < n && err == nil; i++ {
		var id int
		id, err = in.number(1<<31 - 1)
		in.held.Text = append(in.held.Text, token.ID(id))
	}
	if err == nil {
		in.nPages, err = in.number(n / PageTokens)
	}
	if err != nil {
		return nil, err
	}
	for g := range k.groups {
		in.held.first = append(in.held.first, k.firstSeen(g, in.nPages*PageTokens))
	}
	prev := in.held.salt
	for p := range in.nPages {
		var entries [PageTokens]forest.Entry
		for i, id := range in.held.Text[p*PageTokens : (p+1)*PageTokens] {
			entries[i] = forest.IDEntry(id)
		}
		prev = chain(prev, entries[:])
		in.held.hashes = append(in.held.hashes, prev)
	}
	return in, nil
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

// Take takes pages for those of the file. It returns [ErrFull] where too few are free. It needs the cache to itself.
func (in *Reader) Take() (*Held, error) {
	h := in.held
	for g := range in.k.groups {
		if need := in.nPages - h.first[g]; need > in.k.groups[g].pool.available() {
			return nil, fmt.Errorf("kv: %d pages of a session: %w", need, ErrFull)
		}
	}
	for g := range in.k.groups {
		var ids []int32
		for range in.nPages - h.first[g] {
			id, _ := in.k.groups[g].pool.take()
			ids = append(ids, id)
		}
		h.ids = append(h.ids, ids)
	}
	return h, nil
}

// Fill reads the pages and checks the file's digest. It returns [ErrFile] where the file is damaged. It may run while
// the cache is in use.
func (in *Reader) Fill() error {
	for g, ids := range in.held.ids {
		for _, id := range ids {
			if err := in.full(in.k.groups[g].pool.bytes(id)); err != nil {
				return err
			}
		}
	}
	want := in.sum.Sum(nil)
	got := make([]byte, len(want)+1)
	if n, err := io.ReadFull(in.r, got); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	} else if n != len(want) || !bytes.Equal(got[:n], want) {
		return in.broken("the file's digest differs from its content's")
	}
	return nil
}

// Seal gives the pages their hashes, by which sequences find them. It needs the cache to itself.
func (h *Held) Seal() {
	for g, ids := range h.ids {
		for i, id := range ids {
			ids[i] = h.k.groups[g].pool.seal(id, h.hashes[h.first[g]+i])
		}
	}
}
