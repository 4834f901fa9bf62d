package schema

import (
	"unsafe"
)

// Held returns the memory of the grammar and its schema in bytes, about, without that of the store. It takes no longer for large ones.
func (s *source) Held() int {
	const (
		entry   = 8  // of a map, beside its key and value, as maps are two thirds full
		literal = 64 // the literals of a formula, and its alternatives
	)
	c := s.c
	for ; s.counted < len(c.objects); s.counted++ {
		s.objects += c.objects[s.counted].held()
	}
	bytes := s.objects + c.doc.Held() + len(c.arrays)*(64+int(unsafe.Sizeof(array{})))
	bytes += len(c.formulas) * (8 + int(unsafe.Sizeof(formula{})) + int(unsafe.Sizeof(ScalarSet{})) + literal + 24 + entry)
	bytes += cap(s.places)*int(unsafe.Sizeof(place{})) + len(s.nodes)*(4+int(unsafe.Sizeof(place{}))+entry)
	bytes += len(s.texts)*(16+32+20+entry) + len(s.sets)*(24+28+entry)
	bytes += len(c.doc.Schemas) * (20 + entry + int(unsafe.Sizeof(ScalarSet{}))) // what scalar keeps of them
	return bytes + len(s.keys)*(24+entry) + len(s.values)*(12+entry) + len(c.others)*128 + len(c.equals)*(16+entry)
}

// held returns the memory of an object in bytes, about.
func (o *object) held() int {
	const member = 16 + 24 + 16 + 1 + 4 + 8 // a name, its literals, whether it is needed, its marks, its formula
	return int(unsafe.Sizeof(*o)) + member*cap(o.names) + 64*(len(o.all)+len(o.some)+len(o.classes))
}
