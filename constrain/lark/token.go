package lark

import (
	"fmt"
	"strconv"
	"strings"

	"grove/constrain/regex"
	"grove/internal/text/token"
)

// maxToken is the largest number of a token.
const maxToken = 1<<31 - 1

// token returns how the tokens that a node names are spelled. any says that they are all tokens but some, text among them.
func (c *compiler) token(n *node) (id regex.ID, any bool, err error) {
	inner := n.text[1 : len(n.text)-1]
	if len(inner) < 2 || inner[0] != '[' || inner[len(inner)-1] != ']' {
		return c.tokenNamed(n)
	}
	list, negated := strings.CutPrefix(inner[1:len(inner)-1], "^")
	if list == "*" && !negated {
		list, negated = "", true
	} else if list == "" {
		return regex.Nothing, false, c.parser.at(n.pos, "token %s has no number", n.text)
	}
	var numbers []regex.ID
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		first, last, ok := strings.Cut(item, "-")
		if !ok {
			last = first
		}
		low, err1 := strconv.ParseUint(first, 10, 31)
		high, err2 := strconv.ParseUint(last, 10, 31)
		if err1 != nil || err2 != nil || high < low {
			return regex.Nothing, false, c.parser.at(n.pos, "token %s: %q is no number and no range in 0..%d", n.text, item, maxToken)
		}
		if high-low > maxSymbols {
			return regex.Nothing, false, c.parser.limit(n.pos, "token %s: the range %q has more than %d tokens", n.text, item, maxSymbols)
		}
		for t := low; c.parser.o.Special != nil && t <= high && !negated; t++ {
			if !c.parser.o.Special(token.ID(t)) {
				return regex.Nothing, false, c.parser.at(n.pos, "token %s: %d is text; write its text as a string", n.text, t)
			}
		}
		numbers = append(numbers, c.between(strconv.FormatUint(low, 10), strconv.FormatUint(high, 10)))
	}
	number := c.store.Or(numbers...)
	if !negated {
		return c.spelled(number), false, nil
	}
	digits := c.store.Repeat(c.store.Runes(regex.Range{Lo: '0', Hi: '9'}), 1, 10)
	return c.store.Or(c.store.AnyRune(), c.spelled(c.store.And(digits, c.store.Not(number)))), true, nil
}

// tokenNamed returns how a token is spelled that a node names by its text.
func (c *compiler) tokenNamed(n *node) (id regex.ID, any bool, err error) {
	if c.parser.o.Token == nil {
		return regex.Nothing, false, c.parser.at(n.pos, "token %s: no vocabulary is known here, so that only tokens by number can be named", n.text)
	}
	t, ok := c.parser.o.Token(n.text)
	if !ok {
		return regex.Nothing, false, c.parser.at(n.pos, "the vocabulary has no token %s", n.text)
	}
	if c.parser.o.Special != nil && !c.parser.o.Special(t) {
		return regex.Nothing, false, c.parser.at(n.pos, "token %s is text; write its text as a string", n.text)
	}
	return c.spelled(c.store.Literal(fmt.Sprint(t))), false, nil
}

// spelled returns the spelling of tokens whose numbers are in a set.
func (c *compiler) spelled(numbers regex.ID) regex.ID {
	return c.store.Concat(c.store.Literal("\xff["), numbers, c.store.Literal("]"))
}

// between returns the numbers of a range.
func (c *compiler) between(low, high string) regex.ID {
	if len(low) == len(high) {
		return c.digits(low, high)
	}
	all := []regex.ID{c.digits(low, strings.Repeat("9", len(low))), c.digits("1"+strings.Repeat("0", len(high)-1), high)}
	for n := len(low) + 1; n < len(high); n++ {
		all = append(all, c.digits("1"+strings.Repeat("0", n-1), strings.Repeat("9", n)))
	}
	return c.store.Or(all...)
}

// digits returns the numbers of a range whose ends have the same number of digits.
func (c *compiler) digits(low, high string) regex.ID {
	if low == "" {
		return regex.Epsilon
	}
	one := func(from, to byte, rest regex.ID) regex.ID {
		if from > to {
			return regex.Nothing
		}
		return c.store.Concat(c.store.Runes(regex.Range{Lo: rune(from), Hi: rune(to)}), rest)
	}
	if low[0] == high[0] {
		return one(low[0], low[0], c.digits(low[1:], high[1:]))
	}
	n := len(low) - 1
	return c.store.Or(
		one(low[0], low[0], c.digits(low[1:], strings.Repeat("9", n))),
		one(low[0]+1, high[0]-1, c.digits(strings.Repeat("0", n), strings.Repeat("9", n))),
		one(high[0], high[0], c.digits(strings.Repeat("0", n), high[1:])),
	)
}
