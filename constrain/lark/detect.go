package lark

// A Notation is a way to write a grammar.
type Notation string

// The notations that [Detect] tells apart.
const (
	Lark    Notation = "lark"
	GBNF    Notation = "gbnf" // of package gbnf
	Unknown Notation = ""
)

// Detect returns the notation of a grammar by its first definition: NAME ::= is GBNF, NAME: and %directives are Lark. It reads no
// further, so the grammar may be wrong.
func Detect(text []byte) Notation {
	if len(text) > maxBytes {
		return Unknown
	}
	p := &parser{text: text}
	p.space()
	if p.here() == '%' {
		return Lark
	}
	start := p.pos
	for nameByte(p.here(), false) { // the name of a rule of GBNF may begin with a digit
		p.pos++
	}
	named := p.pos > start
	if p.space(); named && p.skip("::=") {
		return GBNF
	}
	p.pos = start
	if d, err := p.header(); d != nil || err != nil {
		return Lark
	}
	return Unknown
}
