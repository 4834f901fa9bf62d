package grove

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"grove/internal/kernel"
	"grove/internal/kernel/selfcheck"
)

// Kernels returns the implementations of the kernels that this machine can run, the fastest first. Their bits are equal.
func Kernels() []string { return kernel.Implementations() }

// UseKernels makes an implementation that [Kernels] lists run instead of the fastest. It is called before a model is
// opened. An unknown name is an error, and so is an implementation that differs from the portable one on this machine.
func UseKernels(name string) error {
	known := kernel.Implementations()
	if !slices.Contains(known, name) {
		return fmt.Errorf("grove: kernels %q are not known; this machine can run %s", name, strings.Join(known, ", "))
	}
	checked.Lock()
	defer checked.Unlock()
	if kernel := checked.differs(name); kernel != "" {
		return fmt.Errorf("grove: kernels %q differ from portable on this machine, first in %s; use others of %s", name, kernel, strings.Join(known, ", "))
	}
	kernel.Use(name)
	checked.chosen, checked.named = true, true
	return nil
}

// A KernelCheck is the comparison of an implementation of the kernels with the portable one, bit for bit, on this machine.
type KernelCheck struct {
	Name    string
	Differs string // the first kernel that differs, such as "Q4_K with 8 rows"; "": none does
	Took    time.Duration
}

// checked are the checks of this process.
var checked kernelChecks

type kernelChecks struct {
	sync.Mutex
	chosen bool // the implementation in use has been checked
	named  bool // it was named by [UseKernels]
	all    []KernelCheck
}

// choose makes the fastest implementation run that does not differ, of that in use and the slower ones, when it is called first.
// It tells log, or the default logger, of those that do.
func (c *kernelChecks) choose(log *slog.Logger) {
	c.Lock()
	defer c.Unlock()
	if c.chosen {
		return
	}
	c.chosen = true
	known := kernel.Implementations()
	for _, name := range known[slices.Index(known, kernel.Implementation()):] {
		kernel.Use(name)
		if c.differs(name) == "" {
			break
		}
	}
	for _, check := range c.all {
		if check.Differs != "" {
			cmp.Or(log, slog.Default()).Warn("grove: kernels are not used, for they differ from portable",
				"kernels", check.Name, "first", check.Differs, "used", kernel.Implementation())
		}
	}
}

// differs returns the first kernel of an implementation that differs from the portable one; "": none.
func (c *kernelChecks) differs(name string) string {
	if name == "portable" {
		return ""
	}
	i := slices.IndexFunc(c.all, func(k KernelCheck) bool { return k.Name == name })
	if i < 0 {
		start := time.Now()
		differs := selfcheck.Differs(name)
		i, c.all = len(c.all), append(c.all, KernelCheck{name, differs, time.Since(start)})
	}
	return c.all[i].Differs
}
