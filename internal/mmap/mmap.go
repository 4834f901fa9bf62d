// Package mmap maps files into memory for reading.
package mmap

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"grove/internal/fileio"
)

// Map is a file in memory. Its methods may be called from several goroutines, Close after all
// use of the data.
type Map struct {
	path string
	file *os.File // open as long as the map is, to ask for its size
	data []byte
	then os.FileInfo // as it was opened
}

// Open maps the file at path for reading; where the system cannot, it reads the file whole.
// Only regular files can be opened. Errors of the system are [os.PathError] values without a package
// prefix.
func Open(path string) (*Map, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	m, err := mapFile(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

func mapFile(path string, f *os.File) (*Map, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if size != int64(int(size)) {
		return nil, fmt.Errorf("%s: %d bytes do not fit the address space", path, size)
	}
	m := &Map{path: path, file: f, then: info}
	if size > 0 { // a mapping cannot be empty
		if m.data, err = load(f, int(size)); err != nil {
			return nil, &os.PathError{Op: "map", Path: path, Err: err}
		}
		live.Store(m, span{addr(m.data), uintptr(size)})
	}
	return m, nil
}

// Data returns the bytes of the file. They must not be written to, are valid until Close, and
// follow changes that others make to the file. Where the file has shrunk, reading them faults: see
// [Catch].
func (m *Map) Data() []byte { return m.data }

// Check returns a [*FaultError] where the file has become shorter than it was. Reading what is gone
// faults, except for the rest of the last page, which reads as zeros: so who has read in place checks
// afterwards. It allocates nothing.
func (m *Map) Check() error {
	if size, ok := sizeOf(m.file); ok && size < int64(len(m.data)) {
		return &FaultError{Path: m.path, Offset: size}
	}
	return nil
}

// ErrChanged reports a file that was written since it was opened.
var ErrChanged = errors.New("was written since it was opened")

// Unchanged returns an [ErrChanged] where the file itself, not another one of its name, has another size or was written since it was opened: what is read of it now need not be what it
// was. A writer that sets the time back is not seen.
func (m *Map) Unchanged() error {
	if m.file == nil {
		return os.ErrClosed
	}
	now, err := m.file.Stat()
	if err == nil && (now.Size() != m.then.Size() || !now.ModTime().Equal(m.then.ModTime())) {
		err = fmt.Errorf("%s %w", m.path, ErrChanged)
	}
	return err
}

// Stamp returns a text that tells the versions of the file apart: its size, the times of its last changes, and its
// number in the file system, as far as the system has them; and the later of the times. A file that is changed in
// place keeps its stamp only if its times are set back.
func (m *Map) Stamp() (stamp string, changed time.Time, err error) {
	if m.file == nil {
		return "", changed, os.ErrClosed
	}
	return stampOf(m.file)
}

// mapped is the most that Linux maps, at a multiple of it in the file, when a byte is read: a large page of its cache.
const mapped = 2 << 20

// Release tells the system that b, a part of Data, is not needed soon, so that its pages stop counting as this process's
// memory, and with them the pages around b that the system mapped together with them. The bytes stay valid and are read
// from the file again when touched. It is a hint: a slice of other memory is ignored, and errors are too.
func (m *Map) Release(b []byte) {
	s := span{addr(m.data), uintptr(len(m.data))}
	if at, ok := s.find(addr(b)); ok && len(b) > 0 && len(b) <= len(m.data)-at {
		from := at / mapped * mapped
		to := min(len(m.data), (at+len(b)+mapped-1)/mapped*mapped)
		release(m.data[from:to])
	}
}

// Close unmaps the file; its data must not be touched any more. A second call does nothing.
func (m *Map) Close() error {
	if m.file != nil {
		m.file.Close()
		m.file = nil
	}
	data := m.data
	if data == nil {
		return nil
	}
	live.Delete(m)
	m.data = nil
	if err := unload(data); err != nil {
		return &os.PathError{Op: "unmap", Path: m.path, Err: err}
	}
	return nil
}

// span is where a mapping lies in memory.
type span struct{ start, size uintptr }

// find returns the offset of an address in the span.
func (s span) find(p uintptr) (int, bool) {
	return int(p - s.start), p >= s.start && p-s.start < s.size
}

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// live holds the span of every open, non-empty *Map, for [Catch] to tell their faults from others.
var live sync.Map

// FaultError says that a byte of a mapped file could not be read, which means that the file
// has shrunk since it was opened or that its disk failed.
type FaultError struct {
	Path   string
	Offset int64 // of the byte, or of its page where the system tells no more
}

// Error returns the fault on one line, with the file and the offset.
func (e *FaultError) Error() string {
	return fmt.Sprintf("mmap: %s shrank while mapped, or cannot be read, at byte %d", e.Path, e.Offset)
}

// Catch runs fn and returns its error, or a [*FaultError] where fn read a byte of an open Map that
// the file no longer has; without Catch such a read ends the process. It covers the calling goroutine
// only, so every goroutine that reads mapped data needs its own. Any other panic passes through.
func Catch(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface {
			error
			RuntimeError()
			Addr() uintptr
		}); ok {
			if e := lookup(fault.Addr()); e != nil {
				err = e
				return
			}
		}
		panic(r)
	}()
	return fn()
}

// lookup returns the fault of an address inside an open Map, or nil.
func lookup(p uintptr) (e *FaultError) {
	live.Range(func(m, s any) bool {
		if at, ok := s.(span).find(p); ok {
			e = &FaultError{Path: m.(*Map).path, Offset: int64(at)}
		}
		return e == nil
	})
	return e
}
