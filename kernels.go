package grove

import (
	"grove/internal/kernel"
	"grove/internal/resident"
)

// checked are the checks of this process.
var checked resident.Kernels

// Kernels returns the implementations of the kernels that this machine can run, the fastest first. Their bits are equal.
func Kernels() []string { return kernel.Implementations() }

// UseKernels makes an implementation that [Kernels] lists run instead of the fastest. It is called before a model is
// opened. An unknown name is an error, and so is an implementation that differs from the portable one on this machine.
func UseKernels(name string) error { return checked.Use(name) }

// A KernelCheck is the comparison of an implementation of the kernels with the portable one, bit for bit, on this machine.
type KernelCheck = resident.KernelCheck
