//go:build unix

package fileio

import "syscall"

// noWait opens a named pipe without waiting for its writer, if one took the name of a regular file just now.
const noWait = syscall.O_NONBLOCK
