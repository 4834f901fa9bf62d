package beam

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
)

// plain is a file system that has no renaming; full, one whose disk is full; moved, one whose renaming fails.
type (
	plain struct{ filesystem.Interface }
	full  struct{ plain }
	moved struct{ full }
)

func init() {
	at := func(make func(fs filesystem.Interface) filesystem.Interface) func(context.Context) filesystem.Interface {
		return func(ctx context.Context) filesystem.Interface { return make(local.New(ctx)) }
	}
	filesystem.Register("plain", at(func(fs filesystem.Interface) filesystem.Interface { return plain{fs} }))
	filesystem.Register("full", at(func(fs filesystem.Interface) filesystem.Interface { return full{plain{fs}} }))
	filesystem.Register("moved", at(func(fs filesystem.Interface) filesystem.Interface { return moved{full{plain{fs}}} }))
}

func rest(path string) string { return path[strings.Index(path, "://")+3:] }

// OpenWrite implements [filesystem.Interface].
func (p plain) OpenWrite(ctx context.Context, path string) (io.WriteCloser, error) {
	return p.Interface.OpenWrite(ctx, rest(path))
}

// Remove implements [filesystem.Remover].
func (full) Remove(_ context.Context, path string) error { return os.Remove(rest(path)) }

// OpenWrite implements [filesystem.Interface].
func (f full) OpenWrite(ctx context.Context, path string) (io.WriteCloser, error) {
	w, err := f.plain.OpenWrite(ctx, path)
	return fullFile{w}, err
}

// OpenWrite implements [filesystem.Interface].
func (f moved) OpenWrite(ctx context.Context, path string) (io.WriteCloser, error) {
	return f.plain.OpenWrite(ctx, path)
}

// Rename implements [filesystem.Renamer].
func (moved) Rename(context.Context, string, string) error { return errors.New("no other name") }

type fullFile struct{ io.WriteCloser }

// Write implements [io.Writer].
func (fullFile) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// TestWrite: a file is replaced as a whole, also by an empty one, in file systems that rename and in others; a failure leaves the old file and no other.
func TestWrite(t *testing.T) {
	for _, c := range []struct {
		scheme string
		lines  []string
		fault  string
	}{
		{"", []string{"one", "two"}, ""}, {"", nil, ""}, {"plain://", []string{"one"}, ""}, {"full://", []string{"one"}, "the disk is full"}, {"moved://", []string{"one"}, "no other name"},
	} {
		dir := t.TempDir()
		path := put(t, filepath.Join(dir, "out"), "old")
		_, err := run(t, func(s sdk.Scope) error {
			Write(s, c.scheme+path, sdk.CreateList(s, append([]string{""}, c.lines...))) // one that is empty, since no list may be
			return nil
		})
		want := append([]string{"", ""}, c.lines...)
		if c.fault != "" {
			want = []string{"", "old"}
		}
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", c.scheme, err, c.fault)
		}
		if got := read(t, path); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.scheme, got, want)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%s: %v, %v", c.scheme, all, err)
		}
	}
}
