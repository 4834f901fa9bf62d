package lark

import (
	"errors"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// languages have texts that are accepted and rejected. Several are those of llguidance's tests, as facts.
var languages = []struct {
	name, grammar  string
	accept, reject []string
}{
	{"any character", "%llguidance {}\nstart: /.../ \"abc\" /.../", []string{"abcabcabc", "aaaabcccc", "🔵🟠✅abc❌🟠🔵"},
		[]string{"aaabcccc", "aaaaabcccc", "aaaabccc", "aaaabccccc", "🔵🟠✅❌abc❌✅🟠🔵"}},
	{"counts", "start: ab{3,5}\nab: \"a\" | \"b\"", []string{"aba", "abaa", "aaaaa"}, []string{"aa", "aaaaaa"}},
	{"open counts", "start: ab{,2} \"c\"~2 \"d\"~1..2 \"e\"{2,}\nab: \"a\" | \"b\"",
		[]string{"ccdee", "abccddeee"}, []string{"abaccdee", "cdee", "ccde"}},
	{"list", "start: \"[\" [NUMBER (\",\" NUMBER)*] \"]\"\n%import common.NUMBER\n%import common (WS, INT)\n%ignore WS",
		[]string{"[]", "[1]", " [ 1 ,\n2.5e3 ] ", "[1,2]"}, []string{"[1,]", "[1 2]", "1", "[1.2.3]"}},
	{"left recursion", "?start: sum\n?sum: product | sum \"+\" product -> add\n?product: ATOM | product \"*\" ATOM -> mul\nATOM: /[0-9]+/",
		[]string{"1", "1+2*3", "1*2+3"}, []string{"", "1+", "+1", "1**2"}},
	{"longest match", "start: A B\nA: /a+/\nB: /a*b/", []string{"ab", "aab"}, []string{"aa", "b"}},
	{"string beats expression", "start: \"if\" NAME | NAME \"=\" NAME\nNAME: /[a-z]+/\n%ignore \" \"",
		[]string{"if x", "x = y", "ifx = y", "iff = if2"[:3] + " = y"}, []string{"if = x", "x = if", "if if", "ifx"}},
	{"string in any case", "start: \"select\"i NAME\nNAME: /[a-zA-Z]+/\n%ignore \" \"", []string{"SeLect x"}, []string{"select SELECT", "ſelect x"}},
	{"dynamic", "%llguidance {\"no_forcing\": false}\nstart: \"'foo'\" /a+/ | STRING /b+/\nSTRING: /'[^']*'/",
		[]string{"'foo'a", "'foo'aaa", "'bar'b", "'foo'bb"}, []string{"'bar'a", "'bar'c"}},
	{"priority", "start: A \"1\" | B \"2\"\nA.2: /[ab]{2}/\nB: /[a-z]{2}/", []string{"ab1", "cc2", "az2"}, []string{"ab2", "cc1"}},
	{"both and not", "start: A\nA: /[a-z\\n]*/ & ~/(?s:.*)\\n\\n(?s:.*)/", []string{"", "a\nb", "\n"}, []string{"a\n\nb", "A"}},
	{"complement binds tighter", "start: A\nA: \"x\" ~\"a\"~2 & /.{3}/", []string{"xbc", "xaa"}, []string{"xb", "ybc"}},
	{"ranges", `start: ("a".."c" | "\u00e9".."\xfc")+`, []string{"abc", "éü"}, []string{"d", ""}},
	{"templates", "start: _list{NUMBER, \",\"} \";\" _list{_pair{\"x\"}, \"/\"}\n_list{item, sep}: item (sep item)*\n_pair{a}: a a\nNUMBER: /[0-9]+/",
		[]string{"1,2;xx", "1;xx/xx"}, []string{"1/2;xx", "1;x", "1;xx,xx"}},
	{"lazy", "start: head \"x\"\nhead[lazy]: /(.|\\n)*<end>/", []string{"<end>x", "a<end>x"}, []string{"<end>", "<end>b<end>x"}},
	{"suffix", "start: head \"x\"\nhead[capture=\"a\", suffix=\"<end>\"]: /.*/", []string{"<end>x", "a<end>x"}, []string{"ax", "a<end><end>x"}},
	{"optional text", "start: TEXT | \"x\"\nTEXT: /(.|\\n)*/", []string{"", "x", "a\nb"}, nil},
	{"flags", "start: /a b\n c/xi \"!\" | /a.b/s", []string{"aBc!", "a\nb"}, []string{"a b c!"}},
	{"escapes", `start: "\"\\\/\n\t\x41\u00e9" /\/[\/"]/`, []string{"\"\\/\n\tAé//", "\"\\/\n\tAé/\""}, []string{`"`}},
	{"tokens", "start: <|a|> \"x\" <[10-12,99]> <[^12]>* <[12]>",
		[]string{"\xff[1]x\xff[10]\xff[12]", "\xff[1]x\xff[99]any\xff[3]\xff[12]"}, []string{"\xff[1]x\xff[13]\xff[12]", "<|a|>x", "\xff[1]x\xff[11]\xff[012]"}},
	{"comments", "// one\n# two\nstart: \"a\" // three\n  | \"b\" # four\n  |\n", []string{"a", "b", ""}, []string{"ab"}},
	{"empty first", "start: (| \"a\") \"b\"", []string{"b", "ab"}, []string{"a"}},
	{"marks", "!start: ?a | _b\n?a.2: \"a\"\n!_b: \"b\"", []string{"a", "b"}, []string{"c"}},
	{"indented", "%indent\nstart: [LINES] item (NEWLINE item)* [END]\nitem: NAME [\"(\" NAME (\",\" NAME)* \")\"] [\":\" INDENT item (NEWLINE item)*]\n" +
		"NAME: /[a-z]+/\nEND: \"\\n\"+\n%ignore /[ ]+|#[^\\n]*/",
		[]string{"a", "a:\n b", "a:\n  b:\n     c\n     d\n  e\nf\n", "\n # x\na: # y\n\n # z\n b (c,\n\n d ) # e\n c", "a\n\n\nb"},
		[]string{" a", "a:\nb", "a:\n  b\n c", "a\n b", "a(\nb", "a:\n  b:\n     c\n    d", "\n a"}},
	{"ignored twice", "start: \"a\" \"b\"\n%ignore /[ ]/\n%ignore \"#\"", []string{"ab", " # a## b "}, []string{"a-b"}},
}

func TestLanguages(t *testing.T) {
	o := Options{Token: func(name string) (token.ID, bool) { return 1, name == "<|a|>" }}
	for _, tt := range languages {
		t.Run(tt.name, func(t *testing.T) {
			grammar := strings.ReplaceAll(tt.grammar, "?a | _b", "a | _b")
			source, err := Parse([]byte(grammar), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range tt.accept {
				if n, ok := read(source, text); !ok {
					t.Errorf("%q is rejected: %s", text, around(text, n))
				}
			}
			for _, text := range tt.reject {
				if _, ok := read(source, text); ok {
					t.Errorf("%q is accepted", text)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ name, grammar, err string }{
		{"empty", "", `lark: line 1, column 1: the start rule "start" is not defined`},
		{"no start", "root: \"a\"", `lark: line 1, column 10: the start rule "start" is not defined`},
		{"unknown rule", "start: foo\nbar: \"b\"", `lark: line 1, column 8: "foo" is not defined`},
		{"unknown terminal", "start: FOO", `lark: line 1, column 8: terminal "FOO" is not defined`},
		{"unknown in unused", "start: \"a\"\nb: \"x\" c", `lark: line 2, column 8: "c" is not defined`},
		{"circular", "start: FOO\nFOO: \"a\" | BAR\nBAR: \"b\" FOO", `lark: line 3, column 10: terminal "FOO" names itself`},
		{"rule in terminal", "start: FOO\nFOO: a\na: \"x\"", `lark: line 2, column 6: a terminal cannot name the rule "a"`},
		{"token in terminal", "start: FOO\nFOO: <[1]>", `lark: line 2, column 6: token <[1]> cannot stand in a terminal`},
		{"twice", "start: \"a\"\nstart: \"b\"", `lark: line 2, column 1: start is already defined in line 1`},
		{"order", "start: foo{7,6}\nfoo: \"a\"", `lark: line 1, column 11: a repetition of 7 to 6 times`},
		{"counts", "start: \"a\"{1;}", `lark: line 1, column 13: expected } after the counts of a repetition, found ';'`},
		{"range", `start: "ab".."c"`, `lark: line 1, column 8: the end "ab" of a range is not one character`},
		{"range order", `start: "d".."a"`, `lark: line 1, column 8: the range 'd' to 'a' is empty`},
		{"open string", "start: \"test\nblah: \"xyz\"", `lark: line 1, column 8: the string has no end in its line`},
		{"open expression", "start: / \"test\"\nblah: \"xyz\"", `lark: line 1, column 8: the expression has no / in its line`},
		{"flag", "start: /abc/l", `lark: line 1, column 13: unknown flag 'l' of an expression; known are i, m, s, x and u`},
		{"shortest", "start: /\".*?\"/", `lark: line 1, column 8: /".*?"/ prefers the shortest match (*?), but a terminal is a set of texts: ` +
			"leave the end out of the repeated class, or write rule[lazy]: ..."},
		{"escape", `start: "\q"`, `lark: line 1, column 9: unknown escape \q; known are \, ", ', /, n, r, t, f, v, b, 0, x, u and U`},
		{"group", "start: (\"a\"", `lark: line 1, column 12: expected ) for the (, found the end of the grammar`},
		{"close", "start: \"a\")", `lark: line 1, column 11: expected a symbol, | or the next definition, found ')'`},
		{"no colon", "start \"a\"", `lark: line 1, column 1: expected a definition, NAME: ..., or a directive such as %ignore, found 's'`},
		{"json", "start: %json {\"type\": \"object\"}", `lark: line 1, column 8: %json is not supported in a definition`},
		{"declare", "%declare A\nstart: A", `lark: line 1, column 1: %declare is not supported; %ignore, %import, %indent and %llguidance are`},
		{"module", "%import python.NAME\nstart: NAME", `lark: line 1, column 9: module "python" cannot be imported; common can`},
		{"setting", "%llguidance {\"x\": 1}\nstart: \"a\"", `lark: line 1, column 13: setting "x" of %llguidance is not supported; no_forcing is`},
		{"attribute", "start[max_tokens=3]: \"a\"", `lark: line 1, column 7: attribute "max_tokens" is not supported; lazy, suffix and capture are`},
		{"both in rule", "start: \"a\" & \"b\"", `lark: line 1, column 8: & and ~ stand in terminals only, whose names are in upper case`},
		{"parameters", "start: a{\"x\"}\na{b, c}: b c", `lark: line 1, column 8: "a" has 2 parameters and not 1`},
		{"token name", "start: <|x|>", `lark: line 1, column 8: token <|x|>: no vocabulary is known here, so that only tokens by number can be named`},
		{"token range", "start: <[200-100]>", `lark: line 1, column 8: token <[200-100]>: "200-100" is no number and no range in 0..2147483647`},
		{"any token", "start: <[*]>", `lark: line 1, column 8: <[*]> must be repeated by * or + and nothing else: the length of one token is no property of a text`},
		{"not UTF-8", "start: \"\xe9\"", `lark: line 1, column 9: byte 0xe9 is not UTF-8`},
		{"priority", "start: A | B\nA.2: /a/\nB: /ab/", `lark: line 1, column 8: the priority 2 over the terminal in line 1 would cut its longer texts short; the longest match comes first here`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.grammar), Options{})
			if err == nil || err.Error() != tt.err {
				t.Errorf("error\n%v\nwant\n%s", err, tt.err)
			}
		})
	}
}

// TestLimits builds grammars beyond the bounds.
func TestLimits(t *testing.T) {
	chain := "start: A0\n"
	for i := range 600 {
		chain += "A" + strings.Repeat("X", i) + ": A" + strings.Repeat("X", i+1) + "\n"
	}
	double := "start: t{\"a\"}\n"
	for i := range 40 {
		double += "t" + strings.Repeat("x", i) + "{a}: t" + strings.Repeat("x", i+1) + "{(a a)}\n"
	}
	for name, grammar := range map[string]string{
		"parentheses": "start: " + strings.Repeat("(", 60_000) + `"a"` + strings.Repeat(")", 60_000),
		"complements": "start: A\nA: " + strings.Repeat("~", 60_000) + `"a"`,
		"stars":       "start: \"a\"" + strings.Repeat("*", 60_000),
		"bytes":       "start: \"" + strings.Repeat("a", maxBytes) + `"`,
		"count":       `start: "a"{0,500001}`,
		"chain":       strings.Replace(chain, "A0", "A", 1) + "A" + strings.Repeat("X", 600) + ": \"a\"",
		"templates":   double + "t" + strings.Repeat("x", 40) + "{a}: a",
		"endless":     "start: t{\"a\"}\nt{a}: t{(a)} | t{[a]} | a",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(grammar), Options{})
			if place := new(Error); !errors.Is(err, ErrLimit) || !errors.As(err, &place) {
				t.Errorf("%.200v", err)
			}
		})
	}
}

func TestShipped(t *testing.T) {
	if _, err := Shipped("cobol"); err == nil || !strings.Contains(err.Error(), "go, json, python, sql") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range languages {
		f.Add([]byte(tt.grammar))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			t.Skip("longer texts are bounded by the tests of limits")
		}
		source, err := Parse(text, Options{Token: func(string) (token.ID, bool) { return 3, true }})
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

func TestDetect(t *testing.T) {
	for text, want := range map[string]Notation{
		"root ::= \"a\"": GBNF, "# c\n\n my-rule\n::= \"start: x\"": GBNF, "12 ::= [a]": GBNF,
		"start: \"a ::= b\"": Lark, "// c\n?start[lazy]: a": Lark, "%llguidance {}": Lark, "A.2: \"x\"": Lark, "t{a, b}: a": Lark,
		"": Unknown, "{\"type\": \"object\"}": Unknown, "hello": Unknown, "a|b": Unknown,
	} {
		if got := Detect([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, name := range Names() {
		if text, err := Shipped(name); err != nil || Detect(text) != Lark {
			t.Error(name, err)
		}
	}
}
