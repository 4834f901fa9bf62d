package gopher_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/quantize"
	"grove/internal/weights/tensor"
)

// The most that the models may add to the program.
const mostBytes = 24 << 20

func parse(t *testing.T, name string) *gguf.File {
	t.Helper()
	f, err := gguf.Parse(gopher.Named(name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestModels checks that each file is what the README says, and tells where it comes from.
func TestModels(t *testing.T) {
	total, parameters := 0, 0
	for _, name := range gopher.Names() {
		total += len(gopher.Named(name))
		f := parse(t, name)
		for key, want := range map[string]gguf.Value{
			"general.name":                 gguf.Of(name),
			"general.license":              gguf.Of("bsd-3-clause"),
			"general.file_type":            gguf.Of(uint32(7)),
			"general.quantization_version": gguf.Of(uint32(2)),
		} {
			if got, _ := f.Lookup(key); !got.Equal(want) {
				t.Errorf("%s: %s is %v, want %v", name, key, got.Any(), want.Any())
			}
		}
		for _, key := range []string{"general.description", "train.commit", "train.data", "train.machine"} {
			if s, _, err := f.String(key); s == "" || err != nil || strings.Contains(s, "dirty") {
				t.Errorf("%s: %s is %q, %v", name, key, s, err)
			}
		}
		if v, ok := f.Lookup("train.valid_bits_per_byte"); !ok || v.Any().(float32) <= 0 {
			t.Errorf("%s: no figure of validation", name)
		}
		elems := 0
		for _, v := range f.Tensors {
			want := tensor.Q8_0
			if len(v.Shape) == 1 || strings.HasPrefix(v.Name, "diffusion.filter.") {
				want = tensor.F32
			}
			if elems += v.Elems(); v.Type != want {
				t.Errorf("%s: tensor %q of shape %v is %v, want %v", name, v.Name, v.Shape, v.Type, want)
			}
		}
		if parameters > 0 && elems*2 > parameters && name != gopher.DiffusionName {
			t.Errorf("%s has %d parameters, the model before it %d", name, elems, parameters)
		}
		parameters = elems
	}
	if total > mostBytes {
		t.Errorf("%d bytes of models, want at most %d", total, mostBytes)
	}
	if gopher.Named("gopher") != nil || !bytes.Equal(gopher.Model(), gopher.Named(gopher.Name)) {
		t.Error("names do not stand for their models")
	}
}

// TestFolder: the folder of Hugging Face that the recipe writes, converted and quantised, is the model that is embedded.
func TestFolder(t *testing.T) {
	folder, err := hf.Open("testdata/" + gopher.NanoName)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	job, err := quantize.New(folder, "Q8_0", false)
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	defer pool.Close()
	var out bytes.Buffer
	if err := job.Write(t.Context(), &out, pool, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	got, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, gopher.NanoName)
	for _, kv := range got.Metadata {
		if v, ok := want.Lookup(kv.Key); !ok || !v.Equal(kv.Value) {
			t.Errorf("%s is %v, embedded %v", kv.Key, kv.Value.Any(), v.Any())
		}
	}
	byName := func(a, b tensor.View) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got.Tensors, byName)
	slices.SortFunc(want.Tensors, byName)
	if diff := cmp.Diff(want.Tensors, got.Tensors); diff != "" {
		t.Errorf("-embedded +folder\n%.2000s", diff)
	}
}

// TestDrafts: each draft speaks its target's language, changes nothing of its text, and saves every third step.
func TestDrafts(t *testing.T) {
	const prompt = "func (s *Server) Close() error {"
	texts := map[string]string{}
	for _, draft := range []string{"", gopher.DraftName, gopher.NanoName} {
		m, err := grove.Open(gopher.Name, grove.Options{Draft: draft, Eager: true, Parallel: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		method := "draft"
		if draft == "" {
			method = grove.MethodOff
		}
		g, err := m.Generate(t.Context(), grove.Request{Prompt: prompt, MaxTokens: 100, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		for token, err := range g.Tokens() {
			if err != nil {
				t.Fatal(err)
			}
			texts[draft] += token.Text
		}
		s := g.Stats().Drafting
		if texts[draft] != texts[""] {
			t.Errorf("%s: text\n%s\nwant\n%s", draft, texts[draft], texts[""])
		}
		if draft != "" && s.Tokens*10 < s.Rounds*15 {
			t.Errorf("%s: %d tokens in %d steps", draft, s.Tokens, s.Rounds)
		}
	}
	checkParses(t, prompt, texts[""])
}

// checkParses fails the test where the function that a prompt begins and a text goes on with is not Go.
func checkParses(t *testing.T, prompt, text string) {
	t.Helper()
	body, _, _ := strings.Cut(text, "\n}")
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n\n"+prompt+body+"\n}\n", 0); err != nil {
		t.Errorf("the text does not parse: %v\n%s", err, text)
	}
}
