//go:build !purego

package kernel

import "golang.org/x/sys/unix"

// allowMatrices asks the system for the registers of AMX, which every process has to, and reports whether it may use them.
// They hold nothing between two calls of a kernel, so that no switch of threads saves them.
func allowMatrices() bool {
	const (
		request = 0x1023 // ARCH_REQ_XCOMP_PERM
		data    = 18     // XFEATURE_XTILEDATA
	)
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, request, data, 0)
	return errno == 0
}
