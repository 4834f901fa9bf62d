package constrain

import (
	"fmt"
	"slices"
	"strings"

	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// direct is the recognizer of an automaton over bytes: a mask is a walk over the trie of the vocabulary, so that its cost
// does not depend on the number of texts.
type direct struct {
	v *Vocabulary
	m PathMachine
}

// special begins the spelling of a special token, of which an automaton knows none.
const special = 0xff

func newDirect(v *Vocabulary, m PathMachine) *direct { return &direct{v, m} }

// start implements recognizer.
func (d *direct) start() (state, error) { return state{at: PathStart}, nil }

// push implements recognizer.
func (d *direct) push(s state, text []byte) (state, int, error) {
	for i, b := range text {
		next, alive := 0, false
		if b != special {
			next, alive = d.m.Step(s.at, b)
		}
		if !alive {
			return s, i, nil
		}
		s.at = next
	}
	return s, len(text), nil
}

// next implements recognizer.
func (d *direct) next(s state, id token.ID) (state, error) {
	text := d.v.trie.Bytes(id)
	to, n, err := d.push(s, text)
	if n < len(text) || len(text) == 0 && !(d.v.trie.Kind(id) == vocab.End && d.ends(s)) {
		return s, errIllegal
	}
	return to, err
}

// allows implements recognizer.
func (d *direct) allows(s state, id token.ID) (bool, error) {
	_, err := d.next(s, id)
	return err == nil, nil
}

// mask implements recognizer.
func (d *direct) mask(s state) (mask, error) {
	m := newMask(d.v.size)
	trie := d.v.trie.Trie()
	way := make([]int, 1, 64)
	way[0] = s.at
	for i := 1; i < len(trie); {
		n := &trie[i]
		next, alive := 0, false
		if b := n.Byte(); b != special {
			next, alive = d.m.Step(way[n.Depth()-1], b)
		}
		if !alive {
			i += n.Size()
			continue
		}
		way = append(way[:n.Depth()], next)
		if id := n.Token(); id != vocab.None {
			m.set(token.ID(id))
		}
		i++
	}
	d.v.trie.Spread(m)
	if d.ends(s) {
		for _, id := range d.v.ending {
			m.set(id)
		}
	}
	return m, nil
}

// ends implements recognizer.
func (d *direct) ends(s state) bool { return d.m.Final(s.at) }

// forced implements recognizer.
func (d *direct) forced(s state, limit int) (text []byte) {
	for len(text) < limit && !d.ends(s) {
		all := d.bytes(s, 2)
		if len(all) != 1 {
			break
		}
		text = append(text, all[0])
		s, _, _ = d.push(s, all)
	}
	return text
}

// bytes returns the bytes that may follow, at most so many.
func (d *direct) bytes(s state, most int) (all []byte) {
	if r, ok := d.m.(interface{ Bytes(state int) []byte }); ok {
		all = r.Bytes(s.at)
		return all[:min(most, len(all))]
	}
	for b := range special {
		if _, alive := d.m.Step(s.at, byte(b)); alive {
			if all = append(all, byte(b)); len(all) == most {
				break
			}
		}
	}
	return all
}

// expected implements recognizer: the beginnings of a few texts that may follow.
func (d *direct) expected(s state) string {
	const few, long = 6, 24
	var words []string
	var walk func(s state, text []byte)
	walk = func(s state, text []byte) {
		if len(words) > few {
			return
		}
		ends := d.ends(s)
		if ends && len(text) > 0 || len(text) == long {
			word := fmt.Sprintf("%q", text)
			if len(text) == long {
				word += "..."
			}
			words = append(words, word)
		}
		if len(text) == long || ends && len(text) > 0 {
			return
		}
		for _, b := range d.bytes(s, special) {
			if len(words) <= few {
				to, _, _ := d.push(s, []byte{b})
				walk(to, append(slices.Clip(text), b))
			}
		}
	}
	walk(s, nil)
	if len(words) > few {
		words = append(words[:few], "and others")
	}
	if d.ends(s) {
		words = append(words, "the end of the text")
	}
	return strings.Join(words, ", ")
}

// worn implements recognizer: it keeps nothing.
func (d *direct) worn() bool { return false }

// held implements recognizer: the memory of the automaton, where that says how much it has.
func (d *direct) held() int {
	if m, ok := d.m.(interface{ Held() int }); ok {
		return m.Held()
	}
	return 0
}

// choices returns the automaton of a list of texts.
func choices(list []string) (PathMachine, error) {
	n := 0
	for _, text := range list {
		n += len(text)
	}
	if len(list) == 0 || len(list) > maxChoices || n > maxChoiceBytes {
		return nil, fmt.Errorf("constrain: %d choices of %d bytes; there must be 1 to %d, of %d bytes at most", len(list), n, maxChoices, maxChoiceBytes)
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(text string) bool { return text == "" })
	if len(rest) == 0 {
		return optional{}, nil
	}
	texts, err := PathNewTexts(rest)
	if err != nil {
		return nil, fmt.Errorf("constrain: %w", err)
	}
	if len(rest) < len(list) {
		return optional{texts}, nil
	}
	return texts, nil
}

// optional is the texts of a machine, if it has any, and the empty one.
type optional struct{ texts *PathTexts }

// Step implements [PathMachine].
func (o optional) Step(state int, b byte) (int, bool) {
	if o.texts == nil {
		return 0, false
	}
	return o.texts.Step(state, b)
}

// Final implements [PathMachine]. No text leads back to the start.
func (o optional) Final(state int) bool {
	return state == PathStart || o.texts != nil && o.texts.Final(state)
}

// Held returns the memory of the texts in bytes.
func (o optional) Held() int {
	if o.texts == nil {
		return 0
	}
	return o.texts.Held()
}

// Bytes returns what may follow a state.
func (o optional) Bytes(state int) []byte {
	if o.texts == nil {
		return nil
	}
	return o.texts.Bytes(state)
}
