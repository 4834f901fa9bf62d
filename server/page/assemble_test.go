package page

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"testing"
)

// files are what the page is made of.
var files = os.DirFS(".").(fs.ReadFileFS)

// part is an element of index.html that stands for the content of a file.
var part = regexp.MustCompile(`<link rel="stylesheet" href="([^"]*)">|<script src="([^"]*)"></script>`)

// assemble returns index.html with the files that it names in the places of their elements, the scripts of libraries behind their licences. It returns
// an error for a file that is missing, and for one whose content would end its element or begin another.
func assemble(from fs.FS) (html []byte, err error) {
	index, err := fs.ReadFile(from, "index.html")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	html = part.ReplaceAllFunc(index, func(element []byte) []byte {
		name, tag := part.FindSubmatch(element)[1], "style"
		if len(name) == 0 {
			name, tag = part.FindSubmatch(element)[2], "script"
		}
		content, failed := fs.ReadFile(from, string(name))
		if licence, err := fs.ReadFile(from, path.Join(path.Dir(string(name)), "LICENSE")); err == nil {
			content = slices.Concat([]byte("/*\n"), licence, []byte("*/\n"), content)
		}
		lower := bytes.ToLower(content)
		switch {
		case failed != nil:
			err = fmt.Errorf("page: %w", failed)
		case bytes.Contains(lower, []byte("</"+tag)), bytes.Contains(lower, []byte("<!--")) && bytes.Contains(lower, []byte("<script ")):
			err = fmt.Errorf("page: %s: the content ends the element %s or begins another; write it otherwise", name, tag)
		}
		return []byte("<" + tag + ">" + string(content) + "</" + tag + ">")
	})
	return html, err
}

// TestPacked: page.html.gz is the page that the files make. GROVE_UPDATE=1 writes it.
func TestPacked(t *testing.T) {
	html, err := assemble(files)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("GROVE_UPDATE") != "" {
		var file bytes.Buffer
		w, _ := gzip.NewWriterLevel(&file, gzip.BestCompression)
		if _, err := w.Write(html); err != nil || w.Close() != nil {
			t.Fatal("the page is not compressed: ", err)
		}
		if err := os.WriteFile("page.html.gz", file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := unpack(packed); err != nil || !bytes.Equal(got, html) {
		t.Errorf("page.html.gz is not the page of these files (%v); GROVE_UPDATE=1 go test ./server/page writes it", err)
	}
	if _, err := unpack(packed[:len(packed)-9]); err == nil {
		t.Error("a part of the file is taken for the page")
	}
}
