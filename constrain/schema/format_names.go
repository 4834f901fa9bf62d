package schema

import "grove/constrain/regex"

const (
	label = `[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?`

	atom       = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+"
	atoms      = atom + `(?:\.` + atom + `)*`
	quoted     = `"[ !#-\[\]-~]*"`
	wideAtom   = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~\\x{80}-\\x{10FFFF}-]+"
	wideAtoms  = wideAtom + `(?:\.` + wideAtom + `)*`
	wideQuoted = `"[ !#-\[\]-~\x{80}-\x{10FFFF}]*"`

	maxLocal = 64  // bytes before @
	maxName  = 253 // bytes of a name of a host
)

// label is one part of the name of a host.
func (m *maker) label() regex.ID {
	return m.s.And(m.whole(label), m.s.Not(m.whole(`..--.*`)))
}

// hostname is the names of hosts.
func (m *maker) hostname() regex.ID { return m.namesOf(m.label()) }

// names is the names of hosts with labels of any Punycode.
func (m *maker) names() regex.ID { return m.namesOf(m.whole(label)) }

func (m *maker) namesOf(one regex.ID) regex.ID {
	name := m.s.Concat(one, m.s.Repeat(m.s.Concat(m.s.Literal("."), one), 0, -1))
	return m.s.And(name, m.bytes(1, maxName))
}

// mailbox is the addresses of mail with a kind of local parts and of names.
func (m *maker) mailbox(atoms, quoted string, name regex.ID) regex.ID {
	local := m.s.And(m.whole(atoms+`|`+quoted), m.bytes(1, maxLocal))
	literal := m.whole(`\[(?:` + ipv4 + `|IPv6:(?:` + ipv6 + `))\]`)
	return m.s.Concat(local, m.s.Literal("@"), m.s.Or(name, literal))
}
