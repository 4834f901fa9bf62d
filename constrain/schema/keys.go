package schema

import (
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// names returns the names that the patterns of a schema match.
func (c *compiler) names(s *document.Schema) []regex.ID {
	all := make([]regex.ID, len(s.Object.Patterns))
	for i, p := range s.Object.Patterns {
		all[i] = c.lang.Pattern(s.Object.PatternOf[i].At, p)
	}
	return all
}

// other returns the names that additionalProperties of a schema is about.
func (c *compiler) other(s *document.Schema) *keyset {
	k := c.others[s.ID]
	if k == nil {
		k = &keyset{neg: true, langs: c.names(s), names: make(map[string]bool, len(s.Object.Names))}
		for _, n := range s.Object.Names {
			k.names[n] = true
		}
		c.others[s.ID] = k
	}
	return k
}
