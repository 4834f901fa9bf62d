package regex

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDescribe has descriptions of expressions.
func TestDescribe(t *testing.T) {
	s := New(Limits{})
	digit := s.Bytes(set("0123456789"))
	named := s.Repeat(digit, 3, 3)
	s.Name(named, "area code")
	s.Name(named, "another name")
	for _, c := range []struct {
		id   ID
		want string
	}{
		{Nothing, `nothing`},
		{Epsilon, `""`},
		{s.Literal("}"), `'}'`},
		{s.Literal("\n"), `"\n"`},
		{s.Literal("true"), `"true"`},
		{s.Or(s.Literal("true"), s.Literal("false")), `"false" or "true"`},
		{s.Concat(s.Or(s.Literal("true"), s.Literal("false")), digit), `("false" or "true") digit`},
		{s.Or(digit, s.Literal("true")), `digit or "true"`},
		{digit, `digit`},
		{s.Bytes(set("ab-")), `[\-ab]`},
		{s.Runes(Range{'a', 'c'}, Range{0, 9}), `[\x00-\ta-c]`},
		{s.Runes(Range{'a', 'z'}, Range{'à', 'ý'}, Range{0x4E00, 0x9FFF}), `[a-zà-ý一-鿿]`},
		{s.Not(s.Repeat(s.Bytes(set("a")), 0, 3)), `not 'a'{0,3}`},
		{s.Repeat(s.Concat(digit, s.Literal(",")), 1, -1), `(digit ',')+`},
		{s.Repeat(digit, 0, 1), `digit?`},
		{named, `area code`},
		{s.Concat(named, s.Literal("-")), `area code '-'`},
		{s.And(s.Repeat(digit, 2, -1), s.Not(s.Literal("00"))), `digit{2,} and not "00"`},
		{s.Quoted(s.Repeat(s.AnyRune(), 0, -1)), `string`},
		{s.Derive(s.Quoted(s.Literal("ab")), '"'), `rest of a string of "ab"`},
		{s.Quoted(s.Repeat(s.AnyRune(), 2, 5)), `string of character{2,5}`},
		{s.Machine(counter(2), 0), `regex.counter`},
		{s.Bytes(set("\x80\xff")), `[\x80\xff]`},
	} {
		if got := s.Describe(c.id); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if long := s.Describe(s.Literal(strings.Repeat("é", 300))); len(long) > maxDescription+5 || !utf8.ValidString(long) {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}
