// Package kernel holds the hot loops: matrix products over every weight type, vector operations,
// attention and sampling. Each loop exists once in portable Go, which is its specification, and
// may exist again in assembly, which equals it bit for bit (N7). Kernels know slices, not tensors;
// they check lengths in Go, panic on a caller's mistake, and never allocate.
package kernel

// An impl is a set of kernels for one instruction set. The dispatchers of the set's files read on.
//
// A new instruction set is a dispatch_ARCH.go that defines archImpls, and one file beside each
// loop it speeds up; the constraint of that loop's _noasm.go file then names the set too.
type impl struct {
	name string
	on   *bool
}

const portable = "portable"

// impls are the implementations this machine can run, fastest first; portable Go is the last.
var impls = append(archImpls(), impl{portable, new(bool)})

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
func Implementation() string {
	for _, m := range impls {
		if *m.on {
			return m.name
		}
	}
	return portable
}

// Use selects an implementation by its name, for the whole process. It exists for tests and
// benchmarks, which run once per implementation; it must not run beside a kernel. Every choice
// gives equal bits. It panics on a name that [Implementations] does not list.
func Use(name string) {
	known := false
	for _, m := range impls {
		known = known || m.name == name
	}
	if !known {
		panic("kernel: this machine has no implementation " + name)
	}
	for _, m := range impls {
		*m.on = m.name == name
	}
}
