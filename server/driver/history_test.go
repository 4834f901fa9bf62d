package driver_test

import (
	"fmt"
	"testing"

	"grove/server/driver"
)

// TestHistory: values belong to their owners, and the oldest go first beyond either bound.
func TestHistory(t *testing.T) {
	var h driver.History
	h.Put("ann", "1", "a", 10)
	if _, found := h.Get("bob", "1"); found || h.Drop("bob", "1") {
		t.Error("a value of somebody else is found")
	}
	if v, found := h.Get("ann", "1"); !found || v != "a" {
		t.Errorf("%v, %v", v, found)
	}
	if !h.Drop("ann", "1") || h.Drop("ann", "1") {
		t.Error("a value is not dropped once")
	}
	for i := range driver.HistoryEntries + 2 {
		h.Put("", fmt.Sprint(i), i, 1)
	}
	for i, want := range map[int]bool{0: false, 1: false, 2: true, driver.HistoryEntries + 1: true} {
		if _, found := h.Get("", fmt.Sprint(i)); found != want {
			t.Errorf("value %d is there: %v", i, found)
		}
	}
	h.Put("", "large", 0, driver.HistoryBytes-10)
	h.Put("", "larger", 0, driver.HistoryBytes-5)
	h.Put("", "too large", 0, driver.HistoryBytes+1)
	for id, want := range map[string]bool{"large": false, "larger": true, "too large": false, "5": false} {
		if _, found := h.Get("", id); found != want {
			t.Errorf("%q is there: %v", id, found)
		}
	}
}

// TestHistoryShares: an owner who keeps many values, or large ones, pushes out its own and none of another who has less.
func TestHistoryShares(t *testing.T) {
	for name, c := range map[string]struct{ n, bytes int }{"many": {3 * driver.HistoryEntries, 1}, "large": {20, driver.HistoryBytes / 3}} {
		var h driver.History
		for i := range 5 {
			h.Put("ann", fmt.Sprint(i), i, driver.HistoryBytes/100)
		}
		for i := range c.n {
			h.Put("bob", fmt.Sprint(i), i, c.bytes)
		}
		for i := range 5 {
			if _, found := h.Get("ann", fmt.Sprint(i)); !found {
				t.Errorf("%s: value %d of an owner of 5 was pushed out", name, i)
			}
		}
		if _, found := h.Get("bob", fmt.Sprint(c.n-1)); !found {
			t.Errorf("%s: the last value is not there", name)
		}
	}
	// Shares are even where two have more than there is room for.
	var h driver.History
	count := map[string]int{}
	for i := range driver.HistoryEntries {
		h.Put("ann", fmt.Sprint(i), i, 1)
	}
	for i := range driver.HistoryEntries {
		h.Put("bob", fmt.Sprint(i), i, 1)
	}
	for i := range driver.HistoryEntries {
		for _, owner := range []string{"ann", "bob"} {
			if _, found := h.Get(owner, fmt.Sprint(i)); found {
				count[owner]++
			}
		}
	}
	if want := driver.HistoryEntries / 2; count["ann"] != want || count["bob"] != want {
		t.Errorf("%v, want %d of each", count, want)
	}
}
