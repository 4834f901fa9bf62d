package schema

import (
	"cmp"

	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// Draft is a version of JSON Schema.
type Draft = document.Draft

// The drafts. Auto takes the one that $schema names, and Draft2020 where there is none.
const (
	Auto      = document.Auto
	Draft4    = document.Draft4
	Draft6    = document.Draft6
	Draft7    = document.Draft7
	Draft2019 = document.Draft2019
	Draft2020 = document.Draft2020
)

// Order is the order of an object's members in the text.
type Order int

const (
	// Declared writes the declared properties in the order of the schema, then required names that are not declared, then all
	// others in any order.
	Declared Order = iota
	// Free allows any order.
	Free
)

// Whitespace says which blanks may stand between the parts of the text.
type Whitespace int

const (
	// Bounded allows what encoders write: nothing before a comma or a colon; nothing or one blank behind a colon; elsewhere within
	// the value nothing, one blank, or one or two line ends and then at most 20 blanks or tabs. Models that write blanks without
	// end stop, and more of the text is forced.
	Bounded Whitespace = iota
	// Compact allows nothing.
	Compact
	// Spaced writes one blank after each comma and colon and nothing else: most of the text is forced.
	Spaced
	// Any allows all that JSON allows, before and after the value too.
	Any
)

// Escapes are the characters of strings that may be escaped.
type Escapes int

const (
	// Needed allows the escapes that encoders write: of quotes, backslashes, slashes, control characters, and characters beyond
	// ASCII. So a name of plain letters has one spelling, and is forced where it must come.
	Needed Escapes = iota
	// AnyEscape allows all that JSON allows.
	AnyEscape
)

// Limits bounds what a schema may cost. Zero fields have defaults.
type Limits struct {
	Bytes        int // of the schema's text. Default 8 MiB.
	Depth        int // levels of the schema. Default 300.
	Alternatives int // that an array or object of one formula may have. Default 400.
	Steps        int // of all expansions, and of the search for texts, together. Default 1,000,000.
	Formulas     int // different conjunctions of schemas that may arise. Default 60,000.
	Places       int // of the grammar that may be unfolded. Default 500,000.
	Nodes, Fuel  int // those of [regex.Limits], for a store of the schema's own.
}

func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(l.Bytes, 8<<20)
	l.Depth = cmp.Or(l.Depth, 300)
	l.Alternatives = cmp.Or(l.Alternatives, 400)
	l.Steps = cmp.Or(l.Steps, 1_000_000)
	l.Formulas = cmp.Or(l.Formulas, 60_000)
	l.Places = cmp.Or(l.Places, 500_000)
	return l
}

// Options says how to read a schema and which texts to write. The zero value is the default.
type Options struct {
	// Draft is the version of the schema, for schemas without $schema where it is not Auto.
	Draft Draft
	// Order is the order of members.
	Order Order
	// Whitespace is what may stand between the parts.
	Whitespace Whitespace
	// Escapes are the characters that may be escaped.
	Escapes Escapes
	// Annotate makes format a comment, which it is by the standard. Otherwise known formats are asserted.
	Annotate bool
	// PlainIntegers writes values that can be nothing but integers, and no other numbers, in digits alone: 1000, and neither 1e3 nor
	// 1000.0, which JSON Schema takes for integers and most decoders do not.
	PlainIntegers bool
	// Limits bounds the cost.
	Limits Limits
	// Store holds the lexemes, with its own limits; nil: a new one does.
	Store *regex.Store
}

// Error is why a schema is refused: its place and the reason. It wraps one of the errors below.
type Error = document.Error

// What is wrong with a schema, for errors.Is.
var (
	ErrInvalid     = document.ErrInvalid     // ErrInvalid says that the text is no JSON, or no schema.
	ErrUnsupported = document.ErrUnsupported // ErrUnsupported says that a keyword, or two together, cannot be expressed exactly.
	ErrReference   = document.ErrReference   // ErrReference says that a reference leads nowhere or to another document.
	ErrEmpty       = document.ErrEmpty       // ErrEmpty says that no text satisfies the schema.
	ErrBudget      = document.ErrBudget      // ErrBudget says that the schema is beyond one of the [Limits].
)
