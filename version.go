package grove

import (
	"cmp"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"grove/compute"
	"grove/internal/kernel"
)

// Build describes the code that runs.
type Build struct {
	Version  string // of this module; "(devel)" where it was not built as a released version
	Revision string // of the source, "" where it is not known; "+dirty" follows where it was changed
	Numerics string // outputs are bit-equal between builds that share it
	Kernels  string // the implementation of the kernels in use: an instruction set, or "portable"
}

// The linker sets these in the programs of a release: the version, and the commit of the source.
var release, commit string

// Version returns what is known of this build.
func Version() Build {
	b := Build{Version: "(devel)", Numerics: compute.NumericsVersion, Kernels: kernel.Implementation()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	path := reflect.TypeFor[Build]().PkgPath() // this module's: the package is at its root
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path && m.Version != "" {
			b.Version = m.Version
		}
	}
	if info.Main.Path == path {
		b.Revision = revision(info.Settings)
	}
	b.Version, b.Revision = cmp.Or(release, b.Version), cmp.Or(commit, b.Revision)
	return b
}

// Kernels returns the implementations of the kernels that this machine can run, the fastest first. Their bits are equal.
func Kernels() []string { return kernel.Implementations() }

// UseKernels makes an implementation that [Kernels] lists run instead of the fastest. It is called before a model is
// opened. An unknown name is an error.
func UseKernels(name string) error {
	known := kernel.Implementations()
	if !slices.Contains(known, name) {
		return fmt.Errorf("grove: kernels %q are not known; this machine can run %s", name, strings.Join(known, ", "))
	}
	kernel.Use(name)
	return nil
}

func revision(settings []debug.BuildSetting) (rev string) {
	dirty := ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}
