// Package atomicfile writes files that readers find whole or not at all.
package atomicfile

import (
	"io"
	"os"
	"path/filepath"
)

// Write writes a file with what fill writes, under a temporary name beside path that is synced and then
// renamed: path holds what it held before, or all of the new file. On error nothing new is left. Errors
// are fill's own or the system's, without a package prefix.
func Write(path string, fill func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	for _, step := range []func() error{
		func() error { return fill(tmp) },
		func() error { return tmp.Chmod(0o644) },
		tmp.Sync,
		tmp.Close,
		func() error { return os.Rename(tmp.Name(), path) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
