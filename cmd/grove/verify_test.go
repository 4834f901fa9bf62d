package main

import (
	"strings"
	"testing"

	"grove/bench"
)

func TestVerdict(t *testing.T) {
	check := func(method string, ok bool) bench.Check { return bench.Check{Method: method, OK: ok} }
	for _, c := range []struct {
		checks []bench.Check
		want   string
	}{
		{nil, "no method was tested: the needs of none are met\n"},
		{[]bench.Check{check("sam", true), check("sam", true)}, "sam keeps the promise of its grade, in 2 tests\n"},
		{[]bench.Check{check("sam", true), check("auto", true)}, "all 2 methods keep the promise of their grade, in 2 tests\n"},
		{[]bench.Check{check("sam", false), check("auto", true), check("sam", false), check("kseq", false)}, "2 of 3 methods break the promise of their grade: sam, kseq\n"},
	} {
		var v verdict
		for _, k := range c.checks {
			v.add(k)
		}
		var b strings.Builder
		if err := v.write(&b); err != nil || b.String() != c.want {
			t.Errorf("%v: got %q, %v, want %q", c.checks, b.String(), err, c.want)
		}
	}
}
