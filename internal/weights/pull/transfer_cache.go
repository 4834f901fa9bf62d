package pull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/gofrs/flock"
)

// Cache is a directory of models. Names in it have slashes. Nothing is read or written through a symbolic link that leads out
// of it. It may be used by several goroutines; the caller closes it.
type Cache struct {
	Root *os.Root
	Dir  string
}

// OpenCache opens a cache, which is made if it does not exist.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		return nil, errors.New("there is no home directory for the caches; set HF_HUB_CACHE, LLAMA_CACHE or OLLAMA_MODELS")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Cache{root, dir}, nil
}

// Close closes the cache.
func (c *Cache) Close() error { return c.Root.Close() }

// Path returns the path of a file of the cache.
func (c *Cache) Path(name string) string { return filepath.Join(c.Dir, filepath.FromSlash(name)) }

// TransferRemoved lists the files that were removed from a cache.
type TransferRemoved struct {
	Files []string // names in the cache
	Freed int64    // bytes
}

// Remove removes a file or a link of the cache. One that is gone already does not matter.
func (r *TransferRemoved) Remove(c *Cache, name string) error {
	info, err := c.Root.Lstat(name)
	if err != nil {
		return nil
	}
	if err := c.Root.Remove(name); err != nil {
		return c.fault(err)
	}
	if info.Mode().IsRegular() {
		r.Freed += info.Size()
	}
	r.Files = append(r.Files, name)
	return nil
}

// RemoveAll removes a directory of the cache with all that is in it.
func (r *TransferRemoved) RemoveAll(c *Cache, dir string) error {
	_ = fs.WalkDir(c.Root.FS(), dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			r.Freed += info.Size()
		}
		return nil
	})
	if err := c.Root.RemoveAll(dir); err != nil {
		return c.fault(err)
	}
	r.Files = append(r.Files, dir)
	return nil
}

// fault returns the error of a file of the cache.
func (c *Cache) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.Dir, err)
}

// has reports whether a regular file of the size is in the cache.
func (c *Cache) has(name string, size int64) bool {
	info, err := c.Root.Lstat(name)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// Lock takes a lock that processes share, by a file that stays in the cache. It calls waiting once if another holds the lock, and
// waits until it is free or the context ends. The caller calls the function that it returns.
func (c *Cache) Lock(ctx context.Context, name string, waiting func()) (unlock func(), err error) {
	if err := c.Root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, c.fault(err)
	}
	f, err := c.Root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644) // refuses a link that leads out of the cache
	if err != nil {
		return nil, c.fault(err)
	}
	info, err := f.Stat()
	f.Close()
	if err == nil && !info.Mode().IsRegular() { // a named pipe would be waited for
		err = fmt.Errorf("%s is not a regular file; remove it", name)
	}
	if err != nil {
		return nil, c.fault(err)
	}
	lock := flock.New(c.Path(name))
	got, err := lock.TryLock()
	if err == nil && !got {
		waiting()
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return nil, c.fault(err)
	}
	return func() { _ = lock.Close() }, nil
}

// partial opens the file that a download appends to. A link or a directory of its name is refused.
func (c *Cache) partial(name string) (*os.File, error) {
	if err := c.Root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, c.fault(err)
	}
	if info, err := c.Root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; remove it", c.Path(name))
	}
	f, err := c.Root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	return f, c.fault(err)
}

// Write writes a small file that readers find whole or not at all. Its temporary file lies among the locks, where nobody takes it for
// a manifest.
func (c *Cache) Write(name string, b []byte) error {
	if err := c.Root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return c.fault(err)
	}
	tmp := fmt.Sprintf(".locks/%x%s", rand.Uint64(), Suffix)
	f, err := c.partial(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = c.Root.Rename(tmp, name)
	}
	if err != nil {
		_ = c.Root.Remove(tmp)
	}
	return c.fault(err)
}

// Read reads a small regular file of at most limit bytes.
func (c *Cache) Read(name string, limit int64) ([]byte, error) {
	info, err := c.Root.Stat(name)
	if err != nil {
		return nil, c.fault(err)
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, c.fault(fmt.Errorf("%s is not a regular file of at most %d bytes", name, limit))
	}
	f, err := c.Root.Open(name)
	if err != nil {
		return nil, c.fault(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return b, c.fault(err)
}

// Link makes a symbolic link to a file of the cache; where the system refuses links, a hard link, or else a copy. What had
// the name before is replaced.
func (c *Cache) Link(target, name string) error {
	if err := c.Root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return c.fault(err)
	}
	relative, err := filepath.Rel(filepath.FromSlash(path.Dir(name)), filepath.FromSlash(target))
	if err != nil {
		return c.fault(err)
	}
	if now, err := c.Root.Readlink(name); err == nil && now == relative {
		return nil
	}
	if err := c.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c.fault(err)
	}
	if c.Root.Symlink(relative, name) == nil || c.Root.Link(target, name) == nil {
		return nil
	}
	return c.copy(target, name)
}

// copy copies a file of the cache.
func (c *Cache) copy(from, to string) error {
	in, err := c.Root.Open(from)
	if err != nil {
		return c.fault(err)
	}
	defer in.Close()
	out, err := c.partial(to + Suffix)
	if err != nil {
		return err
	}
	err = out.Truncate(0)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = c.Root.Rename(to+Suffix, to)
	}
	if err != nil {
		_ = c.Root.Remove(to + Suffix)
	}
	return c.fault(err)
}

// checkSpace returns an error if the disk has less room than the files need.
func (c *Cache) checkSpace(files []File) error {
	need := int64(0)
	for _, f := range files {
		if f.Size < 0 || c.has(f.Path, f.Size) {
			continue
		}
		if f.Size > MaxFileBytes {
			return fmt.Errorf("%s: %d bytes; at most %d are taken", f.Name, f.Size, int64(MaxFileBytes))
		}
		need += f.Size
		if info, err := c.Root.Lstat(f.Path + Suffix); err == nil {
			need -= min(info.Size(), f.Size)
		}
	}
	return c.checkFree(need)
}

// SpaceError reports a disk with too little room.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

// Error names the numbers.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: the disk has %.1f GB free; the download needs %.1f GB and leaves %.1f GB free",
		e.Dir, float64(e.Free)/1e9, float64(e.Need)/1e9, float64(ReserveBytes)/1e9)
}

// checkFree returns an error if the disk has fewer bytes free than are needed. Where the system does not say, it returns nil.
func (c *Cache) checkFree(need int64) error {
	if need <= 0 {
		return nil
	}
	if free, known := freeBytes(c.Dir); known && need > free-ReserveBytes {
		return &SpaceError{c.Dir, need, free}
	}
	return nil
}

// reserved are the names that Windows gives to devices.
var reserved = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}

// CheckName returns an error for text that is no name of a file on every system: an empty or a long one, one with separators,
// control characters or a colon, one that begins with a dot or ends in one, and names of devices.
func CheckName(name string) error {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	device := reserved[stem] || len(stem) == 4 && (strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")) && unicode.IsDigit(rune(stem[3]))
	switch {
	case name == "" || len(name) > 200, strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.HasSuffix(name, " "), device,
		strings.ContainsAny(name, `/\:*?"<>|`), strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%.80q is not the name of a file", name)
	}
	return nil
}

// CheckPath is [CheckName] for each part of a name with slashes.
func CheckPath(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if err := CheckName(part); err != nil {
			return fmt.Errorf("%.80q: %w", name, err)
		}
	}
	return nil
}
