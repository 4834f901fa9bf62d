package regex

import (
	"strings"
	"sync"
	"unicode"
)

// properties keeps the sets of properties by name: they are large, and the same in every expression.
var properties sync.Map

// property returns the set that \p{name} stands for, as ECMA-262 and UTS 18 spell it: a general category, a script
// (Script=Greek; outside ECMA also Greek alone), or a
// binary property.
func property(name string, ecma bool) (patternSet, bool) {
	key := name
	if ecma {
		key = "\x00" + name // where no script stands alone
	}
	if s, ok := properties.Load(key); ok {
		return s.(patternSet), true
	}
	s, ok := findProperty(name, ecma)
	if ok {
		properties.Store(key, s)
	}
	return s, ok
}

func findProperty(name string, ecma bool) (patternSet, bool) {
	kind, value, isPair := strings.Cut(name, "=")
	if isPair {
		switch kind {
		case "Script", "sc":
			return script(value)
		case "General_Category", "gc":
			return category(value)
		}
		return nil, false
	}
	if !ecma {
		if s, ok := script(name); ok {
			return s, true
		}
	}
	if s, ok := category(name); ok {
		return s, true
	}
	return binary(name)
}

func script(name string) (patternSet, bool) {
	t, ok := unicode.Scripts[name]
	if !ok {
		return nil, false
	}
	return of(t), true
}

func category(name string) (patternSet, bool) {
	if alias, ok := unicode.CategoryAliases[name]; ok {
		name = alias
	}
	switch name {
	case "Cn":
		return assigned().not(), true
	case "C": // unassigned characters are of it
		return union(of(unicode.C), assigned().not()), true
	}
	t, ok := unicode.Categories[name]
	if !ok {
		return nil, false
	}
	return of(t), true
}

func assigned() patternSet {
	return of(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// binary returns a property that characters have or have not.
func binary(name string) (patternSet, bool) {
	switch name {
	case "Any":
		return everything, true
	case "ASCII":
		return posix["ascii"], true
	case "Assigned":
		return assigned(), true
	case "Alphabetic", "Alpha":
		return alphabetic(), true
	case "Lowercase", "Lower":
		return of(unicode.Ll, unicode.Other_Lowercase), true
	case "Uppercase", "Upper":
		return of(unicode.Lu, unicode.Other_Uppercase), true
	case "ID_Start", "IDS":
		return idStart(), true
	case "ID_Continue", "IDC":
		return union(idStart(), of(unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)).and(notSyntax()), true
	}
	if alias, ok := binaryAliases[name]; ok {
		name = alias
	}
	t, ok := unicode.Properties[name]
	if !ok || strings.HasPrefix(name, "Other_") {
		return nil, false
	}
	return of(t), true
}

func idStart() patternSet {
	return of(unicode.L, unicode.Nl, unicode.Other_ID_Start).and(notSyntax())
}

func notSyntax() patternSet { return of(unicode.Pattern_Syntax, unicode.Pattern_White_Space).not() }

// binaryAliases are the short names of properties that package unicode has tables of.
var binaryAliases = map[string]string{
	"AHex": "ASCII_Hex_Digit", "Dash": "Dash", "Dep": "Deprecated", "Dia": "Diacritic", "Ext": "Extender",
	"Hex": "Hex_Digit", "Ideo": "Ideographic", "Join_C": "Join_Control", "NChar": "Noncharacter_Code_Point",
	"Pat_Syn": "Pattern_Syntax", "Pat_WS": "Pattern_White_Space", "QMark": "Quotation_Mark", "Radical": "Radical",
	"RI": "Regional_Indicator", "STerm": "Sentence_Terminal", "SD": "Soft_Dotted", "Term": "Terminal_Punctuation",
	"UIdeo": "Unified_Ideograph", "VS": "Variation_Selector", "space": "White_Space", "WSpace": "White_Space",
}
