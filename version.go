package grove

import (
	"runtime/debug"

	"grove/compute"
	"grove/internal/kernel"
)

// Build describes the code that runs.
type Build struct {
	Version  string // of this module; "(devel)" where it was not built as a released version
	Revision string // of the source, "" where it is not known; "+dirty" follows where it was changed
	Numerics string // outputs are bit-equal between builds that share it
	Kernels  string // the kernels in use: an instruction set, or "portable"
}

// Version returns what is known of this build.
func Version() Build {
	b := Build{Version: "(devel)", Numerics: compute.NumericsVersion, Kernels: kernel.Implementation()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	const path = "grove"
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path && m.Version != "" {
			b.Version = m.Version
		}
	}
	if info.Main.Path == path {
		b.Revision = revision(info.Settings)
	}
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
