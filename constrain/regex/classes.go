package regex

// Classes returns the class of each byte, and the smallest byte of each class, ascending: bytes of a class have the same
// derivative in all of some expressions. The results are the store's: equal classes are the same pointer.
func (s *Store) Classes(ids ...ID) (class *[256]uint8, first []byte) {
	at := uint32(1)
	for _, id := range ids {
		at = s.product(at, s.partition(id))
		if s.err != nil {
			at = 1
		}
	}
	p := s.parts[at]
	return &p.class, p.first
}
