package jinja

// Entries returns the keys and their values, in order.
func (m *Map) Entries() (keys, values []Value) { return m.keys, m.values }
