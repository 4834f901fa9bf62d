package grammar

import (
	"errors"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// special is how a grammar spells a special token.
func special(id string) string { return "\xff[" + id + "]" }

// The languages are those of llama.cpp's documentation and tests, in texts of our own; the accepted and rejected strings are
// facts of its tests.
var languages = []struct {
	name, grammar  string
	accept, reject []string
}{
	{"sum", `
		root ::= sum
		sum  ::= number ("+" number)*
		number ::= [0-9]+`,
		[]string{"42", "1+2+3+4+5", "123+456"}, []string{"", "+", "/ 3", "1+2+3+4+5+", "12a45"}},
	{"expressions", `
		root ::= expr
		expr ::= product sp (("+" | "-") sp product)*
		product ::= atom sp (("*" | "/") sp atom)*
		atom ::= [0-9]+ | name | "(" expr ")" | call
		name ::= [a-zA-Z_] [a-zA-Z0-9_]*
		call ::= name sp "(" (expr ("," sp expr)*)? ")"
		sp ::= [ \t\n\r]?`,
		[]string{"42", "1*2*3*4*5", "x", "x+10", "x1+y2", "(a+b)*(c-d)", "func()", "func(x,y+2)", "a*(b+c)-d/e", "f(g(x),h(y,z))", "x + 10",
			"(a + b) * (c - d)", "func(x, y + 2)", "f(g(x), h(y, z))", "123*456*789-123/456+789*123"},
		[]string{"+", "/ 3x", "x + + y", "a * / b", "func(,)", "func(x y)", "(a + b", "x + y)", "a + b * (c - d", "42 +", "x +", "func(",
			"func(x, y + 2", "a * (b + c) - d /", "f(g(x), h(y, z)"}},
	{"any character", `root ::= ... "abc" ...`,
		[]string{"abcabcabc", "aaaabcccc", "🔵🟠✅abc❌🟠🔵"},
		[]string{"aaabcccc", "aaaaabcccc", "aaaabccc", "aaaabccccc", "🔵🟠✅❌abc❌✅🟠🔵", "🔵🟠abc🟠🔵"}},
	{"star", `root ::= "a"*`, []string{"", "a", "aaaaa"}, []string{"b", "ab", "aab", "ba"}},
	{"plus", `root ::= "a"+`, []string{"a", "aaaaa"}, []string{"", "b", "ab", "ba"}},
	{"optional", `root ::= "a"?`, []string{"", "a"}, []string{"b", "ab", "aa", "ba"}},
	{"quantifiers", `
		root ::= c+ v* c? (v c)*
		v ::= [aeiouy]
		c ::= [bcdfghjklmnpqrstvwxyz]`,
		[]string{"yes", "no", "noyes", "crwth", "four", "bryyyy"}, []string{"yess", "yesno", "forty", "catyyy"}},
	{"exactly", `root ::= [ab]{4}`, []string{"aaaa", "bbbb", "abab"}, []string{"a", "b", "aaaaa"}},
	{"at least", `root ::= [ab]{4,}`, []string{"aaaa", "aaaaab", "bbbb"}, []string{"", "aba"}},
	{"at most", `root ::= [ab]{0,4}`, []string{"", "a", "aa", "aaab"}, []string{"aaaaa"}},
	{"between", `root ::= ("0x" [A-F0-9]{2} " "?){3,5}`,
		[]string{"0xFF 0x12 0xAB", "0xFF 0x12 0xAB 0x00 0x00"}, []string{"", "0xFF", "0xFF 0x12", "0xFF 0x12 0xAB 0x00 0x00 0x00"}},
	{"stars of stars", `root ::= ( [x]* )*`, []string{"", "x", "xx"}, []string{"y", "yy"}},
	{"left recursion", `
		root ::= a
		a ::= "a" | b "b"
		b ::= "c" | empty a "d" | "e"
		empty ::= "blah" | `,
		[]string{"a", "cb", "eb", "adb", "cbdb", "blahadb", "blahcbdb", "blahblahadbdb"}, []string{"", "c", "ad", "adbd", "blaha"}},
	{"tokens", `
		root ::= <[10]> text <[11]>
		text ::= (!<[11]>)*`,
		[]string{special("10") + "hello world" + special("11"), special("10") + special("11"),
			special("10") + "text with " + special("12") + " other tokens " + special("113") + "." + special("11")},
		[]string{special("10") + "no end", special("10"), "no start" + special("11"), special("10") + special("11") + special("11"),
			special("11") + "x" + special("10"), special("10") + special("011") + special("11") + special("11")}},
	{"named tokens", `root ::= <think> !</think>+ </think> .*`,
		[]string{special("1") + "x" + special("2"), special("1") + special("1") + special("2") + "y"},
		[]string{special("1") + special("2"), special("1") + "x" + special("2") + special("2"), "<think>x</think>"}},
	{"chess", `
		# numbered moves
		root ::= (
		    # the first
		    "1. " move " " move "\n"
		    ([1-9] [0-9]? ". " move " " move "\n")+
		)
		move ::= (pawn | piece | castle) [+#]?
		piece ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
		pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
		castle ::= "O-O" "-O"?`,
		[]string{"1. e4 e5\n2. Nf3 Nc6\n", "1. e4 d5\n2. exd5 Qxd5\n10. O-O O-O-O+\n", "1. a4 h5\n2. a8=Q# Rh7\n"},
		[]string{"1. e4 e5\n", "2. e4 e5\n3. e4 e5\n", "1. e9 e5\n2. e4 e5\n", "1. e4 e5\n2. O-O-O-O e5\n"}},
	{"list", "root ::= (\"- \" line)+\nline ::= [^\\n]+ \"\\n\"",
		[]string{"- a\n", "- a\n- ü b\n"}, []string{"", "-a\n", "- \n", "- a"}},
	{"json", `
		root ::= object
		value ::= object | array | string | number | ("true" | "false" | "null") sp
		object ::= "{" sp ( string ":" sp value ("," sp string ":" sp value)* )? "}" sp
		array ::= "[" sp ( value ("," sp value)* )? "]" sp
		string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" sp
		number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? sp
		sp ::= | " " | "\n" [ \t]{0,20}`,
		[]string{`{}`, `{"a": [1, 2.5e-3, {"b": null}], "c":"\u00e9\\"}`, "{\n\t\"a\":true }"},
		[]string{``, `[]`, `{"a"}`, `{"a":01}`, `{"a":"` + "\n" + `"}`, `{"a":1,}`, `{"a":tru}`}},
	{"escapes", `root ::= "\x41\u00e9\U0001F600\t\r\n\\\"" [\]\[\-\x00-\x02^] [a-] [-+*/]`,
		[]string{"Aé😀\t\r\n\\\"]a-", "Aé😀\t\r\n\\\"\x01-*", "Aé😀\t\r\n\\\"^a+"}, []string{"Aé😀\t\r\n\\\"\x03a+", "Aé😀\t\r\n\\\"]b+"}},
	{"layout", "root\n::=\n  \"a\" # one\n | \"b\"\n  c-d_1\n\nc-d_1 ::= # nothing\n  \"c\"{ 1 , 2 } \"\"",
		[]string{"a", "bc", "bcc"}, []string{"", "b", "bccc", "ac"}},
	{"no text between lines", "root ::= a a\na ::= \"x\" | \n \"y\" # not \"z\"\r\n", []string{"xx", "yx"}, []string{"x", "x\nx", "zx"}},
	{"nothing", `root ::= `, []string{""}, []string{" ", "a"}},
}

func TestLanguages(t *testing.T) {
	o := GBNFOptions{Token: func(name string) (token.ID, bool) {
		id, ok := map[string]token.ID{"<think>": 1, "</think>": 2}[name]
		return id, ok
	}}
	for _, tt := range languages {
		t.Run(tt.name, func(t *testing.T) {
			source, err := ParseGBNF([]byte(tt.grammar), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range tt.accept {
				if !accepts(t, source, text) {
					t.Errorf("%q is rejected", text)
				}
			}
			for _, text := range tt.reject {
				if accepts(t, source, text) {
					t.Errorf("%q is accepted", text)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ name, grammar, err string }{
		{"empty", "", `gbnf: line 1, column 1: the start rule "root" is not defined`},
		{"no root", "rot ::= \"a\"\n", `gbnf: line 2, column 1: the start rule "root" is not defined`},
		{"missing rule", "root ::= expr\nexpr ::= \"a\" numero", `gbnf: line 2, column 14: rule "numero" is not defined`},
		{"twice", "root ::= \"a\"\nroot ::= \"b\"", `gbnf: line 2, column 1: rule "root" is already defined in line 1`},
		{"no name", "::= \"a\"", `gbnf: line 1, column 1: expected the name of a rule, found ':'`},
		{"no sign", "root = \"a\"", `gbnf: line 1, column 6: expected ::= after the name "root", found '='`},
		{"open literal", "root ::= \"abc", `gbnf: line 1, column 10: a literal has no end`},
		{"open class", "root ::= [abc", `gbnf: line 1, column 10: a class has no end`},
		{"open group", "root ::= (\n\"a\" | \"b\"\n", `gbnf: line 3, column 1: expected ) for the ( in line 1, found the end of the grammar`},
		{"close", "root ::= \"a\")", `gbnf: line 1, column 13: expected a symbol, | or the next rule, found ')'`},
		{"star first", "root ::= * \"a\"", `gbnf: line 1, column 10: expected a literal, a class, a name, a token or a group, found '*'`},
		{"no low", `root ::= "a"{,10}`, `gbnf: line 1, column 14: expected a number, found ','`},
		{"no counts", `root ::= "a"{,}`, `gbnf: line 1, column 14: expected a number, found ','`},
		{"order", `root ::= "a"{5,2}`, `gbnf: line 1, column 14: a repetition of 5 to 2 times`},
		{"open counts", `root ::= "a"{5 "b"`, `gbnf: line 1, column 16: expected } after the counts of a repetition, found '"'`},
		{"large count", `root ::= "a"{99999999999999999999}`, `gbnf: line 1, column 14: the number 99999999999999999999 is beyond the limit of 500000`},
		{"escape", `root ::= "ü\q"`, `gbnf: line 1, column 12: unknown escape \q; known are x, u, U, t, r, n, \, ", [, ], - and ^`},
		{"hex", `root ::= "\x4"`, `gbnf: line 1, column 11: expected 2 hexadecimal digits, found "4\""`},
		{"short hex", `root ::= "\u4`, `gbnf: line 1, column 11: expected 4 hexadecimal digits, found the end of the grammar`},
		{"surrogate", `root ::= "\ud800"`, `gbnf: line 1, column 11: U+D800 is not a code point of a text`},
		{"beyond", `root ::= [\U00110000]`, `gbnf: line 1, column 11: U+110000 is not a code point of a text`},
		{"range", `root ::= [z-a]`, `gbnf: line 1, column 11: the range 'z' to 'a' is empty`},
		{"empty class", `root ::= []`, `gbnf: line 1, column 10: the class has no characters`},
		{"empty negated class", `root ::= [^\x00-\U0010FFFF]`, `gbnf: line 1, column 10: the class has no characters`},
		{"not UTF-8", "root ::= \"\xe9\"", `gbnf: line 1, column 11: byte 0xe9 is not UTF-8`},
		{"open token", "root ::= <[12]", `gbnf: line 1, column 10: a token has no > in its line`},
		{"token number", "root ::= <[x]>", `gbnf: line 1, column 10: the number of token <[x]> is not in 0..2147483647`},
		{"token name", "root ::= <no>", `gbnf: line 1, column 10: token <no>: no vocabulary is known here, so that only tokens by number can be named`},
		{"not a token", "root ::= !\"a\"", `gbnf: line 1, column 11: expected < after !, found '"'`},
		{"negated token", "root ::= \"a\" !<[1]>",
			`gbnf: line 1, column 14: !<...> must be repeated by * or + and nothing else: the length of one token is no property of a text`},
		{"negated twice", "root ::= !<[1]>{2}",
			`gbnf: line 1, column 10: !<...> must be repeated by * or + and nothing else: the length of one token is no property of a text`},
		{"negated choice", "root ::= (\"a\" | !<[1]>)*",
			`gbnf: line 1, column 17: !<...> must be repeated by * or + and nothing else: the length of one token is no property of a text`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseGBNF([]byte(tt.grammar), GBNFOptions{})
			if err == nil || err.Error() != tt.err {
				t.Errorf("error\n%v\nwant\n%s", err, tt.err)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	o := GBNFOptions{
		Token:   func(name string) (token.ID, bool) { return 7, name == "<a>" },
		Special: func(id token.ID) bool { return id != 7 },
	}
	for grammar, want := range map[string]string{
		"root ::= <b>":   "gbnf: line 1, column 10: the vocabulary has no token <b>",
		"root ::= <a>":   "gbnf: line 1, column 10: token <a> is text; write its text as a literal",
		"root ::= <[7]>": "gbnf: line 1, column 10: token <[7]> is text; write its text as a literal",
	} {
		if _, err := ParseGBNF([]byte(grammar), o); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", grammar, err, want)
		}
	}
}

// TestNoText refuses grammars that no text meets, by the name of the rule.
func TestNoText(t *testing.T) {
	for _, grammar := range []string{"root ::= \"a\" root", "root ::= a\na ::= b\nb ::= a | \"x\" b"} {
		if _, err := ParseGBNF([]byte(grammar), GBNFOptions{}); err == nil || !strings.Contains(err.Error(), "root") {
			t.Errorf("%s: %v", grammar, err)
		}
	}
}

// TestLimits builds grammars beyond the bounds.
func TestLimits(t *testing.T) {
	for name, grammar := range map[string]string{
		"parentheses":    "root ::= " + strings.Repeat("(", 60_000) + `"a"` + strings.Repeat(")", 60_000),
		"open":           "root ::= " + strings.Repeat("(", 60_000),
		"repetitions":    `root ::= ((("a"{1000}){1000}){1000}){1000}`,
		"hang":           `root ::= (((((([^x]*){0,99}){0,99}){0,99}){0,99}){0,99}){0,99}`,
		"stacked":        `root ::= "a"{1000}{1000}{1000}`,
		"symbols":        "root ::= " + strings.Repeat(`("a" root | "b"){500} `, 500),
		"rules":          "root ::= a\na ::= (\"x\" root){200000}\nb ::= (\"x\" root){200000}",
		"bytes":          "root ::= \"" + strings.Repeat("a", maxBytes) + `"`,
		"count":          `root ::= "a"{0,500001}`,
		"large optional": `root ::= (("a" root)?){500000}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseGBNF([]byte(grammar), GBNFOptions{})
			if place := new(GBNFError); !errors.Is(err, ErrGBNFLimit) || !errors.As(err, &place) {
				t.Errorf("%.200v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range languages {
		f.Add([]byte(tt.grammar))
	}
	f.Add([]byte(`root ::= (("a" | root{2,3} "b")? [^\x00-\x20]+ <[12]> !<[3]>*)`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			t.Skip("longer texts are bounded by the tests of limits")
		}
		source, err := ParseGBNF(text, GBNFOptions{Token: func(string) (token.ID, bool) { return 3, true }})
		if err != nil {
			return
		}
		edges, err := source.Edges(nil, source.Start())
		if err != nil {
			t.Fatal(err)
		}
		if len(edges) == 0 && !source.Final(source.Start()) {
			t.Fatal("a grammar without a text")
		}
	})
}
