// pattern_doc.go turns regular expressions into languages of a [regex.Store].
//
// [ECMA] reads the notation of JSON Schema's keyword pattern, ECMA-262, and gives the texts in which the expression
// matches anywhere. [Whole] reads the notation that RE2, Rust and Python share and gives the texts that the expression
// matches from the first character to the last. Texts are sequences of code points, written in UTF-8.
//
// A language is exact or the expression is refused: an [*Error] says at which byte, and what is not possible there.
//
// # What is read
//
// Characters, escapes, classes, properties, groups, alternatives, counted repetition, greedy or lazy (which is the
// same language), and the anchors ^ $ \A \z wherever they stand. Word boundaries, lookahead, and lookbehind of one
// character are exact outside repetitions without a bound, and in those whose languages close after a few steps, such
// as ^((?!x).)*$.
//
// Refused are backreferences, longer lookbehind, atomic groups and possessive quantifiers.
//
// # Where notations differ
//
// ECMA: \d is 0-9, \w is ASCII, \s is every white space of Unicode and U+FEFF, a dot is no line terminator (\n, \r,
// U+2028, U+2029), $ is the end of the text only. A source is read as with the flag u; what the flag forbids and
// ECMA-262 defines without it is read as without: \- and \_ are characters, so are ], { and } where they close or
// open nothing, and \1 without a first group. An escaped letter that has no meaning is refused.
//
// Whole: \d, \s and \w are Unicode's, as in Rust and Python; a dot is any character but \n. (?i), (?m), (?s), (?x)
// and (?a) (ASCII classes, as in Python) are flags. $ without m is the end of the text, not the place before a last
// line feed.
//
// Letters match without case by simple folding, in ECMA too where (?i: stands.

package regex
