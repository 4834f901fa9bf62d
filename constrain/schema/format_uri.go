package schema

import (
	"fmt"
	"strings"
)

// uri writes expressions of RFC 3986, and of RFC 3987 which allows more characters.
type uri struct {
	more    string // characters beside the unreserved ones, as in a class
	private string // the same, in queries only
}

var (
	ascii         = uri{}
	international = uri{more: wideChars(), private: `\x{E000}-\x{F8FF}\x{F0000}-\x{FFFFD}\x{100000}-\x{10FFFD}`}
)

// wideChars is ucschar of RFC 3987, without the marks of writing direction.
func wideChars() string {
	var b strings.Builder
	b.WriteString(`\x{A0}-\x{200D}\x{2010}-\x{2029}\x{202F}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}`)
	for plane := 1; plane <= 14; plane++ {
		first := plane << 16
		if plane == 14 {
			first += 0x1000
		}
		fmt.Fprintf(&b, `\x{%X}-\x{%X}`, first, plane<<16+0xfffd)
	}
	return b.String()
}

// character is one of a class of the notation, or an escape in percent.
func (u uri) character(also string) string {
	return `(?:[0-9A-Za-z._~!$&'()*+,;=` + u.more + also + `-]|%[0-9A-Fa-f]{2})`
}

// rest is what follows a scheme, or stands alone; first: what the first segment of a path without / may hold.
func (u uri) rest(first string) string {
	segment := u.character(":@")
	below := `(?:/` + segment + `*)*`
	future := `[Vv][0-9A-Fa-f]+\.[0-9A-Za-z._~!$&'()*+,;=:-]+`
	host := `(?:\[(?:` + ipv6 + `|` + future + `)\]|` + u.character("") + `*)`
	authority := `(?:` + u.character(":") + `*@)?` + host + `(?::[0-9]*)?`
	path := `//` + authority + below + `|/(?:` + segment + `+` + below + `)?|` + first + `+` + below + `|`
	return `(?:` + path + `)(?:\?` + u.character(":@/?"+u.private) + `*)?(?:#` + u.character(":@/?") + `*)?`
}

// absolute is what has a scheme.
func (u uri) absolute() string { return `[A-Za-z][0-9A-Za-z+.-]*:` + u.rest(u.character(":@")) }

// reference is also what is relative: no colon stands in its first segment.
func (u uri) reference() string { return u.absolute() + `|` + u.rest(u.character("@")) }

// templateOf is the notation of RFC 6570 with some operators.
func templateOf(operator string) string {
	escape := `%[0-9A-Fa-f]{2}`
	literal := `(?:[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~` + international.more + international.private + `]|` + escape + `)`
	letter := `(?:[0-9A-Za-z_]|` + escape + `)`
	variable := letter + `(?:\.?` + letter + `)*(?::[1-9][0-9]{0,3}|\*)?`
	return `(?:` + literal + `|\{` + operator + variable + `(?:,` + variable + `)*\})*`
}
