package tokenizer

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"grove/text/token"
)

// merge is the piece that two neighbouring pieces become, and its rank. The lowest rank merges first; of equal ranks, the
// leftmost.
type merge struct {
	rank  uint32
	piece int32
}

// never is the rank of neighbours that do not merge.
const never = math.MaxUint32

// maxWord bounds the bytes that are merged at once, so that offsets fit 32 bits.
const maxWord = 1 << 30

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// symbol is a piece of the word that is encoded, in a list linked by index; -1 ends the list.
type symbol struct {
	start, end int32 // its bytes in the word
	prev, next int32
	piece      int32 // none for a character that has not merged in SentencePiece
	merge            // with the next symbol; rank is never where they do not merge, and once it is merged away
}

// scratch is the memory of one encoding, with a cache of the ids of words. The ids of a word depend on the word alone.
type scratch struct {
	symbols []symbol
	queue   queue
	steps   []step
	words   map[string][2]int32 // short words to their stretch of ids
	ids     []token.ID
}

// The cache holds words of at most maxRemembered bytes. It is emptied when it holds maxWords.
const (
	maxWords      = 1 << 12
	maxRemembered = 32
)

// appendWord appends the ids of a word.
func (t *Tokenizer) appendWord(dst []token.ID, word string, s *scratch) ([]token.ID, error) {
	if t.whole {
		if p, ok := t.pieces[word]; ok && int(p) < len(t.tokens) {
			return append(dst, token.ID(p)), nil
		}
	}
	if at, ok := s.words[word]; ok {
		return append(dst, s.ids[at[0]:at[1]]...), nil
	}
	n := len(dst)
	dst, err := t.encode(dst, word, s)
	if err == nil && len(word) <= maxRemembered {
		s.remember(word, dst[n:])
	}
	return dst, err
}

func (s *scratch) remember(word string, ids []token.ID) {
	if len(s.words) == maxWords {
		clear(s.words)
		s.ids = s.ids[:0]
	}
	n := len(s.ids)
	s.ids = append(s.ids, ids...)
	s.words[strings.Clone(word)] = [2]int32{int32(n), int32(len(s.ids))}
}

// mergeWord appends the ids of a word by merging, in O(n log n) for n bytes. Every symbol holds the merge with its neighbour. The
// queue holds (rank, symbol); an entry is stale if the symbol now has another rank.
func (t *Tokenizer) mergeWord(dst []token.ID, word string, s *scratch) ([]token.ID, error) {
	if len(word) > maxWord {
		return dst, fmt.Errorf("tokenizer: %d bytes of text without a break are more than %d", len(word), maxWord)
	}
	t.split(word, s)
	for i := range s.symbols {
		t.propose(word, s, int32(i))
	}
	for len(s.queue) > 0 {
		rank, left := s.queue.pop()
		l := &s.symbols[left]
		if l.rank != rank {
			continue
		}
		r := &s.symbols[l.next]
		l.end, l.next, l.piece = r.end, r.next, l.merge.piece
		r.rank = never
		if l.next >= 0 {
			s.symbols[l.next].prev = left
		}
		t.propose(word, s, left)
		if l.prev >= 0 {
			t.propose(word, s, l.prev)
		}
	}
	var err error
	from := len(dst)
	for i := int32(0); i >= 0 && err == nil; i = s.symbols[i].next {
		dst, err = t.appendSymbol(dst, from, word, s.symbols[i])
	}
	return dst, err
}

// split makes the first symbols of a word: its bytes, or its characters.
func (t *Tokenizer) split(word string, s *scratch) {
	s.symbols = s.symbols[:0]
	for i := 0; i < len(word); {
		n, p := 1, none
		if !t.chars {
			p = t.bytes[word[i]]
		} else if _, n = utf8.DecodeRuneInString(word[i:]); t.pairs != nil {
			if q, ok := t.pieces[word[i:i+n]]; ok {
				p = q
			}
		}
		k := int32(len(s.symbols))
		s.symbols = append(s.symbols, symbol{start: int32(i), end: int32(i + n), prev: k - 1, next: k + 1, piece: p})
		i += n
	}
	s.symbols[len(s.symbols)-1].next = -1
}

// propose finds the merge of a symbol with the next one and queues it.
func (t *Tokenizer) propose(word string, s *scratch, left int32) {
	l := &s.symbols[left]
	l.rank = never
	if l.next < 0 {
		return
	}
	r := &s.symbols[l.next]
	if t.pairs != nil {
		if m, ok := t.pairs[pairKey(l.piece, r.piece)]; ok {
			l.merge = m
		}
	} else if int(r.end-l.start) <= t.longest {
		if p, ok := t.pieces[word[l.start:r.end]]; ok {
			l.merge = merge{t.ranks[p], p}
		}
	}
	if l.rank != never {
		s.queue.push(l.rank, left)
	}
}

// appendSymbol appends the token of a symbol; if it has none, the tokens of its bytes; if one of these is missing, the unknown
// token of a SentencePiece vocabulary. The ids of the word begin at dst[from].
func (t *Tokenizer) appendSymbol(dst []token.ID, from int, word string, s symbol) ([]token.ID, error) {
	if s.piece == none {
		if p, ok := t.pieces[word[s.start:s.end]]; ok {
			s.piece = p
		}
	}
	if s.piece != none && int(s.piece) < len(t.tokens) {
		return append(dst, token.ID(s.piece)), nil
	}
	n := len(dst)
	for _, b := range []byte(word[s.start:s.end]) {
		p := t.bytes[b]
		if p != none && int(p) < len(t.tokens) {
			dst = append(dst, token.ID(p))
			continue
		}
		if t.chars && t.unk != token.None {
			if t.fuse && n > from && dst[n-1] == t.unk {
				return dst[:n], nil
			}
			return append(dst[:n], t.unk), nil
		}
		return dst, fmt.Errorf("tokenizer: the vocabulary has no token for byte 0x%02X", b)
	}
	return dst, nil
}

// queue is a binary heap of rank and symbol, lowest first.
type queue []uint64

func (q *queue) push(rank uint32, left int32) {
	h := append(*q, uint64(rank)<<32|uint64(left))
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up] <= h[i] {
			break
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
	*q = h
}

func (q *queue) pop() (rank uint32, left int32) {
	h := *q
	top := h[0]
	last := h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if last <= h[down] {
			break
		}
		h[i] = h[down]
		i = down
	}
	if len(h) > 0 {
		h[i] = last
	}
	*q = h
	return uint32(top >> 32), int32(uint32(top))
}
