package chat

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// nine is the length of the ids that some templates want of calls and of results: those of Mistral, whose letters and digits they are
// of.
const nine = 9

const idLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// isNine reports whether an id is as those templates want it.
func isNine(id string) bool { return len(id) == nine && strings.Trim(id, idLetters) == "" }

// ids gives the calls and results of a conversation ids of nine letters and digits. Those that are so already stay; others follow from
// the id of the client, so that they are the same in each turn, and no two become one.
type ids struct {
	any   bool              // ids of the client stay, whatever they are
	given map[string]string // the id of each id of the client
	taken map[string]bool
}

// of returns the id for one of the client's. A call without one has a key of its own.
func (s *ids) of(id string) string {
	if isNine(id) || s.any && id[0] != 0 {
		return id
	}
	if known := s.given[id]; known != "" {
		return known
	}
	short := make([]byte, nine)
	for try := 0; ; try++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(try) + "/" + id))
		for i := range short {
			short[i] = idLetters[int(sum[i])%len(idLetters)]
		}
		if !s.taken[string(short)] {
			break
		}
	}
	s.given[id], s.taken[string(short)] = string(short), true
	return string(short)
}

// open is a call that no result has answered.
type open struct{ id, name string }

// withIDs returns messages whose calls and results have ids: of nine letters and digits, or where any are taken, the client's. A result without an id is that of the first
// call of its name that has none, else of the first call.
func withIDs(messages []Message, any bool) []Message {
	s := &ids{any, map[string]string{}, map[string]bool{}}
	known := map[string]bool{} // of calls
	for _, m := range messages {
		s.taken[m.ToolCallID] = true
		for _, c := range m.ToolCalls {
			s.taken[c.ID], known[c.ID] = true, true
		}
	}
	all := slices.Clone(messages)
	var due []open
	for i, n := 0, 0; i < len(all); i++ {
		m := &all[i]
		switch {
		case isResult(*m):
			m.ToolCallID, due = s.result(*m, known, due, n)
		case len(m.ToolCalls) > 0:
			m.ToolCalls, due = slices.Clone(m.ToolCalls), nil
			for k := range m.ToolCalls {
				c := &m.ToolCalls[k]
				if n++; c.ID == "" {
					c.ID = "\x00" + strconv.Itoa(n)
				}
				c.ID = s.of(c.ID)
				due = append(due, open{c.ID, c.Function.Name})
			}
		}
	}
	return all
}

// result returns the id of a result, and the calls that are without one then.
func (s *ids) result(m Message, known map[string]bool, due []open, calls int) (string, []open) {
	at := -1
	if m.ToolCallID != "" && known[m.ToolCallID] {
		id := s.of(m.ToolCallID)
		at = slices.IndexFunc(due, func(o open) bool { return o.id == id })
		if at < 0 { // of an earlier turn, or told twice
			return id, due
		}
	}
	if at < 0 && m.Name != "" {
		at = slices.IndexFunc(due, func(o open) bool { return o.name == m.Name })
	}
	switch {
	case at < 0 && len(due) > 0:
		at = 0
	case at < 0 && m.ToolCallID != "":
		return s.of(m.ToolCallID), due
	case at < 0:
		return s.of("\x00result" + strconv.Itoa(calls)), due
	}
	return due[at].id, slices.Delete(slices.Clone(due), at, at+1)
}

// idHabit is which ids a template takes.
type idHabit uint8

const (
	idsAny   idHabit = iota // any, and none
	idsSome                 // any, but for none
	idsShort                // nine letters and digits alone
)

// idHabit finds which ids of calls and results a template takes: those with which it shows a call.
func (t *Template) idHabit(f form) idHabit {
	whole := called("tool")
	for _, conversation := range [][]Message{whole, whole[:2]} {
		shows := func(id string) bool {
			conversation := slices.Clone(conversation)
			for i := range conversation {
				if conversation[i].ToolCallID != "" {
					conversation[i].ToolCallID = id
				}
				conversation[i].ToolCalls = slices.Clone(conversation[i].ToolCalls)
				for k := range conversation[i].ToolCalls {
					conversation[i].ToolCalls[k].ID = id
				}
			}
			return t.shows(new(habits).fit(conversation), f, func(shown []bool) bool { return shown[callSource] })
		}
		switch {
		case !shows("abcdefghi"):
		case !shows("call_1") || !shows("toolu_abcdefghi"):
			return idsShort
		case !shows(""):
			return idsSome
		default:
			return idsAny
		}
	}
	return idsAny
}
