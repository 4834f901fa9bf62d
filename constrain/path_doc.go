// path_doc.go holds sets of texts that are given, not described: lists of choices, catalogues of up to a million
// token sequences or texts, paths of a knowledge graph, parts of a text.
//
// [Tokens] is a set of token sequences as compressed rows; [PathNewStage] makes it a stage. The other sets are machines
// over bytes ([PathMachine]), so that any tokenisation of a text is legal, and so that they are terminals of grammars too:
//
//	[PathTexts]      a list of texts, compressed to a tree with unary ends
//	[PathGraph]      "head -> relation -> tail -> relation -> tail", unfolded while it is read
//	[PathSubstring]  what stands in a text, from any byte or from any word
//	[PathMarked]     free text, and between two markers texts of a machine

package constrain

// A PathMachine is a deterministic automaton over bytes: where Step reports true, some text leads on from next to a final
// state. It is what grammars take as a terminal.
type PathMachine interface {
	// Step returns the state behind a byte that follows a state.
	Step(state int, b byte) (next int, alive bool)
	// Final reports whether the text may end at a state.
	Final(state int) bool
}

// PathStart is the state of every machine of this package before the first byte.
const PathStart = 0
