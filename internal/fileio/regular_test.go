package fileio

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestRegularRead(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"empty": "", "four": "text", "five": "texts"} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := os.Symlink(in("four"), in("link")) == nil
	for _, c := range []struct{ name, want, problem string }{
		{name: "empty"},
		{name: "four", want: "text"},
		{name: "link", want: "text"},
		{name: "five", problem: "the file has more than 4 bytes"},
		{name: "none", problem: "no such file or directory"},
		{name: ".", problem: "it is a directory; a regular file is needed"},
	} {
		if c.name == "link" && !links || c.name == "none" && runtime.GOOS == "windows" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadRegular(in(c.name), 4)
			if c.problem == "" {
				if err != nil || string(got) != c.want {
					t.Fatalf("got %q, %v", got, err)
				}
				return
			}
			if at := new(fs.PathError); !errors.As(err, &at) || at.Path != in(c.name) || !strings.HasSuffix(err.Error(), c.problem) {
				t.Errorf("got %v, want %q of the file", err, c.problem)
			}
		})
	}
}

// TestSpecial opens what is no regular file: none of it may wait.
func TestSpecial(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such files here")
	}
	dir := t.TempDir()
	socket, pipe, behind := filepath.Join(dir, "socket"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	if err := errors.Join(mkfifo(pipe), os.Symlink(pipe, behind)); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ name, path, kind string }{
		{"pipe", pipe, "a named pipe"},
		{"link to a pipe", behind, "a named pipe"},
		{"socket", socket, "a socket"},
		{"device", "/dev/zero", "a device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := OpenRegular(c.path)
			if want := "it is " + c.kind + "; a regular file is needed"; f != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, %v", f, err)
			}
		})
	}
}
