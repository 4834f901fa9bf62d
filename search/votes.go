package search

import (
	"math"
	"regexp"
	"strings"
)

// Extractors return the final answer of a text, so that equal answers are equal texts; "": there is none.
var Extractors = map[string]func(text string) string{"number": lastNumber, "line": lastLine, "boxed": lastBoxed, "text": strings.TrimSpace}

var numbers = regexp.MustCompile(`[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?`)

// lastNumber returns the last decimal number of a text, without commas, a plus, zeros at the beginning, and zeros at the end of a fraction.
func lastNumber(text string) string {
	all := numbers.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return ""
	}
	from, to := all[len(all)-1][0], all[len(all)-1][1]
	number := text[from:to]
	if sign := number[0]; sign == '-' || sign == '+' {
		if number = number[1:]; sign == '-' && !follows(text[:from]) {
			return signed(plain(number))
		}
	}
	return plain(number)
}

// follows reports whether a sign behind a text stands between two operands, so that it is not the number's.
func follows(text string) bool {
	if text == "" {
		return false
	}
	last := text[len(text)-1]
	return last == ')' || last >= '0' && last <= '9' || last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z'
}

// plain returns the usual form of a number without a sign.
func plain(number string) string {
	whole, fraction, _ := strings.Cut(strings.ReplaceAll(number, ",", ""), ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// signed returns a number below 0, unless it is 0.
func signed(number string) string {
	if number == "0" {
		return number
	}
	return "-" + number
}

// lastLine returns the last line of a text that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// lastBoxed returns what the last \boxed{...} of a text holds, with the braces in it; "" where it is not closed.
func lastBoxed(text string) string {
	const box = `\boxed{`
	at := strings.LastIndex(text, box)
	if at < 0 {
		return ""
	}
	inside, depth := text[at+len(box):], 1
	for i := range len(inside) {
		switch inside[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return strings.TrimSpace(inside[:i])
			}
		}
	}
	return ""
}

// Vote returns the first attempt with the answer that has the most votes, and how many attempts give it; of equal ones the answer that
// comes first. It sets the attempts' weights. An attempt without an answer has no vote; where none has one, the first attempt is taken.
func Vote(all []Attempt, weighed bool) (at, votes int) {
	sums, total := map[string]float64{}, 0.0
	for i := range all {
		if all[i].Answer == "" {
			continue
		}
		all[i].Weight = 1
		if weighed {
			all[i].Weight = math.Exp(all[i].Logprob / float64(max(1, all[i].Tokens)))
		}
		sums[all[i].Answer] += all[i].Weight
		total += all[i].Weight
	}
	for i := range all {
		if sums[all[i].Answer] > sums[all[at].Answer] {
			at = i
		}
	}
	for i := range all {
		if all[i].Answer != "" {
			all[i].Weight /= total
			if all[i].Answer == all[at].Answer {
				votes++
			}
		}
	}
	return at, votes
}
