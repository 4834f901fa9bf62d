package regex

import (
	"container/heap"
	"slices"
)

// Strings returns the strings of an expression if there are at most max, sorted; otherwise finite is false.
func (s *Store) Strings(id ID, max int) (all []string, finite bool) {
	if s.empty(id) {
		return nil, s.err == nil
	}
	type frame struct {
		id   ID
		next int // the byte to try
	}
	stack, onPath := []frame{{id, 0}}, map[ID]bool{id: true}
	var text []byte
	if s.Nullable(id) {
		all = append(all, "")
	}
	for len(stack) > 0 && len(all) <= max && s.spend(1) {
		top := &stack[len(stack)-1]
		d := Nothing
		for ; top.next < 256 && d == Nothing; top.next++ {
			d = s.Derive(top.id, byte(top.next))
		}
		if d == Nothing {
			delete(onPath, top.id)
			stack = stack[:len(stack)-1]
			text = text[:len(stack)-min(1, len(stack))]
			continue
		}
		if onPath[d] {
			return nil, false // round and round, and each time a string can be completed
		}
		text = append(text, byte(top.next-1))
		if s.Nullable(d) {
			all = append(all, string(text))
		}
		onPath[d] = true
		stack = append(stack, frame{d, 0})
	}
	if len(all) > max || s.err != nil {
		return nil, false
	}
	return all, true
}

// Example returns a string of an expression, a short one of letters and digits where they will do; false if there is none, or
// none is found within the budgets.
func (s *Store) Example(id ID) (text string, ok bool) {
	f, with := s.from(id), []byte{0}
	for len(f.open) > 0 && s.spend(1) {
		at := heap.Pop(f).(int32)
		here := f.places[at].id
		if s.Nullable(here) {
			var out []byte
			for ; at > 0; at = f.places[at].from {
				out = append(out, with[at])
			}
			slices.Reverse(out)
			return string(out), true
		}
		for _, b := range s.candidates(here) {
			if d := s.derive(here, b); !s.has(d, isEmpty) && f.reach(d, at) {
				with = append(with, b)
			}
		}
	}
	return "", false
}

// candidates returns a byte of each class, one that reads well where there is one.
func (s *Store) candidates(id ID) []byte {
	p := s.parts[s.partition(id)]
	bytes := append([]byte(nil), p.first...)
	for _, b := range []byte(" _-zyxwvutsrqponmlkjihgfedcbaA9876543210") {
		bytes[p.class[b]] = b
	}
	return bytes
}
