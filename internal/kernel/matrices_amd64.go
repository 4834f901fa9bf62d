//go:build !linux && !purego

package kernel

// allowMatrices reports whether the process may use the registers of AMX. Only Linux is asked.
func allowMatrices() bool { return false }
