//go:build unix

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

func load(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func unload(data []byte) error { return unix.Munmap(data) }

func release(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) }
