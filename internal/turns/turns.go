// Package turns lets the owners of requests take turns, where more requests wait than can be served. A request's context says whose it is.
package turns

import (
	"cmp"
	"context"
	"slices"
)

type key struct{}

// With returns a context whose requests are those of an owner, such as the key of a server's client. Requests without an owner are those of one owner, "".
func With(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, key{}, owner)
}

// Of returns the owner that With has set; "": none.
func Of(ctx context.Context) string {
	owner, _ := ctx.Value(key{}).(string)
	return owner
}

// Order orders what waits, by its levels and, within a level, by turns. The zero value is ready; it keeps room between calls, and is for one goroutine.
type Order struct {
	owners  []owner
	waiting []turn
	turns   int // so far
}

// owner has requests.
type owner struct {
	name   string
	served int  // of its requests
	last   int  // the number of its last turn; 0: it has had none
	here   bool // one of its requests waits or is served
}

// turn is a request that waits.
type turn struct {
	owner       string
	level       int
	index, turn int // its place in the list, and how many of its owner are served before it
}

// Begin forgets who waits and who is served, and the last turns of owners that did neither since the call before.
func (o *Order) Begin() {
	o.owners = slices.DeleteFunc(o.owners, func(w owner) bool { return !w.here })
	for i := range o.owners {
		o.owners[i].served, o.owners[i].here = 0, false
	}
	o.waiting = o.waiting[:0]
}

// Serves tells that a request of an owner is served.
func (o *Order) Serves(owner string) { o.find(owner).served++ }

// Took tells that a request of an owner is served from now on: the owner has had its turn.
func (o *Order) Took(owner string) {
	o.turns++
	o.find(owner).last = o.turns
}

// Waits tells that a request waits: the index is its place in the caller's list, in whose order the requests of one level are told, the higher levels first.
func (o *Order) Waits(owner string, level, index int) {
	o.waiting = append(o.waiting, turn{owner: owner, level: level, index: index})
}

// Sorted calls each with the indices of those that wait, in their order: the highest level first; within a level that whose owner has the fewest requests that are
// served or come before it; of these that whose owner's last turn is the longest ago; and of such the one that was told first.
func (o *Order) Sorted(each func(index int)) {
	for i := range o.waiting {
		w := &o.waiting[i]
		if i > 0 && o.waiting[i-1].level != w.level { // each level by itself
			for j := range o.waiting[:i] {
				if p := &o.waiting[j]; p.level == o.waiting[i-1].level {
					o.find(p.owner).served--
				}
			}
		}
		at := o.find(w.owner)
		w.turn = at.served
		at.served++
	}
	slices.SortStableFunc(o.waiting, func(a, b turn) int {
		return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.turn, b.turn), cmp.Compare(o.find(a.owner).last, o.find(b.owner).last))
	})
	for _, w := range o.waiting {
		each(w.index)
	}
}

// find returns an owner, valid until the next one is new.
func (o *Order) find(name string) *owner {
	i := slices.IndexFunc(o.owners, func(w owner) bool { return w.name == name })
	if i < 0 {
		i, o.owners = len(o.owners), append(o.owners, owner{name: name})
	}
	o.owners[i].here = true
	return &o.owners[i]
}
