//go:build unix

package flags

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTextOfPipe reads a text from pipes that the user names for it: a named one, one that a shell opened for the output
// of a command, and standard input.
func TestTextOfPipe(t *testing.T) {
	named := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(named, 0o600); err != nil {
		t.Skip(err)
	}
	for name, file := range map[string]func(r *os.File) string{
		"named":               func(*os.File) string { return named },
		"opened by a shell":   func(r *os.File) string { return fmt.Sprintf("/dev/fd/%d", r.Fd()) },
		"standard input by -": func(*os.File) string { return "-" },
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			stdin := os.Stdin
			os.Stdin = r
			defer func() { os.Stdin = stdin }()
			wrote := make(chan error, 1)
			go func() {
				defer w.Close()
				to, err := w, error(nil)
				if name == "named" {
					to, err = os.OpenFile(named, os.O_WRONLY, 0)
				}
				if err == nil {
					_, err = to.WriteString("func main")
					to.Close()
				}
				wrote <- err
			}()
			if got, err := (TextFile{File: file(r)}).Read("the prompt"); got != "func main" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if err := <-wrote; err != nil {
				t.Error(err)
			}
		})
	}
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Skip(err)
	}
	defer zero.Close()
	stdin := os.Stdin
	os.Stdin = zero
	defer func() { os.Stdin = stdin }()
	for _, file := range []string{"/dev/zero", "-"} {
		if _, err := (TextFile{File: file}).Read("the prompt"); err == nil || !strings.Contains(err.Error(), "has more than 67108864 bytes") {
			t.Errorf("a device without an end, as %s: %v", file, err)
		}
	}
}
