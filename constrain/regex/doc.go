// Package regex is an algebra of sets of byte strings, with Brzozowski's derivatives.
//
// A [Store] holds expressions; equal expressions have the same [ID]. Besides concatenation, union and repetition the algebra
// has intersection, complement, counted repetition (one node however large the count), the JSON strings whose decoded text is
// in a set ([Store.Quoted]) and automata written by hand ([Machine]).
//
// [Store.Derive] is exact: its result is [Nothing] if and only if no string of the set begins with that byte. Nothing is
// unrolled or determinised ahead of use: derivatives are made and memoised as texts ask for them.
//
// Text is UTF-8. The byte 0xFF never occurs in text; grammars spell special tokens with it, as "\xff[12]".
//
// Sources: Brzozowski, "Derivatives of Regular Expressions" (1964); Owens, Reppy and Turon, "Regular-expression derivatives
// re-examined" (2009), from which the classes of bytes come.
package regex
