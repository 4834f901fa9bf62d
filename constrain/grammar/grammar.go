package grammar

import "grove/constrain/regex"

// A Node is a place in the network of a rule. A rule is its first node.
type Node int32

// An Edge leads from a node to another, over a lexeme or over a call.
type Edge struct {
	// Lexeme is the terminal that the edge reads; it does not hold the empty text. regex.Nothing: the edge is a call.
	Lexeme regex.ID
	// Call is the rule that the edge calls.
	Call Node
	// To is the node where the rule goes on.
	To Node
	// Read, where it is not nil, gives the node where the rule goes on, by the bytes of the lexeme; To has no meaning then.
	// It is of edges with a lexeme. It gives the same node for the same bytes, and does not keep them. An error means that the
	// grammar does not go on after these bytes, where it is [ErrRefused], and that it cannot be known, for any other.
	Read func(text []byte) (Node, error)
}

// A Source is a grammar. It serves one caller at a time: a parser holds a lock around it.
//
// Each node that Edges returns is productive: some text leads from it to a final node of its rule. No lexeme is empty as a
// set, and none holds the empty text. Rules may hold the empty text, and may be recursive and ambiguous in any way.
type Source interface {
	// Start returns the rule that the whole text follows.
	Start() Node
	// Edges appends the edges of a node to dst, and returns the same ones for the same node. The caller keeps dst.
	Edges(dst []Edge, n Node) ([]Edge, error)
	// Final reports whether the rule of a node may end there.
	Final(n Node) bool
	// Ignored returns what may stand between, before and after lexemes; regex.Nothing: nothing.
	Ignored() regex.ID
	// Greedy reports how lexemes end. true: only where no lexeme that may stand there can go on, as with the longest match of a
	// lexer. false: wherever they match.
	Greedy() bool
	// Store returns the store of the lexemes.
	Store() *regex.Store
}

// Lexeme returns the grammar of the texts of one regular expression. It reports an error where no text matches.
func Lexeme(s *regex.Store, id regex.ID) (Source, error) {
	b := NewBuilder(s)
	b.Define("start", b.Lexeme(id))
	return b.Source("start", Options{})
}
