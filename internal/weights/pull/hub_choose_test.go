package pull

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	ladder := "README.md .gitattributes mmproj-x-F16.gguf x-Q3_K_S.gguf x-Q4_K_M.gguf x-Q4_K_S.gguf x-Q8_0.gguf x-IQ4_XS.gguf imatrix_x.gguf"
	split := "x-Q8_0.gguf BF16/x-BF16-00001-of-00002.gguf BF16/x-BF16-00002-of-00002.gguf"
	tensors := "config.json model.safetensors tokenizer.json consolidated.safetensors pytorch_model.bin README.md onnx/model.safetensors LICENSE"
	for _, c := range []struct {
		name, files string
		m           HubModel
		want        string // files; "": an error
		text        string // part of the notes, or of the error
	}{
		{"Q4_K_M", ladder, HubModel{}, "x-Q4_K_M.gguf", `left out, because grove reads text alone: "imatrix_x.gguf", "mmproj-x-F16.gguf"`},
		{"tag", ladder, HubModel{Tag: "q8_0"}, "x-Q8_0.gguf", "mmproj"},
		{"tag of two", ladder, HubModel{Tag: "Q4_K"}, "", `"Q4_K" fits several files; name one as o/r:NAME: "x-Q4_K_M", "x-Q4_K_S"`},
		{"tag in a word", ladder, HubModel{Tag: "xs"}, "x-IQ4_XS.gguf", ""},
		{"name as tag", ladder, HubModel{Tag: "X-Q3_K_S.gguf"}, "x-Q3_K_S.gguf", ""},
		{"word before part of a word", "x-IQ4_0.gguf x-Q4_0.gguf", HubModel{Tag: "Q4_0"}, "x-Q4_0.gguf", ""},
		{"no such tag", ladder, HubModel{Tag: "Q2_K"}, "", `no GGUF file has "Q2_K" in its name; it has "x-IQ4_XS", "x-Q3_K_S"`},
		{"Q8_0", "x-Q8_0.gguf x-F16.gguf", HubModel{}, "x-Q8_0.gguf", ""},
		{"only", "x-F16.gguf", HubModel{}, "x-F16.gguf", ""},
		{"first", "b-F16.gguf a-F32.gguf", HubModel{}, "a-F32.gguf", `there is neither Q4_K_M nor Q8_0; "a-F32" is the first by name of 2 files`},
		{"two models", "a-Q4_K_M.gguf b-Q4_K_M.gguf", HubModel{}, "", "fits several"},
		{"split", split, HubModel{Tag: "bf16"}, "BF16/x-BF16-00001-of-00002.gguf BF16/x-BF16-00002-of-00002.gguf", ""},
		{"part by name", split, HubModel{File: "BF16/x-BF16-00002-of-00002.gguf"}, "BF16/x-BF16-00001-of-00002.gguf BF16/x-BF16-00002-of-00002.gguf", ""},
		{"missing part", "x-00001-of-00003.gguf x-00002-of-00003.gguf", HubModel{}, "", `"x" has 2 of 3 parts`},
		{"missing first part", "x-00002-of-00002.gguf", HubModel{}, "", `"x" has 1 of 2 parts`},
		{"two splits", "x-00001-of-00001.gguf x-00001-of-00002.gguf x-00002-of-00002.gguf", HubModel{File: "x-00001-of-00001.gguf"}, "x-00001-of-00001.gguf", ""},
		{"no such file", ladder, HubModel{File: "y.gguf"}, "", `no GGUF file "y.gguf"`},
		{"safetensors", tensors, HubModel{}, "LICENSE config.json model.safetensors tokenizer.json", ""},
		{"shards", "config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json original/x.pth", HubModel{},
			"config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json", ""},
		{"safetensors with a tag", tensors, HubModel{Tag: "Q4_0"}, "", "no GGUF file, of which"},
		{"pickles", "config.json pytorch_model.bin", HubModel{}, "", "pickles"},
		{"no weights", "config.json README.md", HubModel{}, "", "neither a GGUF file nor"},
		{"no config", "model.safetensors", HubModel{}, "", "neither a GGUF file nor"},
		{"only a projector", "mmproj.gguf", HubModel{}, "", "neither a GGUF file nor"},
		{"nothing", "", HubModel{}, "", "neither a GGUF file nor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := []entry{{Type: "directory", Path: "folder.gguf"}}
			for f := range strings.FieldsSeq(c.files) {
				entries = append(entries, entry{Type: "file", Path: f})
			}
			c.m.Repo = "o/r"
			got, err := choose(entries, c.m)
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error %v, want one with %q", err, c.text)
				}
				return
			}
			var files []string
			for _, e := range got.files {
				files = append(files, e.Path)
			}
			if diff := cmp.Diff(c.want, strings.Join(files, " ")); diff != "" || err != nil {
				t.Error(diff, err)
			}
			if notes := strings.Join(got.notes, "\n"); !strings.Contains(notes, c.text) {
				t.Errorf("the notes are %q, want %q in them", notes, c.text)
			}
		})
	}
}

// FuzzList reads hostile lists of files: what is chosen is in the list, and has names that stay within the cache and digests.
func FuzzList(f *testing.F) {
	f.Add([]byte(`[{"type":"file","path":"x-Q4_K_M.gguf","size":3,"oid":"`+strings.Repeat("a", 40)+`"}]`), "")
	f.Add([]byte(`[{"type":"file","path":"./x-00001-of-00002.gguf"},{"type":"file","path":"/x-00002-of-00002.gguf","lfs":{"oid":"sha256:`+strings.Repeat("b", 64)+`","size":-1}}]`), "Q8_0")
	f.Add([]byte(`[{"type":"file","path":"config.json"},{"type":"file","path":"model-00001-of-99999.safetensors"}]`), "x")
	f.Fuzz(func(t *testing.T, text []byte, tag string) {
		var entries []entry
		if json.Unmarshal(text, &entries) != nil {
			return
		}
		listed := map[string]bool{}
		for _, e := range entries {
			listed[e.Path] = true
		}
		c, err := choose(entries, HubModel{Repo: "o/r", Tag: tag})
		if err != nil {
			return
		}
		for _, e := range c.files {
			if !listed[e.Path] {
				t.Errorf("%q is not in the list", e.Path)
			}
			if d, err := e.digest(); err == nil && (len(d.Hex()) < 40 || e.LFS == nil && e.Size < 0) {
				t.Errorf("%+v has the digest %v", e, d)
			}
			if CheckPath(e.Path) == nil && !filepath.IsLocal(e.Path) {
				t.Errorf("%q leads elsewhere", e.Path)
			}
		}
	})
}

// FuzzEndpoint reads hostile addresses of hubs.
func FuzzEndpoint(f *testing.F) {
	for _, text := range []string{"https://hub.example", "http://127.0.0.1:8080/x", "ftp://a", "https://a:b@c", "//a", "https://"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if u, err := ParseEndpoint(text); err == nil && (u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			t.Errorf("%q is %v", text, u)
		}
	})
}
