package schema

import (
	"grove/constrain/regex"
)

// FormatLanguage returns the texts that have a format; known is false if there is no format of that name. The error is that of a
// spent budget of s.
func FormatLanguage(s *regex.Store, name string) (id regex.ID, known bool, err error) {
	if source, ok := sources[name]; ok {
		id, err = regex.Whole(s, source)
		return id, true, err
	}
	make, ok := made[name]
	if !ok {
		return regex.Nothing, false, nil
	}
	m := &maker{s: s}
	if id = make(m); m.err == nil {
		m.err = s.Err()
	}
	return id, true, m.err
}

// FormatKnown reports whether there is a format of a name.
func FormatKnown(name string) bool {
	return sources[name] != "" || made[name] != nil
}

// FormatExact reports whether a format holds all its texts.
func FormatExact(name string) bool { return FormatKnown(name) && possible[name] == nil }

// FormatPossible returns texts among which are all that have a format: its language where that is exact, otherwise more. The
// complement of a format is the complement of these. The error is that of a spent budget of s.
func FormatPossible(s *regex.Store, name string) (id regex.ID, known bool, err error) {
	make, ok := possible[name]
	if !ok {
		return FormatLanguage(s, name)
	}
	m := &maker{s: s}
	if id = make(m); m.err == nil {
		m.err = s.Err()
	}
	return id, true, m.err
}

// possible are bounds from outside of the formats that are described from inside.
var possible = map[string]func(*maker) regex.ID{
	"hostname":     (*maker).names,
	"idn-hostname": func(m *maker) regex.ID { return m.s.Or(m.names(), m.whole(`(?s).*[^\x00-\x7f].*`)) },
	"email":        func(m *maker) regex.ID { return m.whole(`(?s).*@.*`) },
	"idn-email":    func(m *maker) regex.ID { return m.whole(`(?s).*@.*`) },
	"uri-template": func(m *maker) regex.ID { return m.whole(templateOf(`[+#./;?&=,!@|]?`)) },
	"regex":        func(m *maker) regex.ID { return m.whole(`(?s)(?:[^*+?].*)?`) }, // nothing can be repeated before the start
}

// sources are the formats that an expression says.
var sources = map[string]string{
	"date":                  date,
	"duration":              duration,
	"ipv4":                  ipv4,
	"ipv6":                  ipv6,
	"uri":                   ascii.absolute(),
	"uri-reference":         ascii.reference(),
	"iri":                   international.absolute(),
	"iri-reference":         international.reference(),
	"uri-template":          templateOf(`[+#./;?&]?`),
	"uuid":                  `[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`,
	"json-pointer":          pointer,
	"relative-json-pointer": `(?:0|[1-9][0-9]*)(?:#|` + pointer + `)`,
	"regex":                 expression(4),
}

// made are the formats that need more than an expression.
var made = map[string]func(*maker) regex.ID{
	"time":         (*maker).time,
	"date-time":    func(m *maker) regex.ID { return m.s.Concat(m.whole(date+"[Tt]"), m.time()) },
	"hostname":     (*maker).hostname,
	"idn-hostname": (*maker).internationalName,
	"email":        func(m *maker) regex.ID { return m.mailbox(atoms, quoted, m.hostname()) },
	"idn-email":    func(m *maker) regex.ID { return m.mailbox(wideAtoms, wideQuoted, m.internationalName()) },
}

// maker builds a format in a store, and keeps the first error.
type maker struct {
	s   *regex.Store
	err error
}

// whole is the language of an expression.
func (m *maker) whole(source string) regex.ID {
	id, err := regex.Whole(m.s, source)
	if m.err == nil {
		m.err = err
	}
	return id
}

// bytes is all texts of lo to hi bytes.
func (m *maker) bytes(lo, hi int) regex.ID {
	var set regex.Set
	set.Add(0, 0xfe)
	return m.s.Repeat(m.s.Bytes(set), lo, hi)
}

const (
	pointer = `(?s:/(?:[^~/]|~[01])*)*`

	hex16 = `[0-9A-Fa-f]{1,4}`
	octet = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	ipv4  = octet + `(?:\.` + octet + `){3}`
	low32 = `(?:` + hex16 + `:` + hex16 + `|` + ipv4 + `)`
	ipv6  = `(?:` + hex16 + `:){6}` + low32 +
		`|::(?:` + hex16 + `:){5}` + low32 +
		`|(?:` + hex16 + `)?::(?:` + hex16 + `:){4}` + low32 +
		`|(?:(?:` + hex16 + `:){0,1}` + hex16 + `)?::(?:` + hex16 + `:){3}` + low32 +
		`|(?:(?:` + hex16 + `:){0,2}` + hex16 + `)?::(?:` + hex16 + `:){2}` + low32 +
		`|(?:(?:` + hex16 + `:){0,3}` + hex16 + `)?::` + hex16 + `:` + low32 +
		`|(?:(?:` + hex16 + `:){0,4}` + hex16 + `)?::` + low32 +
		`|(?:(?:` + hex16 + `:){0,5}` + hex16 + `)?::` + hex16 +
		`|(?:(?:` + hex16 + `:){0,6}` + hex16 + `)?::`
)
