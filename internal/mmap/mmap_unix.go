//go:build unix

package mmap

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func load(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func unload(data []byte) error { return unix.Munmap(data) }

func release(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) }

// sizeOf returns the size that an open file has now.
func sizeOf(f *os.File) (size int64, ok bool) {
	if f == nil {
		return 0, false
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, false
	}
	return st.Size, true
}

func stampOf(f *os.File) (stamp string, changed time.Time, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", changed, err
	}
	written, changed := time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())
	stamp = fmt.Sprint(st.Size, " ", written.UnixNano(), " ", changed.UnixNano(), " ", st.Ino)
	if written.After(changed) {
		changed = written
	}
	return stamp, changed, nil
}
