package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// describe returns the parts list of a program (a software bill of materials, in CycloneDX's JSON) and the licences of the modules
// that are linked into it and of Go's library. Those of its other parts are among [source.vendoredLicences].
func (s *source) describe(ctx context.Context, binary []byte, t target) (list []byte, licences []file, err error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, nil, err
	}
	goRoot, err := s.output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, nil, err
	}
	if licences, err = licencesIn(goRoot, "go-"+strings.TrimPrefix(info.GoVersion, "go")); err != nil {
		return nil, nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil || m.Sum == "" {
			return nil, nil, fmt.Errorf("%s is replaced, or has no checksum; a release is made of published modules", m.Path)
		}
		dir, err := s.moduleDir(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		files, err := licencesIn(dir, m.Path+"@"+m.Version)
		if err != nil {
			return nil, nil, err
		}
		licences = append(licences, files...)
	}
	list, err = s.partsList(binary, info, t)
	return list, licences, err
}

// moduleDir returns the directory of a module's source.
func (s *source) moduleDir(ctx context.Context, m *debug.Module) (string, error) {
	text, err := s.output(ctx, "go", "mod", "download", "-json", m.Path+"@"+m.Version)
	var at struct{ Dir, Sum string }
	if err == nil {
		err = json.Unmarshal([]byte(text), &at)
	}
	if err == nil && at.Sum != m.Sum {
		err = fmt.Errorf("%s@%s has the checksum %s here, and %s in the program", m.Path, m.Version, at.Sum, m.Sum)
	}
	return at.Dir, err
}

// licenceName matches the files that say under which terms a source may be used.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licencesIn returns the licences in a directory, below licences/name. A directory without one is an error.
func licencesIn(dir, name string) (files []file, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "licences/" + name + "/" + e.Name(), data: b})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no licence in %s", name, dir)
	}
	return files, nil
}

// vendoredLicences returns the licences of the repository's own folders, except the root: those of files from elsewhere.
func (s *source) vendoredLicences() (files []file, err error) {
	err = filepath.WalkDir(s.root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != s.root {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(s.root, path)
		if err != nil || d.IsDir() || !licenceName.MatchString(d.Name()) || strings.HasSuffix(d.Name(), ".go") || filepath.Dir(rel) == "." {
			return err
		}
		b, err := os.ReadFile(path)
		files = append(files, file{name: "licences/" + filepath.ToSlash(rel), data: b})
		return err
	})
	return files, err
}

// pageLibraries is the folder of the libraries that the chat page embeds; its README lists them.
const pageLibraries = "server/page/libraries"

// libraryRow is a row of that list: the file, the library, its package of npm, the version, the licences, and the SHA-256.
var libraryRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\[([^]]+)\\]\\(https://www\\.npmjs\\.com/package/([^)]+)\\)[^|]*\\| ([^ |]+) \\| ([^|]+) \\| `([0-9a-f]{64})` \\|$")

// scripts returns the libraries of the chat page, which are part of the program. A script that the list lacks is an error.
func (s *source) scripts() (parts []cdx.Component, err error) {
	dir := filepath.Join(s.root, filepath.FromSlash(pageLibraries))
	list, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.js"))
	if err != nil {
		return nil, err
	}
	rows := map[string][]string{}
	for _, row := range libraryRow.FindAllStringSubmatch(string(list), -1) {
		rows[row[1]] = row
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		name, sum := filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f), fmt.Sprintf("%x", sha256.Sum256(b))
		row := rows[name]
		if row == nil || row[6] != sum {
			return nil, fmt.Errorf("%s/README.md does not list %s with a package of npm, a version, a licence and the checksum %s", pageLibraries, name, sum)
		}
		c := part(cdx.ComponentTypeLibrary, row[2], row[4], sum)
		c.PackageURL = "pkg:npm/" + strings.ReplaceAll(row[3], "@", "%40") + "@" + row[4]
		c.BOMRef, c.Licenses = c.PackageURL, &cdx.Licenses{{Expression: row[5]}}
		parts = append(parts, c)
	}
	return parts, nil
}

// partsList returns the parts of a program in CycloneDX's JSON. The same program gives the same bytes: the list has no time, and its
// serial number comes from the program.
func (s *source) partsList(binary []byte, info *debug.BuildInfo, t target) ([]byte, error) {
	sum := sha256.Sum256(binary)
	own := part(cdx.ComponentTypeApplication, s.module, s.version, hex.EncodeToString(sum[:]))
	own.Properties = &[]cdx.Property{{Name: "grove:commit", Value: s.commit}, {Name: "grove:target", Value: t.String()}}
	parts := []cdx.Component{part(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil {
			return nil, fmt.Errorf("%s: the checksum %q is not one of Go's: %w", m.Path, m.Sum, err)
		}
		c := part(cdx.ComponentTypeLibrary, m.Path, m.Version, hex.EncodeToString(sum))
		parts = append(parts, c)
	}
	scripts, err := s.scripts()
	if err != nil {
		return nil, err
	}
	parts = append(parts, scripts...)
	uses := make([]string, len(parts))
	for i, c := range parts {
		uses[i] = c.BOMRef
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cdx.Metadata{Component: &own}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: own.BOMRef, Dependencies: &uses}}
	var b bytes.Buffer
	err = cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	return b.Bytes(), err
}

// part returns a component: a module of Go, or the program. sum is the SHA-256 of its file or, as Go has it, of its tree; "": none.
func part(kind cdx.ComponentType, path, version, sum string) cdx.Component {
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := cdx.Component{Type: kind, Name: path, Version: version, PackageURL: url, BOMRef: url}
	if sum != "" {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
	}
	return c
}

// serial returns a serial number, a UUID of version 8 (of an application's own making), from a checksum.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
