package pull

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	blob := func(kind string, digit string, size int64) string {
		return fmt.Sprintf(`{"mediaType":%q,"digest":"sha256:%s","size":%d,"from":"/x"}`, kind, strings.Repeat(digit, 64), size)
	}
	config := `"config":` + blob("application/vnd.docker.container.image.v1+json", "c", 3)
	of := func(layers ...string) string {
		return `{"schemaVersion":2,` + config + `,"layers":[` + strings.Join(layers, ",") + `]}`
	}
	model := blob(modelLayer, "a", 100)
	for _, c := range []struct{ name, text, err string }{
		{"one layer", of(model), ""},
		{"a layer twice", of(model, blob("application/vnd.ollama.image.params", "b", 1), blob("application/vnd.ollama.image.license", "b", 1)), ""},
		{"projector", of(model, blob(projectorLayer, "d", 1)), ""},
		{"no object", `[]`, "cannot unmarshal"},
		{"no text", ``, "unexpected end"},
		{"no layers", `{` + config + `}`, "layers"},
		{"no config", `{"layers":[` + model + `]}`, "config"},
		{"no model", of(blob("x", "a", 1)), "0 layers hold weights"},
		{"two models", of(model, blob(modelLayer, "b", 1)), "2 layers hold weights"},
		{"path as digest", of(strings.ReplaceAll(model, strings.Repeat("a", 64), "../x")), "is not a digest"},
		{"negative size", of(blob(modelLayer, "a", -1)), "has -1 bytes"},
		{"giant", of(blob(modelLayer, "a", 1<<60)), "has 1152921504606846976 bytes"},
		{"two sizes", of(model, blob("x", "a", 1)), "has 100 bytes and 1 bytes"},
		{"many layers", of(strings.Split(strings.Repeat(model+"|", 65), "|")[:65]...), "65 layers; at most 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := parseRegistryHost([]byte(c.text))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.left == 0 && string(m.text) != c.text {
				t.Error("the text has changed")
			}
			if again, err := parseRegistryHost(m.text); err != nil || again.left != 0 || len(again.blobs) != len(m.blobs) {
				t.Errorf("the text that is written has %d projectors and %d blobs, want 0 and %d; %v", again.left, len(again.blobs), len(m.blobs), err)
			}
			if m.left > 0 && (strings.Contains(string(m.text), "projector") || !strings.Contains(string(m.text), `"from":"/x"`)) {
				t.Errorf("the text that is written is %s", m.text)
			}
		})
	}
}

// TestCheck bounds the parts of a name.
func TestCheck(t *testing.T) {
	long := strings.Repeat("a", 253)
	for _, c := range []struct {
		host, part string
		ok         bool
	}{
		{"r.example:5000", "tiny", true}, {long + ":65535", long[:80], true}, {"[::1]:5000", "a", true},
		{long + "a", "a", false}, {"r.example:123456", "a", false}, {"[" + long + "]", "a", false}, {"", "a", false}, {"a/b", "a", false},
		{"r.example", long[:81], false}, {"r.example", "", false}, {"r.example", "-a", false}, {"r.example", "a/b", false}, {"r.example", "a\n", false},
	} {
		if err := (RegistryName{c.host, "ns", c.part, "latest"}).Check(); (err == nil) != c.ok {
			t.Errorf("%q on %q: %v", c.part, c.host, err)
		}
	}
}

// TestChallenge: tokens are asked for at addresses of https, or on the registry's own host.
func TestChallenge(t *testing.T) {
	for _, c := range []struct{ base, header, want string }{
		{"https://r.example", `Bearer realm="https://auth.example/token",service="r",scope="repository:a/b:pull"`, "https://auth.example/token?scope=repository%3Aa%2Fb%3Apull&service=r"},
		{"http://r.example", `Bearer realm="http://r.example/token"`, "http://r.example/token"},
		{"https://r.example", `Bearer realm="http://r.example/token"`, ""},
		{"http://r.example", `Bearer realm="http://10.0.0.1/token"`, ""},
		{"https://r.example", `Bearer realm="file:///etc/passwd"`, ""},
		{"https://r.example", `Bearer realm="https://u:p@a.example/"`, ""},
		{"https://r.example", `Basic realm="x"`, ""},
		{"https://r.example", `Bearer ` + strings.Repeat("x", 5000), ""},
		{"https://r.example", ``, ""},
	} {
		base, _ := url.Parse(c.base)
		u, ok := challenge(c.header, base)
		if ok != (c.want != "") || ok && u.String() != c.want {
			t.Errorf("%q at %s gives %v, want %q", c.header, c.base, u, c.want)
		}
	}
}

func FuzzRegistryParse(f *testing.F) {
	f.Add([]byte(`{"config":{},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:0","size":1}]}`))
	f.Add([]byte(`{"config":{"digest":"sha256:` + strings.Repeat("a", 64) + `"},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + strings.Repeat("a", 64) + `"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseRegistryHost(b)
		if err != nil {
			return
		}
		for _, l := range m.blobs {
			if len(l.Digest) != len("sha256:")+64 || l.Size < 0 {
				t.Errorf("blob %+v", l)
			}
		}
	})
}

// FuzzName reads hostile names of models: those that are taken stay within the directory, and read back as they are written.
func FuzzName(f *testing.F) {
	for _, name := range []string{"llama3.2:1b", "h.example:5000/a/b:c", "a/b", "..", "a@sha256:b", "x:", ":x", "a//b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseRegistry(text)
		if err != nil {
			return
		}
		for _, part := range []string{n.Host, n.Namespace, n.Model, n.Tag} {
			if !filepath.IsLocal(part) || strings.ContainsAny(part, "/\\") {
				t.Errorf("%q has the part %q", text, part)
			}
		}
		if again, err := ParseRegistry(n.String()); err != nil || again != n {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, n, n.String(), again, err)
		}
	})
}

// FuzzChallenge reads hostile headers by which a registry asks for a token: tokens come from https, or from the registry itself.
func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer realm="https://auth.example/token",service="r",scope="repository:a:pull"`)
	f.Add(`Bearer realm="http://other.example"`)
	f.Add(`Bearer realm="https://a:b@c/",scope="` + strings.Repeat("x", 5000))
	base, err := url.Parse("http://registry.example")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if u, asked := challenge(header, base); asked && (u.User != nil || u.Scheme != "https" && u.Host != base.Host) {
			t.Errorf("%q leads to %v", header, u)
		}
	})
}
