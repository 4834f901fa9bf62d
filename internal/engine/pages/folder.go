package pages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"grove/internal/fileio"
)

const (
	// scanTime is how long the bytes of the folder are believed, which other servers change.
	scanTime = time.Minute
	// touchTime is how old the time of a file's last use may be that is in use.
	touchTime = time.Minute
	// leftTime is the age of a temporary file that a writer which was killed has left.
	leftTime = time.Hour
)

// folder is a folder of files of pages, DIR/ab/abcd..., by the first digits of their names. The time of a file's last change says when it
// was used last: those of later pages of a text are older, so that they go first. All methods but stat, touch and remove are for one goroutine.
type folder struct {
	dir     string
	most    int64 // bytes; 0: any number
	bytes   int64 // as far as known
	scanned time.Time
}

// path returns the path of the file of a name.
func (f *folder) path(name [sha256.Size]byte) string {
	digits := hex.EncodeToString(name[:])
	return filepath.Join(f.dir, digits[:2], digits)
}

// stat returns the time at which a file of a page was used last; false: it is not there. Errors: an [errDamaged] for another size; what
// is no regular file; the file system's.
func (f *folder) stat(path string, size int64) (used time.Time, ok bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case absent(err):
		return used, false, nil
	case err != nil:
		return used, false, err
	case !info.Mode().IsRegular():
		return used, false, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is no regular file")}
	case info.Size() != size:
		return used, false, fmt.Errorf("%s: it has %d bytes and should have %d: %w", path, info.Size(), size, errDamaged)
	}
	return info.ModTime(), true, nil
}

// absent reports whether an error says that a file is not there: on a network file system, that another machine has removed it.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESTALE) }

// touch notes that the file of a page of a text is used, where it was last used some time ago. It is a hint: errors are left.
func (f *folder) touch(path string, index int, used time.Time) {
	if now := time.Now(); now.Sub(used) > touchTime {
		f.stamp(path, index, now)
	}
}

// stamp sets the time of use of the page at an index.
func (f *folder) stamp(path string, index int, now time.Time) {
	at := now.Add(-time.Duration(index) * time.Millisecond)
	_ = os.Chtimes(path, at, at)
}

// remove removes a file; where that fails it stays.
func (f *folder) remove(path string) { _ = os.Remove(path) }

// file is a file of the folder.
type file struct {
	path string
	size int64
	used time.Time
}

// scan lists the files of pages, whose bytes it counts, and removes what killed writers have left.
func (f *folder) scan() (all []file) {
	f.bytes, f.scanned = 0, time.Now()
	for i := range 256 {
		sub := filepath.Join(f.dir, fmt.Sprintf("%02x", i))
		entries, err := os.ReadDir(sub)
		if err != nil {
			continue // most often it is not there yet
		}
		fileio.Sweep(sub, leftTime)
		for _, e := range entries {
			if _, err := hex.DecodeString(e.Name()); err != nil || len(e.Name()) != 64 || !e.Type().IsRegular() {
				continue
			}
			if info, err := e.Info(); err == nil {
				all = append(all, file{filepath.Join(sub, e.Name()), info.Size(), info.ModTime()})
				f.bytes += info.Size()
			}
		}
	}
	return all
}

// room makes room for a file of n bytes: where there is none, the files that were used longest ago are removed, until a tenth of the bound is free.
// It returns how many were removed.
func (f *folder) room(n int64) (removed int) {
	if f.most == 0 || time.Since(f.scanned) < scanTime && f.bytes+n <= f.most {
		return 0
	}
	all := f.scan()
	if f.bytes+n <= f.most {
		return 0
	}
	return f.discard(all, f.part()-n)
}

// shrink removes a tenth of the bytes of all files, for a disk that is full: those that were used longest ago. It returns how many were removed.
func (f *folder) shrink() (removed int) {
	all := f.scan()
	return f.discard(all, f.bytes-f.bytes/10-1)
}

// discard removes the files that were used longest ago until those that are left have so many bytes at most. It returns how many were removed.
func (f *folder) discard(all []file, most int64) (removed int) {
	slices.SortFunc(all, func(a, b file) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	for _, file := range all {
		if f.bytes <= most {
			break
		}
		if err := os.Remove(file.path); err == nil || absent(err) {
			f.bytes -= file.size
			removed++
		}
	}
	return removed
}

// part returns the most bytes that one text may have, and all of them once files were removed.
func (f *folder) part() int64 { return f.most - f.most/10 }
