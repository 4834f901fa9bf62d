package regex

import "unsafe"

// Held returns the memory of the store in bytes, about. It takes no longer for large stores.
func (s *Store) Held() int {
	const (
		entry  = 8 // of a map, beside its key and value, as maps are two thirds full
		labels = 256
	)
	bytes := int(unsafe.Sizeof(*s)) + cap(s.nodes)*int(unsafe.Sizeof(node{})) + 4*(len(s.table)+cap(s.kids)+cap(s.rows)+cap(s.tmp)) + cap(s.sets)*int(unsafe.Sizeof(Set{}))
	bytes += cap(s.text) + 8*cap(s.words) + 24*cap(s.auto) + 2*len(s.pairs)
	bytes += len(s.parts) * (8 + int(unsafe.Sizeof(partition{})) + 32 + (labels+4)*3/2)
	bytes += (len(s.products) + len(s.long) + len(s.dicts) + len(s.locals)) * (12 + entry)
	bytes += (len(s.far) + len(s.tried) + len(s.cleans)) * (8 + entry)
	return bytes + len(s.autos)*(32+entry) + len(s.names)*(48+entry) + len(s.ranges)*(64+entry)
}
