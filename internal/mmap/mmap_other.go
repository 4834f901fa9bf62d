//go:build !unix

package mmap

import (
	"fmt"
	"io"
	"os"
	"time"
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

func stampOf(f *os.File) (stamp string, changed time.Time, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", changed, err
	}
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano()), info.ModTime(), nil
}
