package vocab

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"grove/internal/text/token"
)

// A Kind says how a token takes part in a text.
type Kind uint8

// The kinds of tokens.
const (
	Unused   Kind = iota // never allowed; also what New makes of tokens without bytes
	Ordinary             // stands for its bytes
	Special              // has no bytes in a text: a grammar that names it spells it as [Spelling]
	End                  // ends the text; allowed where the text may end, and no part of the trie
)

// A Token is one token of a vocabulary.
type Token struct {
	ID    token.ID
	Bytes []byte // of ordinary tokens
	Kind  Kind
}

// Bounds of vocabularies.
const (
	MaxSize  = 1<<24 - 1 // ids
	MaxBytes = 1<<10 - 1 // of one token
	maxNodes = 1<<22 - 1 // of the trie
	maxData  = 1 << 28   // bytes of all tokens
)

// mark begins the spelling of a special token, and is in no text.
const mark = 0xff

// Spelling returns the bytes that stand for a special token in a grammar.
func Spelling(id token.ID) string { return "\xff[" + strconv.Itoa(int(id)) + "]" }

// A Vocabulary is a set of tokens. It does not change after [New] and is safe for concurrent use.
type Vocabulary struct {
	longest int
	size    int
	kinds   []Kind
	data    []byte
	starts  []uint32 // of the bytes of each token in data
	end     []token.ID
	aliases []alias
	full    Trie
	clean   [Levels + 2][]uint64
	rests   []rest
}

// An alias is a token with the bytes of another one that is in the trie.
type alias struct{ of, id token.ID }

// A Node is a node of a trie: 8 bytes.
type Node struct {
	word uint32 // the byte; from bit 8 the token, or none
	span uint32 // the nodes of the subtree, itself included; from bit 22 the depth
}

// None is the result of [Node.Token] for a node at which no token ends.
const None = 1<<24 - 1

// Byte returns the byte that leads to the node.
func (n Node) Byte() byte { return byte(n.word) }

// Token returns the token that ends at the node, or [None].
func (n Node) Token() uint32 { return n.word >> 8 }

// Size returns the number of nodes of the subtree, the node included.
func (n Node) Size() int { return int(n.span & maxNodes) }

// Depth returns the number of bytes that lead to the node; 0: the root.
func (n Node) Depth() int { return int(n.span >> 22) }

// A Trie is a set of byte strings in depth-first order, bytes ascending. The first node is the root. The nodes below a node
// follow it.
type Trie []Node

// New returns the vocabulary of tokens whose ids are below size. Ids without a token are unused, and so are ordinary tokens
// that hold the byte 0xff. The bytes are copied.
//
// Errors: an id out of range or given twice, a size beyond [MaxSize], a token of more than [MaxBytes] bytes, a trie of more
// than four million nodes.
func New(tokens []Token, size int) (*Vocabulary, error) {
	if size < 0 || size > MaxSize {
		return nil, fmt.Errorf("vocab: the size is %d; it must be from 0 to %d", size, MaxSize)
	}
	v := &Vocabulary{size: size, kinds: make([]Kind, size), starts: make([]uint32, size+1)}
	texts := make([][]byte, size)
	seen := make([]bool, size)
	for _, t := range tokens {
		if t.ID < 0 || int(t.ID) >= size {
			return nil, fmt.Errorf("vocab: token %d: the id must be from 0 to %d", t.ID, size-1)
		}
		if seen[t.ID] {
			return nil, fmt.Errorf("vocab: token %d is given twice", t.ID)
		}
		if len(t.Bytes) > MaxBytes {
			return nil, fmt.Errorf("vocab: token %d has %d bytes; the most is %d", t.ID, len(t.Bytes), MaxBytes)
		}
		seen[t.ID] = true
		texts[t.ID], v.kinds[t.ID] = v.text(t)
	}
	for id, text := range texts {
		if len(v.data)+len(text) > maxData {
			return nil, fmt.Errorf("vocab: the tokens have more than %d bytes together", maxData)
		}
		v.data = append(v.data, text...)
		v.starts[id+1] = uint32(len(v.data))
	}
	return v, v.index()
}

// text returns the bytes of a token in the trie, and its kind.
func (v *Vocabulary) text(t Token) ([]byte, Kind) {
	switch t.Kind {
	case Ordinary:
		if len(t.Bytes) > 0 && bytes.IndexByte(t.Bytes, mark) < 0 {
			return t.Bytes, Ordinary
		}
	case Special:
		return []byte(Spelling(t.ID)), Special
	case End:
		v.end = append(v.end, t.ID)
		return nil, End
	}
	return nil, Unused
}

// index makes the tries and the bitsets.
func (v *Vocabulary) index() error {
	slices.Sort(v.end)
	order := make([]token.ID, 0, v.size)
	for id := range v.size {
		if v.starts[id+1] > v.starts[id] {
			order = append(order, token.ID(id))
		}
	}
	for _, id := range order {
		v.longest = max(v.longest, len(v.Bytes(id)))
	}
	slices.SortStableFunc(order, func(x, y token.ID) int { return bytes.Compare(v.Bytes(x), v.Bytes(y)) })
	kept := order[:0]
	for i, id := range order {
		if i > 0 && bytes.Equal(v.Bytes(kept[len(kept)-1]), v.Bytes(id)) {
			v.aliases = append(v.aliases, alias{kept[len(kept)-1], id})
			continue
		}
		kept = append(kept, id)
	}
	var err error
	if v.full, err = v.build(kept); err != nil {
		return err
	}
	return v.slice(kept)
}

// build makes the trie of tokens in the order of their bytes.
func (v *Vocabulary) build(order []token.ID) (Trie, error) {
	t := make(Trie, 1, 2*len(order)+1)
	t[0].word = None << 8
	path := []int{0} // the open nodes, by depth
	shut := func(depth int) {
		for len(path) > depth {
			n := path[len(path)-1]
			t[n].span |= uint32(len(t) - n)
			path = path[:len(path)-1]
		}
	}
	var last []byte
	for _, id := range order {
		text := v.Bytes(id)
		n := 0
		for n < len(last) && n < len(text) && last[n] == text[n] {
			n++
		}
		shut(n + 1)
		for ; n < len(text); n++ {
			path = append(path, len(t))
			t = append(t, Node{uint32(text[n]) | None<<8, uint32(n+1) << 22})
		}
		t[len(t)-1].word = uint32(text[len(text)-1]) | uint32(id)<<8
		last = text
	}
	if len(t) > maxNodes {
		return nil, fmt.Errorf("vocab: the trie has %d nodes; the most is %d", len(t), maxNodes)
	}
	shut(0)
	return t, nil
}

// Longest returns the number of bytes of the longest token of the trie.
func (v *Vocabulary) Longest() int { return v.longest }

// Size returns the number of ids.
func (v *Vocabulary) Size() int { return v.size }

// Words returns the number of 64-bit words of a bitset of tokens.
func (v *Vocabulary) Words() int { return (v.size + 63) / 64 }

// Kind returns the kind of a token; Unused for an id that is out of range.
func (v *Vocabulary) Kind(id token.ID) Kind {
	if id < 0 || int(id) >= v.size {
		return Unused
	}
	return v.kinds[id]
}

// Bytes returns the bytes of a token that is in the trie: its text, or its spelling; none for other tokens and for ids out of
// range. The slice is the vocabulary's.
func (v *Vocabulary) Bytes(id token.ID) []byte {
	if id < 0 || int(id) >= v.size {
		return nil
	}
	return v.data[v.starts[id]:v.starts[id+1]:v.starts[id+1]]
}

// End returns the tokens that end a text, in ascending order. The slice is the vocabulary's.
func (v *Vocabulary) End() []token.ID { return v.end }

// Trie returns the trie of all tokens with bytes. A token whose bytes another one has too is not in it: see
// [Vocabulary.Spread].
func (v *Vocabulary) Trie() Trie { return v.full }

// Spread sets the bits of the tokens with the same bytes as those of the trie whose bits are set.
func (v *Vocabulary) Spread(mask []uint64) {
	for _, a := range v.aliases {
		if mask[a.of>>6]>>(a.of&63)&1 != 0 {
			mask[a.id>>6] |= 1 << (a.id & 63)
		}
	}
}
