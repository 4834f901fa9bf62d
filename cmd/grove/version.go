package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"grove"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
)

// versionCommand describes the build.
type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run() error {
	b := grove.Version()
	out := tabwriter.NewWriter(terminal.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "grove %s\nrevision %s\nnumerics %s\nkernels  %s, of %s\n",
		b.Version, cmp.Or(b.Revision, "unknown"), b.Numerics, b.Kernels, strings.Join(grove.Kernels(), ", "))
	for _, name := range grove.Kernels() {
		fmt.Fprintf(out, "  %s\t%s\n", name, about(b, name))
	}
	fmt.Fprintf(out, "model    %s\n%s %s/%s\n", gopher.Name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return out.Flush()
}

// about says why an implementation of the kernels runs or does not.
func about(b grove.Build, name string) string {
	took := ""
	if i := slices.IndexFunc(b.Checks, func(c grove.KernelCheck) bool { return c.Name == name }); i >= 0 {
		if differs := b.Checks[i].Differs; differs != "" {
			return "not used: differs from portable in " + differs
		}
		took = fmt.Sprintf("; checked in %v", b.Checks[i].Took.Round(10*time.Microsecond))
	}
	known := grove.Kernels()
	switch at, used := slices.Index(known, name), slices.Index(known, b.Kernels); {
	case at == used && b.Named:
		return "used: named by GROVE_KERNELS" + took
	case at == used:
		return "used: the fastest that this machine runs correctly" + took
	case at > used:
		return "not used: slower"
	}
	return "not used: GROVE_KERNELS names another"
}
