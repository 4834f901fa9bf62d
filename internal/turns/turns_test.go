package turns

import (
	"context"
	"strings"
	"testing"
)

// TestOrder: within a level the owner comes first that has the least, and none comes before its turn because of another level.
func TestOrder(t *testing.T) {
	for _, tt := range []struct{ serves, waits, want string }{
		{"", "", ""},
		{"", "a1 a2 a3", "a1 a2 a3"},
		{"", "a1 a2 a3 b1", "a1 b1 a2 a3"},
		{"a a", "a1 a2 a3 b1 b2", "b1 b2 a1 a2 a3"}, // b2 is b's second, as a1 would be a's third
		{"a a b", "a1 a2 b1 c1", "c1 b1 a1 a2"},
		{"", "a1 b1 a2 b2 c1", "a1 b1 c1 a2 b2"},
		{"a", "a1+ a2+ b1 a3 b2", "a1+ a2+ b1 a3 b2"},
		{"", "a1+ a2+ a3 b1", "a1+ a2+ a3 b1"},
	} {
		var o Order
		for range 2 { // the second time in the room of the first
			o.Begin()
			for _, owner := range strings.Fields(tt.serves) {
				o.Serves(owner)
			}
			list := strings.Fields(tt.waits)
			for i, w := range list {
				o.Waits(w[:1], strings.Count(w, "+"), i)
			}
			var got []string
			o.Sorted(func(i int) { got = append(got, list[i]) })
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%q served, %q wait: %q, want %q", tt.serves, tt.waits, got, tt.want)
			}
		}
	}
}

// TestTook: of one place that owners take in turns, each has as many turns as the others while it waits, and the first of a new owner is the next.
func TestTook(t *testing.T) {
	var o Order
	var got strings.Builder
	waits := map[string]int{"a": 20}
	for i := range 14 {
		if i == 4 {
			waits["b"] = 3
		}
		if i == 6 {
			waits["c"] = 3
		}
		o.Begin()
		var list []string
		for _, owner := range []string{"a", "b", "c"} {
			for range waits[owner] {
				o.Waits(owner, 0, len(list))
				list = append(list, owner)
			}
		}
		first := ""
		o.Sorted(func(i int) {
			if first == "" {
				first = list[i]
			}
		})
		o.Took(first)
		waits[first]--
		got.WriteString(first)
	}
	if got.String() != "aaaabacbacbaca" {
		t.Error(got.String())
	}
}

// TestOwner: a context has the owner that was set last, or none.
func TestOwner(t *testing.T) {
	ctx := context.Background()
	if Of(ctx) != "" || Of(With(With(ctx, "ann"), "bob")) != "bob" {
		t.Error(Of(With(ctx, "ann")))
	}
}
