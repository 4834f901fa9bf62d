//go:build !unix

package mmap

import (
	"io"
	"os"
)

// Without a mapping the whole file is read: it costs its size in memory, and cannot fault.

func load(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, err
}

func unload([]byte) error { return nil }

func release([]byte) {}

// sizeOf says that the size does not matter any more: all has been read.
func sizeOf(*os.File) (size int64, ok bool) { return 0, false }
