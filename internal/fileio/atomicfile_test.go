package fileio

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWrite replaces a file, and leaves the old one and nothing else where the new one fails midway.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, e := io.WriteString(w, s)
			return errors.Join(e, err)
		}
	}
	for _, s := range []string{"old", "new"} {
		if err := WriteAtomic(path, text(s, nil)); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	if err := WriteAtomic(path, text("half", broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, %v", names, err)
	}
	if err := WriteAtomic(filepath.Join(dir, "none", "f"), text("", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder gives %v", err)
	}
}

// TestSweep expects a write to remove what killed ones left, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, name := range []string{"f.tmp-123", "f.tmp-backup", "f.tmp-", "g.tmp-123", "f.tmp-1a"} {
		at, old := filepath.Join(dir, name), time.Now().Add(-24*time.Hour)
		if err := errors.Join(os.WriteFile(at, []byte(name), 0o600), os.Chtimes(at, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	err := WriteAtomic(path, func(io.Writer) error {
		return WriteAtomic(path, func(w io.Writer) error { // the outer file is held and stays
			_, err := io.WriteString(w, "inner")
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"f", "f.tmp-", "f.tmp-1a", "f.tmp-backup", "g.tmp-123"}; !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
}

// TestSweepFolder expects old temporary files of a folder to go that nobody holds, whatever their name, and nothing else.
func TestSweepFolder(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		"f.tmp-123": 2 * time.Hour, "g.tmp-9": 2 * time.Hour, "g.tmp-1.tmp-2": 2 * time.Hour, "g.tmp-10": time.Minute, "f.tmp-backup": 2 * time.Hour, "f.tmp-": 2 * time.Hour, "f": 2 * time.Hour,
	} {
		at, old := filepath.Join(dir, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(at, nil, 0o600), os.Chtimes(at, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	held, err := create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(held.Name(), old, old); err != nil {
		t.Fatal(err)
	}
	Sweep(dir, time.Hour)
	Sweep(filepath.Join(dir, "none"), time.Hour)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := []string{"f", "f.tmp-", "f.tmp-backup", "g.tmp-10", filepath.Base(held.Name())}
	if runtime.GOOS == "windows" {
		want = want[:4] // an age is all that shows there
	}
	if !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
}

// TestCheck: what Write could not write, and what is read, by whatever name, is refused beforehand; nothing is left behind.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"read", "other", "folder/part"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := true
	for _, l := range []struct {
		link     func(old, new string) error
		old, new string
	}{
		{os.Link, at("read"), at("hard")}, {os.Symlink, "read", at("soft")}, {os.Symlink, "soft", at("soft2")}, {os.Symlink, "none", at("dangling")},
		{os.Symlink, "loop", at("loop")}, {os.Symlink, at("other"), at("folder/link")}, {os.Link, at("folder/part"), at("parthard")},
	} {
		if err := l.link(l.old, l.new); err != nil {
			links = false // some systems have none
		}
	}
	entries := func() (names []string) {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	before := entries()
	for _, c := range []struct {
		path, want string // "": it can be written
		link       bool
	}{
		{"new", "", false}, {"folder/../new", "", false}, {"folder/new", "", false}, {"dangling", "", true},
		{"read", "which is read", false}, {"folder/../read", "which is read", false}, {"folder/part", "which is read", false},
		{"hard", "which is read", true}, {"soft", "which is read", true}, {"soft2", "which is read", true}, {"parthard", "which is read", true},
		{"other", "which is read", true}, {"loop", "loop", true},
		{"folder", "it is a directory", false}, {"none/new", "no such file", false}, {"new/", "no such file", false},
	} {
		if c.link && !links {
			continue
		}
		err := Check(dir+"/"+c.path, at("read"), at("folder"), at("gone"))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) && !errors.Is(err, os.ErrNotExist)) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if err := Check(at("read/new")); err == nil {
		t.Error("a file is no folder")
	}
	if err := Check(""); err == nil {
		t.Error("an empty name")
	}
	if after := entries(); !slices.Equal(before, after) {
		t.Errorf("the folder holds %v, before %v", after, before)
	}
}

// TestThrough: a write through a symbolic link replaces the file behind it and keeps the link.
func TestThrough(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	err := WriteAtomic(link, func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return err
	})
	text, err2 := os.ReadFile(file)
	info, err3 := os.Lstat(link)
	if err := errors.Join(err, err2, err3); err != nil || string(text) != "new" || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%q, %v", text, err)
	}
}
