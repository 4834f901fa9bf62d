//go:build unix

package terminal

import "golang.org/x/sys/unix"

// silence ends the echo of keys. What is typed waits for the next line.
func silence(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, getMode)
	if err != nil {
		return err
	}
	mode.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setMode, mode)
}
