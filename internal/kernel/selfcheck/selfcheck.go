// Package selfcheck compares, on the machine that runs, an implementation of the kernels with the portable one, bit for
// bit: a CPU, or a hypervisor's idea of it, is not trusted to compute as the machines of the tests did.
package selfcheck

import (
	"fmt"
	"math"

	"grove/internal/kernel"
)

const portable = "portable"

// A check is one kernel that is run with several numbers of rows.
type check struct {
	name string
	of   string // what sizes count, such as rows; "": nothing, and there is one size

	// sizes are ascending. The values of a smaller size begin those of a larger one, so that the portable kernel, by far
	// the slowest, runs with the largest alone.
	sizes []int

	// prepare returns a run: it appends the kernel's results for n rows to dst.
	prepare func(d *data) run
}

type run func(n int, dst []float32) []float32

// Differs returns the first kernel of an implementation whose bits are not those of the portable one, such as
// "Q4_K with 8 rows"; "": there is none. Two NaN count as equal. Afterwards the implementation in use is the one
// before. No kernel may run meanwhile. The name is one of [kernel.Implementations].
func Differs(name string) string {
	if name == portable {
		return "" // the specification
	}
	return differs(name, checks())
}

func differs(name string, checks []check) string {
	defer kernel.Use(kernel.Implementation())
	d := newData()
	var want, got []float32
	for _, c := range checks {
		run := c.prepare(d)
		kernel.Use(portable)
		want = run(c.sizes[len(c.sizes)-1], want[:0])
		kernel.Use(name)
		for _, n := range c.sizes {
			if got = run(n, got[:0]); !begins(want, got) {
				return c.label(n)
			}
		}
	}
	return ""
}

// label names the check with n rows.
func (c check) label(n int) string {
	switch {
	case c.of == "":
		return c.name
	case n == 1:
		return fmt.Sprintf("%s with 1 %s", c.name, c.of)
	case c.of == "query":
		return fmt.Sprintf("%s with %d queries", c.name, n)
	}
	return fmt.Sprintf("%s with %d %ss", c.name, n, c.of)
}

// begins reports whether the bits of want begin with those of got.
func begins(want, got []float32) bool {
	if len(got) == 0 || len(got) > len(want) {
		return false
	}
	for i, g := range got {
		if w := want[i]; math.Float32bits(w) != math.Float32bits(g) && (w == w || g == g) {
			return false
		}
	}
	return true
}
