package datastore

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Builder collects texts for a datastore, with 8 bytes of memory for each token. It is for one goroutine.
type Builder struct {
	vocabulary uint32
	digest     [sha256.Size]byte
	ids        []uint32
	texts      int
}

// NewBuilder makes a builder for texts of a tokenizer.
func NewBuilder(t *tokenizer.Tokenizer) *Builder {
	return &Builder{vocabulary: uint32(t.Size()), digest: Digest(t)}
}

// Add adds a text. Errors: a token outside the vocabulary, more than [MaxTokens].
func (b *Builder) Add(text []token.ID) error {
	if len(b.ids)+len(text)+1 > MaxTokens {
		return fmt.Errorf("datastore: more than %d tokens", MaxTokens)
	}
	for _, id := range text {
		if id < 0 || uint32(id) >= b.vocabulary {
			return fmt.Errorf("datastore: token %d is outside the vocabulary of %d", id, b.vocabulary)
		}
		b.ids = append(b.ids, uint32(id))
	}
	b.ids, b.texts = append(b.ids, b.vocabulary), b.texts+1
	return nil
}

// Write writes the datastore: the same bytes for the same texts.
func (b *Builder) Write(w io.Writer) error {
	width := 4
	if b.vocabulary < 1<<16 {
		width = 2
	}
	le := binary.LittleEndian
	h := make([]byte, headerSize)
	copy(h, magic)
	le.PutUint32(h[8:], version)
	le.PutUint32(h[12:], uint32(width))
	le.PutUint64(h[16:], uint64(b.vocabulary))
	le.PutUint64(h[24:], uint64(len(b.ids)))
	le.PutUint64(h[32:], uint64(b.texts))
	copy(h[40:], b.digest[:])
	le.PutUint32(h[headerSize-4:], crc32.Checksum(h[:headerSize-4], castagnoli))
	out := bufio.NewWriterSize(w, 1<<16) // it keeps the first error
	_, _ = out.Write(h)
	var word [4]byte
	for _, id := range b.ids {
		le.PutUint32(word[:], id)
		_, _ = out.Write(word[:width])
	}
	_, _ = out.Write(make([]byte, -len(b.ids)*width&3))
	for _, place := range b.array() {
		le.PutUint32(word[:], place)
		_, _ = out.Write(word[:])
	}
	return out.Flush()
}

// array returns the suffix array: places are put into the order of their first tokens, then those of each token are sorted.
func (b *Builder) array() []uint32 {
	starts := make([]int, b.vocabulary+1)
	for _, id := range b.ids {
		if id < b.vocabulary {
			starts[id+1]++
		}
	}
	for id := range b.vocabulary {
		starts[id+1] += starts[id]
	}
	array, next := make([]uint32, len(b.ids)-b.texts), slices.Clone(starts)
	for place, id := range b.ids {
		if id < b.vocabulary {
			array[next[id]] = uint32(place)
			next[id]++
		}
	}
	for id := range b.vocabulary {
		b.sort(array[starts[id]:starts[id+1]], 1)
	}
	return array
}

// at returns the token so many places behind a place.
func (b *Builder) at(place uint32, depth int) uint32 {
	if at := int(place) + depth; at < len(b.ids) {
		return b.ids[at]
	}
	return b.vocabulary
}

// sort sorts places whose first depth tokens are equal, by the tokens up to [Sorted] and then by place: quicksort by one token at a time
// (Bentley and Sedgewick 1997).
func (b *Builder) sort(places []uint32, depth int) {
	for len(places) > 1 {
		if depth == Sorted {
			slices.Sort(places)
			return
		}
		x, y, z := b.at(places[0], depth), b.at(places[len(places)/2], depth), b.at(places[len(places)-1], depth)
		pivot := max(min(x, y), min(max(x, y), z))
		less, same, more := 0, 0, len(places)
		for same < more {
			switch id := b.at(places[same], depth); {
			case id < pivot:
				places[less], places[same] = places[same], places[less]
				less, same = less+1, same+1
			case id > pivot:
				more--
				places[more], places[same] = places[same], places[more]
			default:
				same++
			}
		}
		b.sort(places[less:more], depth+1)
		if less < len(places)-more { // the smaller part by a call: the stack stays small
			b.sort(places[:less], depth)
			places = places[more:]
		} else {
			b.sort(places[more:], depth)
			places = places[:less]
		}
	}
}
