package grammar

import "unsafe"

// Held returns the memory of the grammar in bytes, about, without that of its store.
func (s *source) Held() int {
	const (
		entry = 8  // of a map, beside its key and value, as maps are two thirds full
		parts = 16 // of an expression
	)
	bytes := cap(s.cells)*int(unsafe.Sizeof(cell{})) + len(s.known)*(16+entry) + cap(s.info)*int(unsafe.Sizeof(info{}))
	bytes += s.edges * int(unsafe.Sizeof(Edge{}))
	bytes += cap(s.exprs)*(parts+int(unsafe.Sizeof(expr{}))) + cap(s.productive) + len(s.repeats)*(32+entry)
	return bytes + cap(s.rules)*int(unsafe.Sizeof(rule{})) + len(s.names)*(40+entry)
}
