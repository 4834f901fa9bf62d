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
