package flags

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Places is a list of numbers and ranges, such as 0,4..7,-1: of layers, of tokens. Behind a minus, it counts from the end; first and last are names of
// 0 and -1.
type Places [][2]int

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Places) UnmarshalText(text []byte) error {
	*p = nil
	for one := range strings.SplitSeq(string(text), ",") {
		from, to, isRange := strings.Cut(one, "..")
		if !isRange {
			to = from
		}
		var ends [2]int
		for i, end := range []string{from, to} {
			n, err := strconv.Atoi(strings.NewReplacer("first", "0", "last", "-1").Replace(end))
			if err != nil {
				return fmt.Errorf("%.80q is no number and no range such as 4..7", one)
			}
			ends[i] = n
		}
		*p = append(*p, ends)
	}
	return nil
}

// Of returns the numbers of n things that the list names; nil for an empty list. A range that ends before it begins is an error, as is one beyond the things. Single
// numbers are not checked.
func (p Places) Of(n int) (all []int, err error) {
	for _, ends := range p {
		from, to := ends[0], ends[1]
		if from == to {
			all = append(all, from)
			continue
		}
		if from < 0 {
			from += n
		}
		if to < 0 {
			to += n
		}
		if from < 0 || to >= n || to < from {
			return nil, fmt.Errorf("%d..%d: of %d, numbers from 0", ends[0], ends[1], n)
		}
		for i := from; i <= to; i++ {
			all = append(all, i)
		}
	}
	return all, nil
}

// States is a list of states of a model's tokens: numbers and ranges of layers, as of [Places], from 0 (the embeddings) to the number of layers; and the word
// final, the state behind the final norm.
type States struct {
	text   string
	places Places
	final  bool
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *States) UnmarshalText(text []byte) error {
	*s = States{text: string(text)}
	words := strings.Split(s.text, ",")
	numbers := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "final" })
	if s.final = len(numbers) < len(words); len(numbers) == 0 {
		return nil
	}
	return s.places.UnmarshalText([]byte(strings.Join(numbers, ",")))
}

// String returns the list as it was given.
func (s *States) String() string { return s.text }

// Of returns the numbers of the list, ascending and each once, of a model with n layers, and whether the final state is among the states.
func (s *States) Of(n int) (layers []int, final bool, err error) {
	if layers, err = s.places.Of(n + 1); err != nil {
		return nil, false, err
	}
	for i, k := range layers {
		if k < 0 {
			layers[i] += n + 1
		}
		if layers[i] < 0 || layers[i] > n {
			return nil, false, fmt.Errorf("%d; the model has states from 0 (the embeddings) to %d (behind its layers)", k, n)
		}
	}
	slices.Sort(layers)
	return slices.Compact(layers), s.final, nil
}
