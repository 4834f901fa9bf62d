package lark

import (
	"maps"
	"slices"
)

// common has the terminals of Lark's module common, as expressions.
var common = map[string]string{
	"DIGIT":          `[0-9]`,
	"HEXDIGIT":       `[0-9a-fA-F]`,
	"INT":            `[0-9]+`,
	"SIGNED_INT":     `[+-]?[0-9]+`,
	"DECIMAL":        `[0-9]+\.[0-9]*|\.[0-9]+`,
	"FLOAT":          `[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?`,
	"SIGNED_FLOAT":   `[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)`,
	"NUMBER":         `([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`,
	"SIGNED_NUMBER":  `[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`,
	"ESCAPED_STRING": `"([^"\\\n]|\\[^\n])*"`,
	"LCASE_LETTER":   `[a-z]`,
	"UCASE_LETTER":   `[A-Z]`,
	"LETTER":         `[A-Za-z]`,
	"WORD":           `[A-Za-z]+`,
	"CNAME":          `[A-Za-z_][A-Za-z_0-9]*`,
	"WS_INLINE":      `[ \t]+`,
	"WS":             `[ \t\f\r\n]+`,
	"CR":             `\r`,
	"LF":             `\n`,
	"NEWLINE":        `(\r?\n)+`,
	"SH_COMMENT":     `#[^\n]*`,
	"CPP_COMMENT":    `//[^\n]*`,
	"C_COMMENT":      `/\*([^*]|\*+[^*/])*\*+/`,
	"SQL_COMMENT":    `--[^\n]*`,
}

// imports reads what follows %import: common.NAME, common.NAME -> NAME or common (NAME, ...).
func (p *parser) imports() error {
	start := p.pos
	module := p.name()
	if module != "common" {
		return p.at(start, "module %q cannot be imported; common can", module)
	}
	if p.skip("(") {
		for more := true; more; more = p.skip(",") {
			if err := p.imported(""); err != nil {
				return err
			}
		}
		if !p.skip(")") {
			return p.expected(") after the names of an import")
		}
		return nil
	}
	if !p.skip(".") {
		return p.expected("a dot or ( after the module's name")
	}
	return p.imported("->")
}

// imported reads the name of a terminal of module common, and its new name where that may follow.
func (p *parser) imported(arrow string) error {
	d := &definition{pos: p.pos, common: true}
	from := p.name()
	source, ok := common[from]
	if !ok {
		return p.at(d.pos, "module common has no terminal %q; it has %v", from, slices.Sorted(maps.Keys(common)))
	}
	if d.name = from; arrow != "" && p.skip(arrow) {
		if d.name = p.name(); !isTerminal(d.name) {
			return p.at(d.pos, "the new name %q of a terminal is not in upper case", d.name)
		}
	}
	d.body = &node{kind: isRegexp, text: source, pos: d.pos}
	if before := p.items[d.name]; before != nil && before.common && before.body.text == source {
		return nil
	}
	return p.define(d)
}
