// Command rename gives the modules of this checkout another path, for those who publish them on a host of their own:
//
//	go -C lab run ./rename example.com/you/grove
//
// It changes go.mod files, imports, and the imports and commands that documents show. It needs Go and git alone.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	dir := flag.String("dir", "../..", "root of the checkout")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go -C lab run ./rename [-dir ROOT] NEW/PATH")
		os.Exit(2)
	}
	n, err := rename(*dir, flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files changed; go build ./... && go test ./... proves them\n", n)
}

// rename gives the modules of a checkout another path and returns the number of files that it has changed. It changes
// nothing where the path is not one that can be fetched, where the checkout has it already, or where git could not undo it.
func rename(root, path string) (changed int, err error) {
	old, err := module(root)
	if err != nil {
		return 0, err
	}
	if err := check(path); err != nil {
		return 0, err
	}
	if old == path {
		return 0, fmt.Errorf("the module's path is %s already", path)
	}
	files, err := tracked(root)
	if err != nil {
		return 0, err
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return changed, err
		}
		now, err := rewrite(filepath.Base(name), text, old, path)
		if err != nil {
			return changed, fmt.Errorf("%s: %w", name, err)
		}
		if bytes.Equal(text, now) {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return changed, err
		}
		if err := os.WriteFile(name, now, info.Mode()); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

var moduleLine = regexp.MustCompile(`(?m)^module[ \t]+(\S+)[ \t]*$`)

// module returns the path of the module whose root a directory is.
func module(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s has no go.mod: name the root of a checkout with -dir", root)
	}
	if err != nil {
		return "", err
	}
	m := moduleLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s: there is no module line", filepath.Join(root, "go.mod"))
	}
	return string(m[1]), nil
}

// check refuses a path that go get could not fetch. The go command knows the rules of paths.
func check(path string) error {
	if path == "" {
		return errors.New("module path \"\": it is empty; name one such as example.com/you/grove")
	}
	dir, err := os.MkdirTemp("", "rename")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(file, []byte("module x.org/x\n"), 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("go", "mod", "edit", "-module="+path, file).CombinedOutput(); err != nil {
		why, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "go: "), "\n")
		return fmt.Errorf("module path %q: %s", path, why)
	}
	host, _, more := strings.Cut(path, "/")
	if !strings.Contains(host, ".") || !more {
		return fmt.Errorf("module path %q: it must begin with a host and have a path on it, such as example.com/you/grove", path)
	}
	return nil
}

// tracked returns the files of a checkout that may name the module. All changes must be committed.
func tracked(root string) (files []string, err error) {
	git := func(args ...string) ([]byte, error) {
		cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
		out, err := cmd.Output()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			err = fmt.Errorf("git %s: %s", args[0], bytes.TrimSpace(failed.Stderr))
		}
		return out, err
	}
	at, err := git("rev-parse", "--show-prefix")
	if err != nil {
		return nil, fmt.Errorf("%s is no checkout, and the change could not be undone: %w", root, err)
	}
	if prefix := strings.TrimSpace(string(at)); prefix != "" {
		return nil, fmt.Errorf("%s is %s of a checkout: name its root with -dir", root, prefix)
	}
	dirty, err := git("status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if len(dirty) > 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(string(dirty)), "\n")
		return nil, fmt.Errorf("the checkout has changes that are not committed (%s): commit them, so that the renaming can be undone", line)
	}
	out, err := git("ls-files", "-z")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		switch filepath.Ext(name) {
		case ".go", ".mod", ".md", ".work":
			files = append(files, filepath.Join(root, filepath.FromSlash(name)))
		}
	}
	return files, nil
}
