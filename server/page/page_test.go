package page

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, method, tag string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	ServeHTTP(w, r)
	return w.Result()
}

// TestServeHTTP holds the headers, and that a browser that has the page is not sent it again.
func TestServeHTTP(t *testing.T) {
	answer := get(t, "GET", "")
	h := answer.Header
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
		"Referrer-Policy": "no-referrer",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	html := served().html
	body := new(bytes.Buffer)
	if _, err := body.ReadFrom(answer.Body); err != nil || answer.StatusCode != 200 || !bytes.Equal(body.Bytes(), html) {
		t.Errorf("status %d, %d bytes, %v", answer.StatusCode, body.Len(), err)
	}
	if got := get(t, "GET", h.Get("ETag")); got.StatusCode != http.StatusNotModified {
		t.Errorf("with its tag: %d", got.StatusCode)
	}
	if got := get(t, "GET", `"another"`); got.StatusCode != http.StatusOK {
		t.Errorf("with another tag: %d", got.StatusCode)
	}
	if got := get(t, "HEAD", ""); got.StatusCode != http.StatusOK || got.ContentLength != int64(len(html)) {
		t.Errorf("HEAD: %d, %d bytes", got.StatusCode, got.ContentLength)
	}
}

// TestPolicy: the policy names the scripts and the style of the page, and nothing that would let others in.
func TestPolicy(t *testing.T) {
	got := get(t, "GET", "").Header.Get("Content-Security-Policy")
	index, err := files.ReadFile("index.html")
	if err != nil {
		t.Fatal(err)
	}
	for element, n := range map[string]int{"script": bytes.Count(index, []byte("<script")), "style": 1} {
		if want := fmt.Sprintf(`(^|; )%s-src( 'sha256-[A-Za-z0-9+/]{43}='){%d}(;|$)`, element, n); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("not %d hashes of the element %s: %s", n, element, got)
		}
	}
	for _, lax := range []string{"unsafe", "*", "http"} {
		if strings.Contains(got, lax) {
			t.Errorf("%s is in %s", lax, got)
		}
	}
	for _, need := range []string{"default-src 'none'", "connect-src 'self'", "img-src data:", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
		if !strings.Contains(got+";", need+";") {
			t.Errorf("%s is not in %s", need, got)
		}
	}
	two := contentPolicy("<script>a</script><b><script></script>")
	want := "script-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';"
	if !strings.Contains(two, want) {
		t.Errorf("%s, want %s", two, want)
	}
}

// TestFiles: the files of the page fit their bounds, make no HTML of texts, and load nothing.
func TestFiles(t *testing.T) {
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name != "index.html" && name != "page.css" && !strings.HasPrefix(name, "script/") {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if n := bytes.Count(text, []byte("\n")); n >= 500 {
			t.Errorf("%s has %d lines", name, n)
		}
		for _, bad := range []string{
			`https?://[^w]`, `(?i)<[a-z][^>]*\s(style|on[a-z]+)=`, `<(iframe|object|embed)`, `@import`, `url\(`,
			`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|parseFromString|setHTML|srcdoc|createContextualFragment`,
		} {
			if found := regexp.MustCompile(bad).Find(text); found != nil {
				t.Errorf("%s has %q", name, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	html := string(served().html)
	own, _, _ := strings.Cut(html, "<script>")
	if found := regexp.MustCompile(`href="[^#d][^"]*"|\ssrc=|<img`).FindString(own); found != "" {
		t.Errorf("the page loads %q", found)
	}
	if left := part.FindString(html); left != "" {
		t.Errorf("%q is not replaced", left)
	}
}

// TestAssemble: files that are missing, or that would break the page, are refused.
func TestAssemble(t *testing.T) {
	with := func(index, name, content string) fstest.MapFS {
		return fstest.MapFS{"index.html": {Data: []byte(index)}, name: {Data: []byte(content)}}
	}
	for _, c := range []struct {
		name string
		from fs.FS
		want string // of the page; "": an error
		err  string
	}{
		{"both kinds", fstest.MapFS{
			"index.html": {Data: []byte(`<link rel="stylesheet" href="a.css"><script src="b.js"></script>`)}, "a.css": {Data: []byte("p{}")}, "b.js": {Data: []byte("$1")},
		}, "<style>p{}</style><script>$1</script>", ""},
		{"nothing", fstest.MapFS{}, "", "page: open index.html: file does not exist"},
		{"missing", with(`<script src="b.js"></script>`, "a.js", ""), "", "page: open b.js: file does not exist"},
		{"end of a script", with(`<script src="a.js"></script>`, "a.js", `"</Script >"`), "", "page: a.js: the content ends the element script or begins another; write it otherwise"},
		{"script in a comment", with(`<script src="a.js"></script>`, "a.js", `"<!-- <script x"`), "", "page: a.js: the content ends the element script or begins another; write it otherwise"},
		{"end of a style", with(`<link rel="stylesheet" href="a.css">`, "a.css", `</style>`), "", "page: a.css: the content ends the element style or begins another; write it otherwise"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := assemble(c.from)
			if c.err == "" && (err != nil || string(got) != c.want) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
			if c.err != "" && (err == nil || err.Error() != c.err) {
				t.Errorf("%v, want %s", err, c.err)
			}
		})
	}
}

// TestLibraries: the libraries are the files that their README lists, with licences, and nothing else.
func TestLibraries(t *testing.T) {
	readme, err := files.ReadFile("libraries/README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` .*`([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(readme), -1) {
		listed["libraries/"+row[1]] = row[2]
	}
	if len(listed) != 4 {
		t.Errorf("the README lists %v", listed)
	}
	err = fs.WalkDir(files, "libraries", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "libraries/README.md" {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != listed[name] {
			t.Errorf("%s has the digest %s, listed is %q", name, got, listed[name])
		}
		if licence := path.Join(path.Dir(name), "LICENSE"); listed[licence] == "" {
			t.Errorf("%s has no licence in the list", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocuments: the numbers of docs/web.md are those of the scripts.
func TestDocuments(t *testing.T) {
	text, err := os.ReadFile("../../docs/web.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.Join(strings.Fields(string(text)), " ")
	for _, q := range []struct{ script, constant, sentence string }{
		{"store", "chats", "the last %s chats"},
		{"store", "chats", "bytes and %s chats of"},
		{"store", "chat", "at most %s characters of each"},
		{"store", "file", "at most %s bytes"},
		{"store", "turns", "chats of %s turns"},
		{"markdown", "block", "it is given %s characters"},
		{"wire", "busy", "is busy (429, up to %s times)"},
		{"wire", "loading", "loads (503, up to %s times)"},
		{"wire", "longest", "names, at most %s;"},
	} {
		source, err := files.ReadFile("script/" + q.script + ".js")
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\b` + q.constant + `: ([\d_]+)`).FindSubmatch(source)
		if found == nil {
			t.Errorf("script/%s.js has no %s", q.script, q.constant)
			continue
		}
		if want := fmt.Sprintf(q.sentence, strings.ReplaceAll(string(found[1]), "_", ",")); !strings.Contains(doc, want) {
			t.Errorf("docs/web.md does not say %q", want)
		}
	}
}
