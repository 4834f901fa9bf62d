// Package datastore holds texts as tokens with a suffix array, in a file that is mapped into memory: what followed a run of tokens in them
// is found by binary search (REST, He et al. 2023).
//
// A file has a header of 96 bytes, the tokens, and the suffix array; numbers are little-endian:
//
//	0   8 bytes  "grovedat"
//	8   uint32   version, 1
//	12  uint32   bytes of a token, 2 or 4
//	16  uint64   tokens of the vocabulary; the number itself, as a token, ends each text
//	24  uint64   tokens, those that end texts among them
//	32  uint64   texts
//	40  32 bytes SHA-256 of the vocabulary, see [Digest]
//	72  20 bytes 0
//	92  uint32   CRC-32C of the bytes before
//
// The tokens are padded with zeros to a multiple of 4 bytes. The suffix array has a uint32 for each token that ends no text: its place,
// sorted by [Sorted] tokens from there on, then by place.
package datastore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"grove/internal/mmap"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

const (
	magic      = "grovedat"
	version    = 1
	headerSize = 96

	// Sorted is the number of tokens by which the suffix array is sorted.
	Sorted = 32
	// MaxTokens bounds the tokens of a datastore.
	MaxTokens = 1 << 29

	maxVocabulary = 1 << 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Store is an open datastore. It does not change and is safe for concurrent use. Where its file has become shorter, reading it faults: see
// [Store.Read].
type Store struct {
	file       *mmap.Map // nil: it was parsed from memory
	path       string
	width      int
	vocabulary uint32
	tokens     uint32
	texts      uint32
	digest     [sha256.Size]byte
	ids, array []byte
}

// Digest returns the SHA-256 of the texts of a tokenizer's tokens, each behind its length.
func Digest(t *tokenizer.Tokenizer) (sum [sha256.Size]byte) {
	h := sha256.New()
	for id := range token.ID(t.Size()) {
		text := t.Text(id)
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
		h.Write([]byte(text))
	}
	h.Sum(sum[:0])
	return sum
}

// Open maps a file. Close closes it.
func Open(path string) (*Store, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	var s *Store
	if err := mmap.Catch(func() (err error) { s, err = Parse(m.Data()); return err }); err != nil {
		_ = m.Close() // its error would only hide the cause
		return nil, err
	}
	s.file, s.path = m, path
	return s, nil
}

// Parse reads a datastore in place: b is not to change. Errors: b is none, or is not as long as its header says.
func Parse(b []byte) (*Store, error) {
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return nil, errors.New("the file is not a datastore; make one with grove datastore")
	}
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	if v := u32(b[8:]); v != version {
		return nil, fmt.Errorf("version %d; this program reads version %d", v, version)
	}
	if sum := crc32.Checksum(b[:headerSize-4], castagnoli); sum != u32(b[headerSize-4:]) {
		return nil, errors.New("the header is damaged: its checksum does not match")
	}
	width, vocabulary, tokens, texts := u32(b[12:]), u64(b[16:]), u64(b[24:]), u64(b[32:])
	switch {
	case width != 2 && width != 4 || vocabulary < 1 || vocabulary > maxVocabulary || width == 2 && vocabulary > 1<<16-1:
		return nil, fmt.Errorf("the header gives tokens of %d bytes for a vocabulary of %d; the file is damaged", width, vocabulary)
	case tokens > MaxTokens || texts > tokens:
		return nil, fmt.Errorf("the header gives %d tokens in %d texts; a datastore has at most %d tokens", tokens, texts, MaxTokens)
	}
	ids := (tokens*uint64(width) + 3) &^ 3
	if want := headerSize + ids + 4*(tokens-texts); uint64(len(b)) != want {
		return nil, fmt.Errorf("%d bytes, and the header says %d: the file is cut off or damaged", len(b), want)
	}
	s := &Store{width: int(width), vocabulary: uint32(vocabulary), tokens: uint32(tokens), texts: uint32(texts)}
	s.digest = [sha256.Size]byte(b[40:])
	s.ids, s.array = b[headerSize:headerSize+ids], b[headerSize+ids:]
	return s, nil
}

// For opens the file of a path whose tokens must be those of a tokenizer; nil for "".
func For(t *tokenizer.Tokenizer, path string) (*Store, error) {
	if path == "" {
		return nil, nil
	}
	s, err := Open(path)
	if err == nil {
		err = s.Check(t)
	}
	if err != nil {
		_ = s.Close() // its error would only hide the cause
		return nil, fmt.Errorf("datastore: %s: %w", path, err)
	}
	return s, nil
}

// Close closes the file. Nil has none.
func (s *Store) Close() error {
	if s == nil || s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Paths returns the path of the file, nothing where the store was parsed from memory or is nil.
func (s *Store) Paths() []string {
	if s == nil || s.file == nil {
		return nil
	}
	return []string{s.path}
}

// Tokens returns the number of tokens, without those that end texts, and of texts.
func (s *Store) Tokens() (tokens, texts int) { return int(s.tokens - s.texts), int(s.texts) }

// Check returns an error where the tokens are of another vocabulary than a tokenizer's.
func (s *Store) Check(t *tokenizer.Tokenizer) error {
	if int(s.vocabulary) != t.Size() || s.digest != Digest(t) {
		return fmt.Errorf("its tokens are of another tokenizer, of %d tokens; the model's has %d, and grove datastore makes one for it", s.vocabulary, t.Size())
	}
	return nil
}

// Read calls fn, which reads the store, and returns an error where the file has become shorter meanwhile.
func (s *Store) Read(fn func() error) error {
	if s.file == nil {
		return fn()
	}
	return mmap.Catch(fn)
}

// at returns a token, or what ends a text.
func (s *Store) at(place uint32) uint32 {
	if place >= s.tokens {
		return s.vocabulary
	}
	if s.width == 2 {
		return uint32(binary.LittleEndian.Uint16(s.ids[2*int(place):]))
	}
	return binary.LittleEndian.Uint32(s.ids[4*int(place):])
}

// place returns an entry of the suffix array.
func (s *Store) place(i int) uint32 { return binary.LittleEndian.Uint32(s.array[4*i:]) }

// Range is the occurrences of a run of tokens: entries of the suffix array that begin with it.
type Range struct {
	ID     token.ID // the last of the run
	Length int32    // of the run
	lo, hi int32
}

// Count returns how often the run occurs.
func (r Range) Count() int { return int(r.hi - r.lo) }

// Longest returns the occurrences of the longest end of a text that occurs, of the lengths from shortest to longest, [Sorted] at most; none
// where no such end does.
func (s *Store) Longest(text []token.ID, shortest, longest int) (found Range) {
	lo, hi := shortest, min(longest, len(text), Sorted)
	for lo <= hi { // where an end occurs, shorter ones do
		n := (lo + hi) / 2
		if r := s.find(text[len(text)-n:]); r.Count() > 0 {
			found, lo = r, n+1
		} else {
			hi = n - 1
		}
	}
	return found
}

// find returns the occurrences of a run.
func (s *Store) find(run []token.ID) Range {
	all := len(s.array) / 4
	lo := search(0, all, func(i int) bool { return s.compare(s.place(i), run) >= 0 })
	if lo == all || s.compare(s.place(lo), run) != 0 {
		return Range{}
	}
	hi := search(lo, all, func(i int) bool { return s.compare(s.place(i), run) > 0 })
	return Range{ID: run[len(run)-1], Length: int32(len(run)), lo: int32(lo), hi: int32(hi)}
}

// compare compares the tokens from a place on with a run: 0 where they begin with it.
func (s *Store) compare(place uint32, run []token.ID) int {
	for i, id := range run {
		if got := s.at(place + uint32(i)); got != uint32(id) {
			if got < uint32(id) {
				return -1
			}
			return 1
		}
	}
	return 0
}

// search returns the first i of [lo, hi) for which is reports true, and hi where there is none.
func search(lo, hi int, is func(i int) bool) int {
	for lo < hi {
		if m := (lo + hi) / 2; is(m) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// Then returns the occurrences of a run with a token behind it; none behind a run of [Sorted] tokens.
func (s *Store) Then(r Range, id token.ID) Range {
	if r.Length >= Sorted || id < 0 || uint32(id) >= s.vocabulary {
		return Range{}
	}
	behind := func(i int) uint32 { return s.at(s.place(i) + uint32(r.Length)) }
	lo := search(int(r.lo), int(r.hi), func(i int) bool { return behind(i) >= uint32(id) })
	hi := search(lo, int(r.hi), func(i int) bool { return behind(i) > uint32(id) })
	return Range{id, r.Length + 1, int32(lo), int32(hi)}
}

// probes is the number of places at which [Store.Next] looks.
const probes = 16

// Next appends the tokens that follow a run, with their occurrences, by token: all that follow at least a sixteenth of the run's
// occurrences, and some of the others. Behind a run of [Sorted] tokens it appends none.
func (s *Store) Next(dst []Range, r Range) []Range {
	if r.Length >= Sorted {
		return dst
	}
	behind := func(i int) uint32 { return s.at(s.place(i) + uint32(r.Length)) }
	for probe, at := 0, int(r.lo); probe < probes && at < int(r.hi); probe++ {
		if i := int(r.lo) + (probe+1)*r.Count()/probes - 1; i >= at {
			id := behind(i)
			lo := search(at, i, func(i int) bool { return behind(i) >= id })
			at = search(i, int(r.hi), func(i int) bool { return behind(i) > id })
			if id < s.vocabulary {
				dst = append(dst, Range{token.ID(id), r.Length + 1, int32(lo), int32(at)})
			}
		}
	}
	return dst
}
