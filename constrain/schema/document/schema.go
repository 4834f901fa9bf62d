package document

import (
	"math"
	"math/big"
)

// Kind is a set of the types of values.
type Kind uint8

// The types.
const (
	IsNull Kind = 1 << iota
	IsBool
	IsNumber
	IsString
	IsArray
	IsObject
	IsAll = 1<<iota - 1
)

// Unlimited stands for a maximum that is not there.
const Unlimited = math.MaxInt32

// Schema has the values of a schema's keywords. Fields are as the keywords, and empty where there is none.
type Schema struct {
	// ID is its place in Document.Schemas.
	ID int32
	// At is its value, for places in errors.
	At *Value
	// Draft is the version that it is written in.
	Draft Draft
	// Never is the schema false.
	Never bool
	// Types are those allowed; with Integer, numbers are integers.
	Types   Kind
	Integer bool
	// Listed says that Values counts: no others are allowed.
	Listed bool
	Values []*Value
	// All, Any and One are allOf, anyOf and oneOf; Ref is what references lead to.
	All, Ref, Any, One []*Schema
	// Not is not; Test, Then and Else are if, then and else.
	Not, Test, Then, Else *Schema
	// Text, Number, Object and Array are the keywords about one type; nil where there is none.
	Text   *Text
	Number *Number
	Object *Object
	Array  *Array

	loaded bool
}

// Text is the keywords about strings.
type Text struct {
	Min, Max        int    // lengths in code points
	Pattern, Format *Value // strings
}

// Number is the keywords about numbers. Bounds that are not there are nil.
type Number struct {
	Min, Max         *big.Rat
	OpenMin, OpenMax bool // the bound itself is not allowed
	Multiple         *big.Rat

	open4Min, open4Max bool // draft 4: exclusiveMinimum: true
}

// Object is the keywords about objects.
type Object struct {
	Names       []string // of properties
	Props       []*Schema
	Patterns    []string // of patternProperties
	PatternOf   []*Schema
	Additional  *Schema
	Required    []string
	Keys        *Schema // propertyNames
	Min, Max    int
	Needs       []Need
	Unevaluated *Schema
}

// Need is an entry of dependentRequired or dependentSchemas: where Name is there, Others are, or Then holds.
type Need struct {
	Name   string
	Others []string
	Then   *Schema
}

// Array is the keywords about arrays.
type Array struct {
	Prefix      []*Schema
	Rest        *Schema // the elements behind Prefix
	Contains    *Schema
	Least, Most int // how many elements satisfy Contains
	Min, Max    int
	Unique      bool
	Unevaluated *Schema
}

// Of returns the schema of a value. Its keywords are read by Load.
func (d *Document) Of(v *Value) *Schema {
	if s := d.byValue[v]; s != nil {
		return s
	}
	s := d.add(v)
	d.byValue[v] = s
	return s
}

// add returns a schema without keywords.
func (d *Document) add(v *Value) *Schema {
	s := &Schema{ID: int32(len(d.Schemas)), At: v, Types: IsAll}
	d.Schemas = append(d.Schemas, s)
	return s
}

// Make returns a new schema that is not of the text, and is loaded: at is the place it comes from.
func (d *Document) Make(at *Value, set func(s *Schema)) *Schema {
	s := d.add(at)
	s.loaded = true
	set(s)
	return s
}
