package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove"
	"grove/internal/fileio"
	"grove/internal/gopher"
	"grove/internal/weights/gguf"
	"grove/server"
	"grove/server/access"
)

const modelName = "gopher"

// TestMain keeps the tests out of the user's cache directory.
func TestMain(m *testing.M) { os.Exit(fileio.RunApart(m)) }

// options are those of the tests' models. Methods are eager, so that answers are drafted wherever they can be.
var options = grove.Options{Parallel: 2, Queue: 256, Threads: 1, Eager: true}

// source is a model of a file's bytes, without the sampling that the file recommends: the goldens are of the APIs' defaults.
func source(name string, file []byte, o grove.Options) server.Entry {
	if g := gopher.Model(); len(file) == len(g) && &file[0] == &g[0] {
		return advising(name, targetWithoutAdvice(), o)
	}
	return advising(name, withoutAdvice(file), o)
}

var targetWithoutAdvice = sync.OnceValue(func() []byte { return withoutAdvice(gopher.Model()) })

// served is the file of the model of most tests: the smallest, which has the vocabulary of the target and a sixteenth of its size. Tests with clients that come, leave
// and wait, of memory and of what is kept have the target, whose answers take a while.
func served() []byte { return gopher.Named(gopher.NanoName) }

// withoutAdvice returns a model's file without the sampling that it recommends; what cannot be parsed, as it is.
func withoutAdvice(file []byte) []byte {
	f, err := gguf.Parse(file)
	if err != nil {
		return file
	}
	metadata := slices.DeleteFunc(slices.Clone(f.Metadata), func(kv gguf.KV) bool { return strings.HasPrefix(kv.Key, "general.sampling.") })
	var b bytes.Buffer
	b.Grow(len(file))
	if gguf.Write(&b, metadata, f.Tensors) != nil {
		return file
	}
	return b.Bytes()
}

// advising is a model of a file's bytes, as they are.
func advising(name string, file []byte, o grove.Options) server.Entry {
	return server.Entry{Name: name, Open: func(_ context.Context, memory uint64) (*grove.Model, error) {
		o := o
		o.Memory = memory
		return grove.OpenBytes(file, o)
	}}
}

// edited returns a model's file with other metadata.
func edited(t testing.TB, file []byte, changes ...gguf.KV) []byte {
	t.Helper()
	f, err := gguf.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	metadata := slices.Clone(f.Metadata)
	for _, c := range changes {
		if i := slices.IndexFunc(metadata, func(kv gguf.KV) bool { return kv.Key == c.Key }); i >= 0 {
			metadata[i] = c
		} else {
			metadata = append(metadata, c)
		}
	}
	var b bytes.Buffer
	b.Grow(len(file) + 4096)
	if err := gguf.Write(&b, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// keyed returns a gate of keys without names.
func keyed(t testing.TB, secrets ...string) *access.Gate {
	t.Helper()
	var c access.Config
	for _, s := range secrets {
		c.Keys = append(c.Keys, access.Key{Secret: s})
	}
	return gate(t, c)
}

// gate returns a gate.
func gate(t testing.TB, c access.Config) *access.Gate {
	t.Helper()
	g, err := access.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// site is a server under test.
type site struct {
	*server.Server
	url string
}

// serve starts a server of the model inside the program.
func serve(t testing.TB, c server.Config) *site {
	t.Helper()
	return serveModels(t, c, source(modelName, served(), options))
}

// serveTarget is serve with the largest of the embedded models, for tests whose answers depend on it.
func serveTarget(t testing.TB, c server.Config) *site {
	t.Helper()
	return serveModels(t, c, source(modelName, gopher.Model(), options))
}

// serveModels starts a server of models.
func serveModels(t testing.TB, c server.Config, models ...server.Entry) *site {
	t.Helper()
	s := load(t, c, models...)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return &site{s, h.URL}
}

// load makes a server of models.
func load(t testing.TB, c server.Config, models ...server.Entry) *server.Server {
	t.Helper()
	s := server.New(c)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, m := range models {
		if err := s.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// do sends a request and returns the status and the body.
func (s *site) do(t testing.TB, method, path, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b), answer.Header
}

// object is JSON as it was sent.
type object map[string]any

// at returns the value at a path such as choices/0/text.
func (o object) at(path string) any {
	var v any = map[string]any(o)
	for name := range strings.SplitSeq(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// post sends a body that must be answered with 200.
func (s *site) post(t testing.TB, path, body string) object {
	t.Helper()
	status, text, _ := s.do(t, "POST", path, body)
	if status != 200 {
		t.Fatalf("%s %s: %d %s", path, body, status, text)
	}
	return parse(t, text)
}

func parse(t testing.TB, text string) (o object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return o
}

// events returns the data of a stream's events, without the [DONE] that must end it.
func (s *site) events(t testing.TB, path, body string) []object {
	t.Helper()
	status, text, header := s.do(t, "POST", path, body)
	if status != 200 || header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Fatalf("%s %s: %d %v %s", path, body, status, header, text)
	}
	all := split(t, text)
	if len(all) == 0 || all[len(all)-1] != "[DONE]" {
		t.Fatalf("a stream that does not end as it should: %q", text)
	}
	var objects []object
	for _, data := range all[:len(all)-1] {
		objects = append(objects, parse(t, data))
	}
	return objects
}

// split cuts a stream into the data of its events. Each must be one line and be followed by an empty one.
func split(t testing.TB, text string) (all []string) {
	t.Helper()
	if !strings.HasSuffix(text, "\n\n") {
		t.Fatalf("a stream that ends in the middle of an event: %q", text)
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		switch data, ok := strings.CutPrefix(line, "data: "); {
		case ok:
			all = append(all, data)
		case !strings.HasPrefix(line, ": ") && !strings.HasPrefix(line, "event: "):
			t.Fatalf("a line of a stream: %q", line)
		}
		if !strings.HasPrefix(line, "event: ") && (!lines.Scan() || lines.Text() != "") {
			t.Fatalf("no empty line behind %q", line)
		}
	}
	return all
}

// inner matches what concerns the server's code and disk alone.
var inner = regexp.MustCompile(`(^|: )(grove|engine|sample|chat|jinja|template|tokenizer|json|jsontext|strconv|kv|driver|wire|serving): |Go (struct|value)|\*\w+\.|` +
	regexp.QuoteMeta(os.TempDir()) + `/(Test|grove-test)`)

// wantError expects an error body and returns its message.
func wantError(t testing.TB, text string) (message, kind, param, code string) {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type string
			Param, Code   *string
		}
	}
	var raw struct{ Error map[string]any }
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("no error: %q, %v", text, err)
	}
	if inner.MatchString(e.Error.Message) {
		t.Errorf("an error names a package, a type or a directory: %q", e.Error.Message)
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil || len(raw.Error) != 4 && !(len(raw.Error) == 6 && raw.Error["n_prompt_tokens"] != nil && raw.Error["n_ctx"] != nil) {
		t.Fatalf("an error must have message, type, param and code: %q", text)
	}
	text = func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}(e.Error.Param)
	if e.Error.Code != nil {
		code = *e.Error.Code
	}
	return e.Error.Message, e.Error.Type, text, code
}

// quote returns a text as JSON.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// quoteAny returns a value as JSON.
func quoteAny(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
