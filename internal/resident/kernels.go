package resident

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

// A KernelCheck is the comparison of an implementation of the kernels with the portable one, bit for bit, on this machine.
type KernelCheck struct {
	Name    string
	Differs string // the first kernel that differs, such as "Q4_K with 8 rows"; "": none does
	Took    time.Duration
}

// Kernels chooses the implementation of the kernels that a process runs. It is safe for concurrent use; the zero value has chosen none.
type Kernels struct {
	mu     sync.Mutex
	chosen bool // the implementation in use has been checked
	named  bool // it was named by [Kernels.Use]
	all    []KernelCheck
}

// Use makes an implementation run instead of the fastest. An unknown name is an error, and so is an implementation that differs from the portable one on
// this machine.
func (c *Kernels) Use(name string) error {
	known := kernel.Implementations()
	if !slices.Contains(known, name) {
		return fmt.Errorf("grove: kernels %q are not known; this machine can run %s", name, strings.Join(known, ", "))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kernel := c.differs(name); kernel != "" {
		return fmt.Errorf("grove: kernels %q differ from portable on this machine, first in %s; use others of %s", name, kernel, strings.Join(known, ", "))
	}
	kernel.Use(name)
	c.chosen, c.named = true, true
	return nil
}

// Checked returns the comparisons so far, and whether the implementation in use was named.
func (c *Kernels) Checked() (all []KernelCheck, named bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all), c.named
}

// Forget lets a test choose as a new process does.
func (c *Kernels) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen, c.named, c.all = false, false, nil
}

// Choose makes the fastest implementation run that does not differ, of that in use and the slower ones, when it is called first.
// It tells log, or the default logger, of those that do.
func (c *Kernels) Choose(log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
func (c *Kernels) differs(name string) string {
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
