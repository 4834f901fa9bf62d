package format

import "grove/sample/constrain/regex"

const (
	label = `[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?`

	atom       = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+"
	atoms      = atom + `(?:\.` + atom + `)*`
	quoted     = `"(?:[ !#-\[\]-~]|\\[ -~])*"`
	wideAtom   = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~\\x{80}-\\x{10FFFF}-]+"
	wideAtoms  = wideAtom + `(?:\.` + wideAtom + `)*`
	wideQuoted = `"(?:[ !#-\[\]-~\x{80}-\x{10FFFF}]|\\[ -~])*"`

	maxLocal = 64  // bytes before @
	maxName  = 253 // bytes of a name of a host
)

// hostname is the names of hosts.
func (m *maker) hostname() regex.ID {
	one := m.s.And(m.whole(label), m.s.Not(m.whole(`..--.*`)))
	name := m.s.Concat(one, m.s.Repeat(m.s.Concat(m.s.Literal("."), one), 0, -1))
	return m.s.And(name, m.bytes(1, maxName))
}

// mailbox is the addresses of mail with a kind of local parts.
func (m *maker) mailbox(atoms, quoted string) regex.ID {
	local := m.s.And(m.whole(atoms+`|`+quoted), m.bytes(1, maxLocal))
	literal := m.whole(`\[(?:` + ipv4 + `|[Ii][Pp][Vv]6:(?:` + ipv6 + `))\]`)
	return m.s.Concat(local, m.s.Literal("@"), m.s.Or(m.hostname(), literal))
}
