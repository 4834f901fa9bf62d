package main

import (
	"fmt"
	"runtime"
	"strings"

	"grove"
	"grove/gopher"
	"grove/internal/kernel"
)

// versionCommand tells one build from another.
type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run() error {
	b := grove.Version()
	if b.Revision == "" {
		b.Revision = "unknown"
	}
	_, err := fmt.Fprintf(stdout, "grove %s\nrevision %s\nnumerics %s\nkernels  %s, of %s\nmodel    %s\n%s %s/%s\n",
		b.Version, b.Revision, b.Numerics, b.Kernels, strings.Join(kernel.Implementations(), ", "), gopher.Name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
