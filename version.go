package grove

import (
	"cmp"
	"reflect"
	"runtime/debug"

	"grove/internal/compute"
	"grove/internal/kernel"
)

// Build describes the code that runs.
type Build struct {
	Version  string // of this module; "(devel)" where it was not built as a released version
	Revision string // of the source, "" where it is not known; "+dirty" follows where it was changed
	Numerics string // outputs are bit-equal between builds that share it
	Kernels  string // the implementation of the kernels in use: an instruction set, or "portable"
	Named    bool   // [UseKernels] chose it; else it is the fastest that equals the portable one

	// Checks are the comparisons so far of implementations with the portable one. One that differs is never used.
	Checks []KernelCheck
}

// The linker sets these in the programs of a release: the version, and the commit of the source.
var release, commit string

// Numerics is the numerics version: outputs are bit-equal between builds that share it.
const Numerics = compute.NumericsVersion

// Version returns what is known of this build. It chooses the kernels, as [Open] does.
func Version() Build {
	checked.Choose(nil)
	checks, named := checked.Checked()
	b := Build{Version: "(devel)", Numerics: Numerics, Kernels: kernel.Implementation(), Named: named, Checks: checks}
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
