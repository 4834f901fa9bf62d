// Package schema turns a JSON Schema into a grammar: the language of the JSON texts that the schema accepts.
//
// [Compile] reads the schema, resolves its references (nothing is ever fetched) and gives a [grammar.Source] that unfolds on
// demand. A keyword is exact, or the schema is refused with the place and the reason: an answer under the grammar always
// validates. docs/constraints.md has the table of the keywords.
//
// A formula is a set of schemas, each asserted or denied, that one value must satisfy. For null, booleans, numbers and strings a
// formula is a regular language, and and, or and not are those of the languages. For arrays and objects it is a list of
// alternatives without choices left (array, object): rules over indexes or names, what must be there, and counts. Denials
// are pushed inside until they meet a language, a name that must be missing, or a count. The grammar's places are states of an
// array or object while it is written, so that counters and the names already written cost nothing before they are reached.
package schema
