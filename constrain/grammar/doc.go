// Package grammar describes grammars as networks of nodes that unfold on demand.
//
// A rule is its first [Node]. From a node, edges lead on: over a lexeme, which is a regular expression of package regex, or
// over a call of another rule. A rule may end at a final node. So a [Source] is a recursive transition network, and it may
// make its nodes when they are asked for: one of a JSON Schema with ten thousand properties makes those that a text meets.
//
// [Builder] makes sources from rules that are written down: sequences, alternatives, repetitions. [Lexeme] is a source of
// one regular expression.
package grammar
