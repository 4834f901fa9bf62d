// regular.go opens files that a program reads by itself, which must be regular: opening a named pipe without a
// writer would wait for ever, and a device has no end.

package fileio

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// OpenRegular opens a regular file for reading. It never waits for another process. A named pipe, a device, a socket or a
// directory is refused by its kind. Errors are [fs.PathError] values without a package prefix.
func OpenRegular(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil { // before it is opened: opening a pipe or a device can have effects
		if err := check(path, info); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = check(path, info) // another file may have taken the name since
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadRegular returns the content of a regular file of at most limit bytes. Errors are those of [OpenRegular], and an [fs.PathError]
// for a longer file.
func ReadRegular(path string, limit int) ([]byte, error) { return read(OpenRegular, path, limit) }

// ReadText returns at most limit bytes of a file that a user names for its text. It may be a pipe or a device, such as
// those of shells for the output of commands, and is waited for. Errors are those of [os.Open] and [ReadRegular].
func ReadText(path string, limit int) ([]byte, error) { return read(os.Open, path, limit) }

func read(open func(string) (*os.File, error), path string, limit int) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > limit:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("the file has more than %d bytes", limit)}
	}
	return b, nil
}

// check refuses all but regular files.
func check(path string, info fs.FileInfo) error {
	kind := "a special file"
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		kind = "a directory"
	case m&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s; a regular file is needed", kind)}
}
