// Command release makes the files of a release from a clean checkout: an archive for each target, the parts list of each program, and
// the checksums of all. The same commit, version and Go release give the same bytes on any machine. docs/deploy.md describes it.
//
// It runs from the root of the repository:
//
//	go -C lab run ./release -version v1.2.3
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes the release that the arguments describe, and lists its files.
func run(ctx context.Context, args []string, list io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", "../..", "root of the repository")
	out := flags.String("out", "", "directory to make; dist in the root where it is empty")
	version := flags.String("version", "", "version, such as v1.2.3; the tag of the commit where it is empty")
	targets := flags.String("targets", "all", "systems and processors with commas between, such as linux/amd64,darwin/arm64")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	chosen, err := parseTargets(*targets)
	if err != nil {
		return err
	}
	s, err := openSource(ctx, *root, *version)
	if err != nil {
		return err
	}
	if *out == "" {
		*out = filepath.Join(s.root, "dist")
	}
	names, err := s.release(ctx, *out, chosen)
	for _, name := range names {
		fmt.Fprintln(list, filepath.Join(*out, name))
	}
	return err
}

// target is a system and a processor, by Go's names.
type target struct{ os, arch string }

// targets are those of a release.
var targets = []target{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// parseTargets reads a list of targets; "all" stands for all of them.
func parseTargets(text string) (chosen []target, err error) {
	if text == "all" {
		return targets, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		system, arch, _ := strings.Cut(name, "/")
		t := target{system, arch}
		if !slices.Contains(targets, t) {
			return nil, fmt.Errorf("target %q is not known; %v are", name, targets)
		}
		if slices.Contains(chosen, t) {
			return nil, fmt.Errorf("target %q is named twice", name)
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// String returns the target as a user writes it.
func (t target) String() string { return t.os + "/" + t.arch }

// program returns the name of the program's file.
func (t target) program() string {
	if t.os == "windows" {
		return "grove.exe"
	}
	return "grove"
}

// release makes the files of a release in a new directory and returns their names. Where it fails, it leaves nothing.
func (s *source) release(ctx context.Context, out string, chosen []target) (names []string, err error) {
	if _, err := os.Stat(out); err == nil {
		return nil, fmt.Errorf("%s is there already; name another directory, or remove it", out)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return nil, err
	}
	part, err := os.MkdirTemp(filepath.Dir(out), "."+filepath.Base(out)+"-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	common, err := s.commonFiles()
	if err != nil {
		return nil, err
	}
	made := map[string][]byte{}
	for _, t := range chosen {
		if err := s.add(ctx, made, common, t, filepath.Join(part, t.program())); err != nil {
			return nil, fmt.Errorf("%v: %w", t, err)
		}
	}
	made["SHA256SUMS"] = checksums(made)
	if names, err = writeAll(part, made); err != nil {
		return nil, err
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return nil, err
	}
	return names, os.Rename(part, out)
}

// add adds the archive of a target and its parts list. program is a file for its program, which is removed.
func (s *source) add(ctx context.Context, made map[string][]byte, common []file, t target, program string) error {
	binary, err := s.build(ctx, t, program)
	if err != nil {
		return err
	}
	parts, licences, err := s.describe(ctx, binary, t)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("grove-%s-%s-%s", s.version, t.os, t.arch)
	files := append(slices.Clone(common), file{name: t.program(), data: binary, program: true}, file{name: "grove.cdx.json", data: parts})
	files = append(files, licences...)
	pack, suffix := tarball, ".tar.gz"
	if t.os == "windows" {
		pack, suffix = zipped, ".zip"
	}
	archive, err := pack(name, files)
	made[name+suffix], made[name+".cdx.json"] = archive, parts
	return err
}
