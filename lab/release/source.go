package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// source is a clean checkout, and the version that it becomes.
type source struct {
	root    string // of the repository
	module  string // path of the module
	version string
	commit  string
	date    string // of the commit
}

// openSource checks that the repository is what a release can be made of: without changes, and of the version, which is the tag of
// its commit where it is empty.
func openSource(ctx context.Context, root, version string) (*source, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	s := &source{root: root}
	if s.commit, err = s.output(ctx, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if s.date, err = s.output(ctx, "git", "show", "-s", "--format=%cs", "HEAD"); err != nil {
		return nil, err
	}
	changes, err := s.output(ctx, "git", "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return nil, err
	}
	if changes != "" {
		first, _, _ := strings.Cut(changes, "\n")
		return nil, fmt.Errorf("%s has changes, such as %q; commit or remove them", root, first)
	}
	if s.version, err = s.versionOf(ctx, version); err != nil {
		return nil, err
	}
	s.module, err = s.output(ctx, "go", "list", "-m")
	return s, err
}

// versionOf checks a version; "" is that of the commit's tag.
func (s *source) versionOf(ctx context.Context, version string) (string, error) {
	if version == "" {
		tags, err := s.output(ctx, "git", "tag", "--points-at", "HEAD", "--list", "v*")
		if err != nil {
			return "", err
		}
		if version = tags; len(strings.Fields(tags)) != 1 {
			return "", fmt.Errorf("the commit has %d tags of versions (%q); name the version with -version", len(strings.Fields(tags)), tags)
		}
	}
	if semver.Canonical(version) != version || strings.Contains(version, "+") {
		return "", fmt.Errorf("version %q is not one such as v1.2.3 or v1.2.3-rc.1", version)
	}
	tagged, err := s.output(ctx, "git", "rev-list", "-n1", "refs/tags/"+version)
	if err == nil && tagged != s.commit {
		return "", fmt.Errorf("the tag %s is another commit, %s; check that out, or name another version", version, tagged)
	}
	return version, nil
}

// settings are the variables that decide a build's bytes. Those of the user do not count.
var settings = []string{
	"CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOENV=off",
}

// command returns a command that runs in the repository, with variables.
func (s *source) command(ctx context.Context, variables []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = s.root
	c.Env = append(append(os.Environ(), settings...), variables...)
	return c
}

// output returns the output of a command without its last line end.
func (s *source) output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := s.command(ctx, nil, name, args...).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(failed.Stderr))
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// build builds the program of a target, and removes the file that it was built in.
func (s *source) build(ctx context.Context, t target, program string) ([]byte, error) {
	stamp := fmt.Sprintf("-s -w -X %[1]s.release=%[2]s -X %[1]s.commit=%[3]s", s.module, s.version, s.commit)
	c := s.command(ctx, []string{"GOOS=" + t.os, "GOARCH=" + t.arch},
		"go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", stamp, "-o", program, "./cmd/grove")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	b, err := os.ReadFile(program)
	return b, errors.Join(err, os.Remove(program))
}

// commonFiles returns the files of every archive: licences of the repository, documents, completion, manual pages, the systemd unit.
func (s *source) commonFiles() (files []file, err error) {
	names := map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md",
		"internal/command/completion/grove.bash": "completion/grove.bash",
		"internal/command/completion/grove.zsh":  "completion/_grove",
		"internal/command/completion/grove.fish": "completion/grove.fish",
		"deploy/systemd/grove.service":           "systemd/grove.service",
		"internal/gopher/README.md":              "licences/gopher/README.md",
	}
	documents, err := filepath.Glob(filepath.Join(s.root, "docs", "*.md"))
	for _, name := range documents {
		names["docs/"+filepath.Base(name)] = "docs/" + filepath.Base(name)
	}
	for from, to := range names {
		b, e := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(from)))
		files, err = append(files, file{name: to, data: b}), errors.Join(err, e)
	}
	if err != nil {
		return nil, err
	}
	vendored, err := s.vendoredLicences()
	if err != nil {
		return nil, err
	}
	commands, err := os.ReadFile(filepath.Join(s.root, "docs", "cli.md"))
	if err != nil {
		return nil, err
	}
	pages, err := manual(string(commands), s.version, s.date)
	return append(append(files, vendored...), pages...), err
}
