package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const version = "v0.0.1-test.1"

// gitIn runs git in a directory, without the user's settings and at a fixed time.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
}

// checkout makes a repository with the present files of this one, committed.
func checkout(t *testing.T, dir string) string {
	t.Helper()
	c := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	c.Dir = "../.."
	list, err := c.Output()
	if err != nil {
		t.Skipf("this is no checkout of git: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // it was removed, and that is not committed
		}
		to := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-qm", "all")
	return dir
}

// TestRelease makes a release twice, in two directories: the files are the same, byte for byte, and have what they must have. With
// GROVE_RELEASE it makes all targets, else one.
func TestRelease(t *testing.T) {
	chosen := runtime.GOOS + "/" + runtime.GOARCH
	if os.Getenv("GROVE_RELEASE") != "" {
		chosen = "all"
	}
	wanted, err := parseTargets(chosen)
	if err != nil {
		t.Skip(err)
	}
	var first map[string][]byte
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "another place", "b")}
	checkout(t, dirs[0])
	gitIn(t, ".", "clone", "-q", dirs[0], dirs[1])
	for i, dir := range dirs {
		args := []string{"-root", dir, "-version", version, "-targets", chosen}
		if i == 1 { // the version comes from the tag, and settings of the user change nothing
			gitIn(t, dir, "tag", version)
			args = []string{"-root", dir, "-out", filepath.Join(dir, "dist"), "-targets", chosen}
			t.Setenv("GOFLAGS", "-tags=purego")
			t.Setenv("GOAMD64", "v3")
			t.Setenv("CGO_ENABLED", "1")
		}
		var list bytes.Buffer
		if err := run(t.Context(), args, &list); err != nil {
			t.Fatal(err)
		}
		files := readAll(t, filepath.Join(dir, "dist"))
		if got := strings.Count(list.String(), "\n"); got != len(files) || len(files) != 2*len(wanted)+1 {
			t.Errorf("%d files are listed, %d are there:\n%s", got, len(files), list.String())
		}
		if first == nil {
			first = files
			checkRelease(t, files, wanted)
			continue
		}
		for name, b := range files {
			if !bytes.Equal(b, first[name]) {
				t.Errorf("%s differs between two directories", name)
			}
		}
	}
}

func readAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// checkRelease checks the files of a release.
func checkRelease(t *testing.T, files map[string][]byte, wanted []target) {
	t.Helper()
	for line := range strings.Lines(string(files["SHA256SUMS"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(files[name])); got != sum {
			t.Errorf("%s: the checksum is %s, and %s is listed", name, got, sum)
		}
	}
	if got := strings.Count(string(files["SHA256SUMS"]), "\n"); got != len(files)-1 {
		t.Errorf("%d checksums of %d files", got, len(files)-1)
	}
	for _, w := range wanted {
		dir := fmt.Sprintf("grove-%s-%s-%s", version, w.os, w.arch)
		unpacked := unpack(t, dir, files)
		for _, name := range []string{
			w.program(), "LICENSE", "README.md", "CHANGELOG.md", "docs/cli.md", "docs/deploy.md", "completion/grove.bash", "completion/_grove", "completion/grove.fish",
			"man/man1/grove.1", "man/man1/grove-run.1", "man/man1/grove-bench-speed.1", "systemd/grove.service", "grove.cdx.json", "licences/gopher/README.md",
			"licences/" + "go-" + strings.TrimPrefix(runtime.Version(), "go") + "/LICENSE",
		} {
			if len(unpacked[name]) == 0 {
				t.Errorf("%s has no %s", dir, name)
			}
		}
		checkParts(t, unpacked, files[dir+".cdx.json"], w)
		if w.os != runtime.GOOS || w.arch != runtime.GOARCH {
			continue
		}
		program := filepath.Join(t.TempDir(), w.program())
		if err := os.WriteFile(program, unpacked[w.program()], 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "version").Output()
		if err != nil || !strings.HasPrefix(string(out), "grove "+version+"\nrevision ") || strings.Contains(string(out), "unknown") {
			t.Errorf("grove version: %v\n%s", err, out)
		}
	}
}

// unpack returns the files of a target's archive by their names below dir.
func unpack(t *testing.T, dir string, files map[string][]byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	add := func(name string, data []byte, when int64, mode os.FileMode) {
		below, ok := strings.CutPrefix(name, dir+"/")
		if _, twice := all[below]; twice || !ok || when != epoch.Unix() || strings.HasPrefix(below, "grove") != (mode&0o111 != 0) && !strings.HasSuffix(below, ".json") {
			t.Errorf("%s: %s, of time %d and mode %v", dir, name, when, mode)
		}
		all[below] = data
	}
	if b, ok := files[dir+".zip"]; ok {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, data, f.Modified.Unix(), f.Mode())
		}
		return all
	}
	z, err := gzip.NewReader(bytes.NewReader(files[dir+".tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		add(h.Name, data, h.ModTime.Unix(), h.FileInfo().Mode())
	}
}

// checkParts checks the parts list of a program: it is that of the archive, and lists what is linked, each with its licence.
func checkParts(t *testing.T, unpacked map[string][]byte, beside []byte, w target) {
	t.Helper()
	if !bytes.Equal(unpacked["grove.cdx.json"], beside) {
		t.Errorf("%v: the parts list differs from that of the archive", w)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(beside), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	own := bom.Metadata.Component
	if own.Version != version || (*own.Hashes)[0].Value != fmt.Sprintf("%x", sha256.Sum256(unpacked[w.program()])) {
		t.Errorf("%v: the program is listed as %+v", w, own)
	}
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name)
		if c.Name == "std" {
			continue
		}
		if strings.HasPrefix(c.PackageURL, "pkg:npm/") {
			continue // checkScripts
		}
		prefix := "licences/" + c.Name + "@" + c.Version + "/"
		if c.Hashes == nil || !slices.ContainsFunc(slices.Collect(keys(unpacked)), func(n string) bool { return strings.HasPrefix(n, prefix) }) {
			t.Errorf("%v: %s has no checksum or no licence", w, c.Name)
		}
	}
	for _, want := range []string{"std", "github.com/alecthomas/kong", "go.opentelemetry.io/otel", "golang.org/x/sys"} {
		if !slices.Contains(names, want) {
			t.Errorf("%v: %s is not among the parts %v", w, want, names)
		}
	}
	checkScripts(t, unpacked, *bom.Components)
	if slices.Contains(names, "github.com/google/go-cmp") {
		t.Errorf("%v: the parts have a library of the tests", w)
	}
}

// checkScripts checks that the libraries of the chat page are parts, with their licences.
func checkScripts(t *testing.T, unpacked map[string][]byte, parts []cdx.Component) {
	t.Helper()
	licences := map[string]string{} // of the packages of npm
	for _, c := range parts {
		if name, ok := strings.CutPrefix(c.PackageURL, "pkg:npm/"); ok {
			name, _, _ = strings.Cut(name, "@")
			licences[name] = (*c.Licenses)[0].Expression + " " + c.Name
			if c.Version == "" || c.Hashes == nil {
				t.Errorf("%s has no version or no checksum: %+v", name, c)
			}
		}
	}
	want := map[string]string{"marked": "MIT AND BSD-3-Clause marked", "%40highlightjs/cdn-assets": "BSD-3-Clause highlight.js"}
	if !maps.Equal(licences, want) {
		t.Errorf("the libraries of the page are %v, want %v", licences, want)
	}
	for name, text := range map[string]string{"marked": "MIT license", "highlight": "BSD 3-Clause License"} {
		if !strings.Contains(string(unpacked["licences/"+pageLibraries+"/"+name+"/LICENSE"]), text) {
			t.Errorf("the licence of %s is not in the archive", name)
		}
	}
}

// TestScriptsRefused: a library that the list of the page lacks, or has otherwise, is no part of a release.
func TestScriptsRefused(t *testing.T) {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("x")))
	row := func(link, version, licence, sum string) string {
		return "| `a/a.js` | [a](" + link + "): does it | " + version + " | " + licence + " | `" + sum + "` |\n"
	}
	const npm = "https://www.npmjs.com/package/a"
	for name, c := range map[string]struct {
		list string
		ok   bool
	}{
		"listed":           {row(npm, "1.0.0", "MIT", sum), true},
		"not listed":       {"", false},
		"another checksum": {row(npm, "1.0.0", "MIT", strings.Repeat("0", 64)), false},
		"no licence":       {row(npm, "1.0.0", "", sum), false},
		"no version":       {row(npm, "", "MIT", sum), false},
		"no package":       {row("https://example.com/a", "1.0.0", "MIT", sum), false},
	} {
		s := &source{root: t.TempDir()}
		write(t, s.root, pageLibraries+"/a/a.js", "x")
		write(t, s.root, pageLibraries+"/README.md", c.list)
		if parts, err := s.scripts(); (err == nil) != c.ok || len(parts) > 0 != c.ok {
			t.Errorf("%s: %d parts, %v", name, len(parts), err)
		}
	}
}

func keys(files map[string][]byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}
}

// small makes a repository of one file, committed and tagged.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-qm", "one")
	gitIn(t, dir, "tag", "v1.0.0")
	return dir
}

// TestRefused: what no release can be made of is refused before anything is built, and nothing is left.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(dir string) // of the repository
		args    []string
		want    string
	}{
		{name: "a changed file", prepare: func(dir string) { write(t, dir, "go.mod", "module n\n") }, want: "has changes, such as \" M go.mod\""},
		{name: "a new file", prepare: func(dir string) { write(t, dir, "x/y.go", "package y") }, want: "has changes, such as \"?? x/y.go\""},
		{name: "a version without v", args: []string{"-version", "1.2.3"}, want: `version "1.2.3" is not one such as v1.2.3`},
		{name: "a short version", args: []string{"-version", "v1.2"}, want: `version "v1.2" is not one`},
		{name: "a version with a build", args: []string{"-version", "v1.2.3+a"}, want: `version "v1.2.3+a" is not one`},
		{name: "a version that is a path", args: []string{"-version", "v1.2.3/../x"}, want: "is not one"},
		{name: "two tags", prepare: func(dir string) { gitIn(t, dir, "tag", "v1.0.1") }, want: "has 2 tags of versions"},
		{name: "no tag", prepare: func(dir string) { gitIn(t, dir, "tag", "-d", "v1.0.0") }, want: "has 0 tags of versions"},
		{name: "a tag elsewhere", prepare: func(dir string) { gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "two") }, args: []string{"-version", "v1.0.0"}, want: "the tag v1.0.0 is another commit"},
		{name: "an unknown system", args: []string{"-targets", "plan9/amd64"}, want: `target "plan9/amd64" is not known`},
		{name: "an unknown processor", args: []string{"-targets", "linux/386"}, want: `target "linux/386" is not known`},
		{name: "no processor", args: []string{"-targets", "linux"}, want: `target "linux" is not known`},
		{name: "a target twice", args: []string{"-targets", "linux/amd64,linux/amd64"}, want: `target "linux/amd64" is named twice`},
		{name: "an output that is there", args: []string{"-out", "."}, want: ". is there already"},
		{name: "an argument", args: []string{"v1.2.3"}, want: `"v1.2.3" is no flag`},
		{name: "no repository", args: []string{"-root", t.TempDir()}, want: "not a git repository"},
		{name: "nothing to build", want: "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := small(t)
			if c.prepare != nil {
				c.prepare(dir)
			}
			err := run(t.Context(), append([]string{"-root", dir}, c.args...), io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*dist*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := run(ended, []string{"-root", small(t)}, io.Discard); err == nil {
		t.Error("an interrupted release succeeds")
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestArchives: the order of files does not count, and two of one name are refused.
func TestArchives(t *testing.T) {
	files := []file{{name: "b", data: []byte("2")}, {name: "a/c", data: []byte("1"), program: true}}
	for _, pack := range []func(string, []file) ([]byte, error){tarball, zipped} {
		one, err1 := pack("d", files)
		two, err2 := pack("d", []file{files[1], files[0]})
		if err1 != nil || err2 != nil || !bytes.Equal(one, two) || len(one) == 0 {
			t.Errorf("%v, %v: %d and %d bytes", err1, err2, len(one), len(two))
		}
		if _, err := pack("d", append(files, files[0])); err == nil {
			t.Error("two files of one name are packed")
		}
	}
}

// TestManual: there is a page of each command, and mandoc finds no fault in any.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := manual(string(text), version, "2026-01-02")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var files []string
	for _, p := range pages {
		write(t, dir, p.name, string(p.data))
		files = append(files, filepath.Join(dir, p.name))
		for _, want := range []string{".TH GROVE", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH SEE ALSO\n", version} {
			if !bytes.Contains(p.data, []byte(want)) {
				t.Errorf("%s has no %q", p.name, want)
			}
		}
	}
	run := pages[slices.IndexFunc(pages, func(p file) bool { return p.name == "man/man1/grove-run.1" })]
	for _, want := range []string{"--temp T\\fR\n", "Variable: \\fBGROVE_TEMP\\fR", ".SH EXAMPLES\n", "Default: 256."} {
		if !bytes.Contains(run.data, []byte(want)) {
			t.Errorf("grove-run.1 has no %q", want)
		}
	}
	tool, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	if out, err := exec.Command(tool, append([]string{"-Tlint", "-Wwarning"}, files...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

// TestManualRefused: a document without the parts of manual pages is refused.
func TestManualRefused(t *testing.T) {
	const list = "# Commands\n\n    grove run     Continue a text\n    grove serve   Serve models\n\n"
	for text, want := range map[string]string{
		"":                                  "has no title",
		"## grove run\n":                    "has no title",
		list + "## grove run\n\ntext\n":     "1 commands have sections; the list has 2",
		list + "## grove chat\n\ntext\n":    "the list of commands has no grove chat",
		"# Commands\n\n## grove run\n\nx\n": "the list of commands has no grove run",
	} {
		if _, err := manual(text, version, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
