// Package kernel holds the hot loops: vector operations, attention, sampling, and in its package matmul the
// products over every weight type. Each loop exists once in portable Go, which is its specification, and
// may exist again in assembly, which equals it bit for bit (N7). Kernels know slices, not tensors;
// they check lengths in Go, panic on a caller's mistake, and never allocate.
package kernel

import "slices"

// An impl is a set of kernels: those that its flags turn on, which dispatchers read, and portable Go for
// the rest.
//
// A new instruction set is a dispatch_ARCH.go that defines archImpls, and one file beside each
// loop it speeds up; the constraint of that loop's _noasm.go file then names the set too.
type impl struct {
	name string
	on   []*bool
}

const portable = "portable"

// impls are the implementations this machine can run, fastest first; portable Go is the last.
var impls = append(archImpls(), impl{name: portable})

// inUse is the name of the implementation in use.
var inUse string

func init() { Use(impls[0].name) }

// Implementations returns the names of the implementations this machine can run, fastest first.
// The last is always "portable".
func Implementations() []string {
	names := make([]string, len(impls))
	for i, m := range impls {
		names[i] = m.name
	}
	return names
}

// Implementation returns the name of the implementation in use: the fastest unless [Use] chose.
func Implementation() string { return inUse }

// Use selects an implementation by its name, for the whole process. It must not run beside a kernel.
// Every choice gives equal bits. It panics on a name that [Implementations] does not list.
func Use(name string) {
	i := slices.Index(Implementations(), name)
	if i < 0 {
		panic("kernel: this machine has no implementation " + name)
	}
	for _, m := range impls {
		for _, on := range m.on {
			*on = false
		}
	}
	for _, on := range impls[i].on {
		*on = true
	}
	inUse = name
}
