package main

import (
	"fmt"
	"runtime"
	"strings"

	"grove"
	"grove/cmd/grove/internal/terminal"
	"grove/gopher"
)

// versionCommand describes the build.
type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run() error {
	b := grove.Version()
	if b.Revision == "" {
		b.Revision = "unknown"
	}
	_, err := fmt.Fprintf(terminal.Stdout, "grove %s\nrevision %s\nnumerics %s\nkernels  %s, of %s\nmodel    %s\n%s %s/%s\n",
		b.Version, b.Revision, b.Numerics, b.Kernels, strings.Join(grove.Kernels(), ", "), gopher.Name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
