// Package earley parses texts by a grammar of package grammar, byte by byte, and says which tokens may follow.
//
// An [Engine] is one grammar and one vocabulary. A [State] stands for a text that can still become a text of the grammar: it
// forks by copying. Equal situations are the same state, whatever tokens spelled the text, and masks are kept by state.
//
// # Parser
//
// A row is what an Earley parser knows behind some lexemes: items (node, rule to return to, row where that rule began). Rows
// are immutable and held once: a row is found by its items, not by the text. So the row behind the second element of an array
// is the row behind the two hundredth, and the successor of a row for a set of lexemes is computed once. A call at the end of a
// rule returns to the caller of that rule (tail call), which does for lists by right recursion what Leo's rule does, and keeps
// their rows equal. Calls of rules that hold the empty text are stepped over at once, as Aycock and Horspool do.
//
// # Lexer
//
// The lexemes that a row allows are read together. A state of the lexer is a set of pairs: a lexeme, and what is left of it by
// Brzozowski derivatives. Sets, transitions and results are made when they are needed. No derivative is the empty set, so a text
// whose state is not empty can be completed.
//
// A grammar is read in one of two ways. Greedy: a byte that the lexer cannot take ends the lexemes that match so far; there is
// one position at all times. The pairs are read jointly, so two lexemes that can only be told apart by what follows hide each
// other as they do in lexers. In particular, a grammar in which nothing can follow a lexeme but what would prolong it allows
// texts that cannot be completed. Otherwise (scannerless): lexemes end wherever they match, and a state has a position for each
// row in whose lexemes the text may be.
//
// # Masks
//
// A mask is a walk over the trie of the vocabulary. What stays within lexemes depends on the state of the lexer only, and is kept
// by it: by each lexeme of which much may be left, and by all short ones together, as few lexemes stand in many states. Where
// lexemes end, and bytes of tokens follow, the rest of the walk is a region of the trie, in which the next row's lexemes are read in
// the same way. Tokens of clean text are allowed by one look at the lexer, and not walked.
// Places that differ in counts that no token reaches share their masks.
package earley
