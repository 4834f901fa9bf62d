package tokenizer

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"grove/internal/text/token"
)

// never is the rank of neighbours that do not merge. Of others, the lowest merges first; of equal ranks, the leftmost.
const never = math.MaxUint32

// maxWord bounds the bytes of a word, so that offsets fit 32 bits. maxQueue is the usual scratch.most.
const (
	maxWord  = 1 << 30
	maxQueue = 1 << 16
)

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// scratch is the memory of one encoding, with a cache of the ids of words. The ids of a word depend on the word alone.
type scratch struct {
	starts bitset   // the first bytes of the symbols of a word, and its end
	ranks  []uint32 // of the merge of the symbol at each index with the next one, as far as most
	queue  queue
	most   int // merges that are queued at a time, unless a quarter of the word's bytes are more; 2 or more
	steps  []int32
	sums   []float64
	words  map[string][2]int32 // short words to their stretch of ids
	ids    []token.ID

	part func(ids []token.ID) error // of the options
	read int                        // bytes since it was called
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
			return s.flush(append(dst, token.ID(p)), len(word))
		}
	}
	if at, ok := s.words[word]; ok {
		return s.flush(append(dst, s.ids[at[0]:at[1]]...), len(word))
	}
	if len(word) > maxWord {
		return dst, fmt.Errorf("tokenizer: %d bytes of text without a break are more than %d", len(word), maxWord)
	}
	n := len(dst)
	dst, err := t.encode(dst, word, s)
	if err != nil {
		return dst, err
	}
	if len(word) <= maxRemembered {
		s.remember(word, dst[n:])
	}
	return s.flush(dst, len(word))
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

// mergeWord appends the ids of a word by merging its symbols, its bytes or characters at first, in rounds: each queues the best
// merges, as many as fit, and makes them and those that they lead to, up to the worst of them. A word of n bytes takes O(n log n) and
// a round, up to maxQueue merges one round.
func (t *Tokenizer) mergeWord(dst []token.ID, word string, s *scratch) ([]token.ID, error) {
	t.split(word, s)
	var err error
	for worst := uint64(0); worst < math.MaxUint64 && err == nil; {
		worst = t.gather(word, s)
		for len(s.queue) > 0 && err == nil {
			rank, i := s.queue.pop()
			if !s.starts.has(i) || i < len(s.ranks) && s.ranks[i] != rank || i >= len(s.ranks) && t.rank(word, s, i) != rank {
				continue // stale
			}
			s.starts.flip(s.starts.next(i))
			t.offer(word, s, i, worst)
			if i > 0 {
				t.offer(word, s, s.starts.before(i), worst)
			}
			err = s.check(1)
		}
	}
	from := len(dst)
	for i := 0; i < len(word) && err == nil; {
		end := s.starts.next(i)
		if dst, err = t.appendSymbol(dst, from, word[i:end]); err == nil && len(word) > maxQueue {
			dst, from, err = s.flushWithin(dst, from, end-i)
		}
		i = end
	}
	return dst, err
}

// split finds the first symbols of a word.
func (t *Tokenizer) split(word string, s *scratch) {
	s.starts = slices.Grow(s.starts[:0], len(word)/64+1)[:len(word)/64+1]
	clear(s.starts)
	s.ranks = slices.Grow(s.ranks[:0], min(len(word), s.most))[:min(len(word), s.most)]
	s.starts.flip(len(word))
	for i := 0; i < len(word); {
		s.starts.flip(i)
		n := 1
		if t.chars {
			_, n = utf8.DecodeRuneInString(word[i:])
		}
		i += n
	}
}

// gather queues the best merges of a word and returns the worst of them; math.MaxUint64: it queues all.
func (t *Tokenizer) gather(word string, s *scratch) (worst uint64) {
	most := max(s.most, len(word)/4)
	worst, s.queue = math.MaxUint64, slices.Grow(s.queue[:0], min(len(word), most))
	for i := 0; i < len(word); i = s.starts.next(i) {
		t.offer(word, s, i, worst)
		if len(s.queue) == most {
			slices.Sort(s.queue)
			s.queue = s.queue[:most/2]
			worst = s.queue[most/2-1]
		}
	}
	return worst
}

// offer queues the merge of the symbol at word[i:] with the next one, unless it is worse than worst.
func (t *Tokenizer) offer(word string, s *scratch, i int, worst uint64) {
	rank := t.rank(word, s, i)
	if i < len(s.ranks) {
		s.ranks[i] = rank
	}
	if rank != never && uint64(rank)<<32|uint64(i) <= worst {
		s.queue.push(rank, i)
	}
}

// rank returns the rank of the merge of the symbol at word[i:] with the next one, or never.
func (t *Tokenizer) rank(word string, s *scratch, i int) uint32 {
	mid := s.starts.next(i)
	if mid == len(word) {
		return never
	}
	end := s.starts.next(mid)
	if t.pairs == nil {
		if p, ok := t.pieces[word[i:min(end, i+t.longest+1)]]; ok {
			return t.ranks[p]
		}
		return never
	}
	left, known := t.pieces[word[i:mid]]
	right, both := t.pieces[word[mid:end]]
	if rank, ok := t.pairs[pairKey(left, right)]; ok && known && both {
		return rank
	}
	return never
}

// appendSymbol appends the token of a symbol; if it has none, the tokens of its bytes; if one of these is missing, the unknown
// token of a SentencePiece vocabulary. The ids of the word begin at dst[from].
func (t *Tokenizer) appendSymbol(dst []token.ID, from int, symbol string) ([]token.ID, error) {
	if p, ok := t.pieces[symbol]; ok && int(p) < len(t.tokens) {
		return append(dst, token.ID(p)), nil
	}
	n := len(dst)
	for _, b := range []byte(symbol) {
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

// queue is a binary heap of ranks and indices, lowest first.
type queue []uint64

func (q *queue) push(rank uint32, at int) {
	h := append(*q, uint64(rank)<<32|uint64(at))
	for i := len(h) - 1; i > 0 && h[i] < h[(i-1)/2]; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	*q = h
}

func (q *queue) pop() (rank uint32, at int) {
	h := *q
	top, n := h[0], len(h)-1
	h[0] = h[n]
	for i, k := 0, 1; k < n; i, k = k, 2*k+1 {
		if k+1 < n && h[k+1] < h[k] {
			k++
		}
		if h[i] <= h[k] {
			break
		}
		h[i], h[k] = h[k], h[i]
	}
	*q = h[:n]
	return uint32(top >> 32), int(uint32(top))
}

// bitset is a set of numbers.
type bitset []uint64

func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }

func (b bitset) flip(i int) { b[i/64] ^= 1 << (i % 64) }

// next returns the first number behind i. There is one.
func (b bitset) next(i int) int {
	i++
	for b[i/64]>>(i%64) == 0 {
		i = (i/64 + 1) * 64
	}
	return i + bits.TrailingZeros64(b[i/64]>>(i%64))
}

// before returns the last number before i. There is one.
func (b bitset) before(i int) int {
	i--
	for b[i/64]<<(63-i%64) == 0 {
		i = i/64*64 - 1
	}
	return i - bits.LeadingZeros64(b[i/64]<<(63-i%64))
}
