package schematest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"grove/constrain/schema/document"
)

// Shared returns the path of a file of the shared reference data, which lies beside the root of the repository, or skips the test where it is missing. Where CI is set and
// there is shared data, a missing file is a failure.
func Shared(t testing.TB, root, name string) string {
	t.Helper()
	root = filepath.Join(root, "..", "shared")
	path := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if _, err := os.Stat(root); err == nil && os.Getenv("CI") != "" {
		t.Fatalf("../shared/%s is missing", name)
	}
	t.Skipf("needs ../shared/%s: not there", name)
	return ""
}

// Suite is a schema with texts, and whether they are valid.
type Suite struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Tests  []struct {
		Description string          `json:"description"`
		Valid       bool            `json:"valid"`
		Data        json.RawMessage `json:"data"`
	} `json:"tests"`
}

// ReadSuites returns the lines of a file.
func ReadSuites(t testing.TB, path string) (all []Suite) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Buffer(nil, 64<<20); lines.Scan(); {
		var s Suite
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Spaced writes a JSON text as MaskBench does: a blank behind commas and colons.
func Spaced(t testing.TB, text []byte) string {
	t.Helper()
	v, err := document.Parse(text, 8<<20, 300)
	if err != nil {
		var b bytes.Buffer // names that stand twice
		if err := json.Compact(&b, text); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var b strings.Builder
	write(&b, v)
	return b.String()
}

func write(b *strings.Builder, v *document.Value) {
	switch v.Kind {
	case '{', '[':
		b.WriteByte(byte(v.Kind))
		for i, x := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			if v.Kind == '{' {
				writeString(b, v.Names[i])
				b.WriteString(": ")
			}
			write(b, x)
		}
		b.WriteByte(byte(v.Kind) + 2)
	case '"':
		writeString(b, v.Text)
	case '0':
		b.WriteString(v.Text)
	default:
		b.WriteString(v.Kind.String())
	}
}

func writeString(b *strings.Builder, s string) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		b.WriteString(strconv.Quote(s))
	}
	b.WriteString(strings.TrimSuffix(buf.String(), "\n"))
}
