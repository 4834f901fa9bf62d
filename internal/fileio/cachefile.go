// cachefile.go keeps what can be made again in the user's cache directory.

package fileio

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// CachePath names a file in the user's cache directory by its kind and by what its content depends on, of which the
// first is a model's identity.
func CachePath(kind string, identity any, rest ...any) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache: no cache directory: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%x\n", identity)
	for _, v := range rest {
		fmt.Fprintf(h, "%v\n", v)
	}
	return filepath.Join(dir, "grove", fmt.Sprintf("%s-%x.json", kind, h.Sum(nil)[:12])), nil
}

// CheckCache returns an error where [WriteCache] could not write a file of the cache. It makes its directory.
func CheckCache(path string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = Check(path)
	}
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// WriteCache writes a file of the cache; readers find the old one or all of the new.
func WriteCache(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	err := WriteAtomic(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// ReadCache returns a file of the cache, nil where there is none, it is larger than limit, or it is no regular file.
func ReadCache(path string, limit int) []byte {
	text, err := ReadRegular(path, limit)
	if err != nil {
		return nil
	}
	return text
}

// RunApart runs the tests of a package with a home and a cache directory of their own, so that they neither read what the user's programs
// have measured and learned nor leave anything there. It returns the exit code of the tests, for TestMain.
func RunApart(tests interface{ Run() int }) (code int) {
	dir, err := os.MkdirTemp("", "grove-test")
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME", "LocalAppData"} {
		if err == nil {
			err = os.Setenv(name, dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	return tests.Run()
}
