package beam

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/metrics"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"

	"grove/internal/gopher"
	"grove/server/batch"
)

// nano is the model of the tests.
var nano = Model{Path: gopher.NanoName, ChatTemplate: "chatml", Threads: 1}

// TestMain runs the tests, or in a process that a test starts and kills the pipeline of its variables. The runner leaves an empty file for each job in the temporary directory.
func TestMain(m *testing.M) {
	flag.Parse()
	sdk.Init()
	log.SetLogger(quiet{})
	slog.SetDefault(slog.New(slog.DiscardHandler)) // in which the runner logs
	if in := os.Getenv("GROVE_BEAM_INPUT"); in != "" {
		p, s := sdk.NewPipelineWithRoot()
		err := Batch(s, nano, Files{Input: in, Output: os.Getenv("GROVE_BEAM_OUTPUT")})
		if err == nil {
			_, err = prism.Execute(context.Background(), p)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	temp, err := os.MkdirTemp("", "grove-beam-")
	if err == nil {
		err = os.Setenv("TMPDIR", temp)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.RemoveAll(temp)
	os.Exit(code)
}

// quiet logs nothing: the runner writes pages about each job.
type quiet struct{}

// Log implements [log.Logger].
func (quiet) Log(context.Context, log.Severity, int, string) {}

// line makes a line of requests.
func line(id, url, body string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":%q,"body":%s}`, id, url, body)
}

// mixed are lines of all kinds.
func mixed(n int) (lines []string) {
	for i := range n {
		id := fmt.Sprintf("line-%d", i)
		switch i % 6 {
		case 0:
			lines = append(lines, line(id, "/v1/completions", fmt.Sprintf(`{"prompt":"func Name%d(","max_tokens":%d,"temperature":1,"n":2,"logprobs":2}`, i%12, 1+i%7)))
		case 1:
			lines = append(lines, line(id, "/v1/chat/completions", `{"messages":[{"role":"user","content":"func main"}],"max_tokens":5}`))
		case 2:
			lines = append(lines, line(id, "/v1/responses", `{"input":"type T struct","max_output_tokens":16}`))
		case 3:
			lines = append(lines, line(id, "/v1/embeddings", fmt.Sprintf(`{"input":["a","b%d"]}`, i)))
		case 4:
			lines = append(lines, line(id, "/v1/messages", `{"messages":[{"role":"user","content":"func"}],"max_tokens":4,"seed":3}`))
		default:
			lines = append(lines, []string{
				"{", line(id, "/v1/completions", `{"model":"none"}`), line("line-0", "/v1/completions", "{}"), line(id, "/v1/none", "{}"), "",
				line("line-0", "/other", "{}"), line(strings.Repeat("x", 600), "/v1/completions", "{}"), line(id, "/v1/embeddings", "{}") + "}", "[]", line(id, "/v1/completions", `{"stream":true}`),
				`{"custom_id":"line-` + fmt.Sprint(i+1) + `"}`,
			}[i/6%11])
		}
	}
	return lines
}

// put writes lines into a file.
func put(tb testing.TB, path string, lines ...string) string {
	tb.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

// read returns the lines of a file, sorted.
func read(tb testing.TB, path string) []string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	slices.Sort(lines)
	return lines
}

// same fails where two files differ in more than the order of their lines.
func same(tb testing.TB, want, got string) {
	tb.Helper()
	a, b := read(tb, want), read(tb, got)
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			tb.Errorf("%s has %d lines and %s %d; line %d differs:\n%s\n%s", want, len(a), got, len(b), i, strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""), strings.Join(b[min(i, len(b)):min(i+1, len(b))], ""))
			return
		}
	}
}

// reference answers a file by package batch, as grove batch does.
func reference(tb testing.TB, m Model, in string) Files {
	tb.Helper()
	m, err := m.complete()
	if err != nil {
		tb.Fatal(err)
	}
	o, err := m.use(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	b, err := batch.Open(batch.Options{In: in, Out: filepath.Join(tb.TempDir(), "want.jsonl"), Flight: 7})
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.Run(tb.Context(), o, "model"); err != nil {
		tb.Fatal(err)
	}
	if err := b.Close(); err != nil {
		tb.Fatal(err)
	}
	answers, faults := b.Paths()
	return Files{Input: in, Output: answers, Errors: faults}
}

// run runs a pipeline on Prism.
func run(tb testing.TB, build func(s sdk.Scope) error) (metrics.QueryResults, error) {
	tb.Helper()
	p, s := sdk.NewPipelineWithRoot()
	if err := build(s); err != nil {
		tb.Fatal(err)
	}
	r, err := prism.Execute(tb.Context(), p)
	if err != nil {
		return metrics.QueryResults{}, err
	}
	return r.Metrics().AllMetrics(), nil
}

// TestBatch: a pipeline has the answers and errors of a batch, byte by byte, also of lines that are no requests, repeated names and unknown models; and it counts them.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	in := put(t, filepath.Join(dir, "in.jsonl"), mixed(330)...)
	want := reference(t, nano, in)
	files := Files{Input: in, Output: filepath.Join(dir, "out.jsonl")}
	got, err := run(t, func(s sdk.Scope) error { return Batch(s, nano, files) })
	if err != nil {
		t.Fatal(err)
	}
	errors := filepath.Join(dir, "out.errors.jsonl")
	same(t, want.Output, files.Output)
	same(t, want.Errors, errors)
	counts := map[string]int64{}
	for _, c := range got.Counters() {
		counts[c.Name()] += c.Result()
	}
	answers, failures := int64(len(read(t, files.Output))-1), int64(len(read(t, errors))-1)
	if answers < 250 || counts["answers"] != answers || counts["errors"] != failures || counts["requests"] != answers+counts["errors_model_not_found"]+counts["errors_not_found"] {
		t.Errorf("%d answers and %d failures are counted as %v", answers, failures, counts)
	}
	if counts["prompt_tokens"] == 0 || counts["generated_tokens"] == 0 || counts["errors_repeated_custom_id"] == 0 {
		t.Errorf("the counters are %v", counts)
	}
	times := int64(0)
	for _, d := range got.Distributions() {
		if d.Name() == "request_milliseconds" {
			times += d.Result().Count
		}
	}
	if times != counts["requests"] {
		t.Errorf("%d times of %d requests", times, counts["requests"])
	}
}

// TestSeveralFiles: files of a pattern are one input, in the order of their names; the outputs replace what is there, and are written where they are empty.
func TestSeveralFiles(t *testing.T) {
	dir, lines := t.TempDir(), mixed(60)
	one := put(t, filepath.Join(dir, "one.jsonl"), slices.Concat(lines[:20], []string{"", ""}, lines[20:])...)
	put(t, filepath.Join(dir, "part-1"), slices.Concat(lines[:20], []string{"", ""})...)
	put(t, filepath.Join(dir, "part-2"), lines[20:]...)
	want := reference(t, nano, one)
	files := Files{Input: filepath.Join(dir, "part-*"), Output: put(t, filepath.Join(dir, "out"), "old"), Errors: put(t, filepath.Join(dir, "bad"), "old")}
	if _, err := run(t, func(s sdk.Scope) error { return Batch(s, nano, files) }); err != nil {
		t.Fatal(err)
	}
	same(t, want.Output, files.Output)
	same(t, want.Errors, files.Errors)

	files.Input = put(t, filepath.Join(dir, "good"), lines[0])
	if _, err := run(t, func(s sdk.Scope) error { return Batch(s, nano, files) }); err != nil {
		t.Fatal(err)
	}
	if got := read(t, files.Errors); len(got) != 1 || got[0] != "" {
		t.Errorf("the errors of one request are %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.part-*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", err, left)
	}
}

// TestEmbed: texts get the embeddings that the server gives them, and lines that are none are errors.
func TestEmbed(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		format Format
		lines  []string
		ids    []string
		errors []string
	}{
		{Text, []string{"one\r", "", "{\"two\": 2}", "\xff"}, []string{"1", "3"}, []string{"invalid_text"}},
		{JSONL, []string{`{"custom_id":"a","text":"one","more":1}`, `{"custom_id":"b","text":"{\"two\": 2}"}`, `{"custom_id":"a","text":""}`, `{"custom_id":"c"}`, `{"text":"x"}`, "x"},
			[]string{"a", "b"}, []string{"repeated_custom_id", "invalid_json", "missing_custom_id", "invalid_json"}},
	} {
		files := Files{Input: put(t, filepath.Join(dir, "in"), c.lines...), Output: filepath.Join(dir, "out"), Errors: filepath.Join(dir, "bad")}
		if _, err := run(t, func(s sdk.Scope) error { return Embed(s, nano, files, c.format) }); err != nil {
			t.Fatal(err)
		}
		requests := put(t, filepath.Join(dir, "requests"), line(c.ids[0], "/v1/embeddings", `{"input":"one"}`), line(c.ids[1], "/v1/embeddings", `{"input":"{\"two\": 2}"}`))
		var want []string
		for _, answer := range read(t, reference(t, nano, requests).Output)[1:] {
			text, err := embedding(answer)
			if err != nil || !strings.Contains(text, `"embedding":[`) {
				t.Fatalf("%s, %v", text, err)
			}
			want = append(want, text)
		}
		slices.Sort(want)
		if got := read(t, files.Output)[1:]; !slices.Equal(got, want) {
			t.Errorf("%s: %.100q, want %.100q", c.format, got, want)
		}
		var codes []string
		for _, l := range read(t, files.Errors)[1:] {
			var r batch.Result
			if err := json.Unmarshal([]byte(l), &r); err != nil {
				t.Fatal(err)
			}
			code, _ := r.Failed()
			codes = append(codes, code)
		}
		slices.Sort(codes)
		slices.Sort(c.errors)
		if !slices.Equal(codes, c.errors) {
			t.Errorf("%s: %v, want %v", c.format, codes, c.errors)
		}
	}
}

// TestRefused: settings and files that cannot be used are named before a pipeline runs.
func TestRefused(t *testing.T) {
	good := Files{Input: "in", Output: "out"}
	for _, c := range []struct {
		want string
		m    Model
		f    Files
		form Format
	}{
		{"the input or the output is missing", nano, Files{Output: "out"}, Text},
		{"input, output and errors need a file each", nano, Files{Input: "a", Output: "a"}, Text},
		{`scheme "hdfs" not registered`, nano, Files{Input: "hdfs://a", Output: "b"}, Text},
		{`format is "csv"; it must be text or jsonl`, nano, good, "csv"},
		{"parallel is -1; it must be 1 or more", Model{Parallel: -1, Flight: 1}, good, Text},
		{"flight is 5000; it must be from 1 to 4096", Model{Flight: 5000}, good, Text},
		{"context is -1 and threads is 0", Model{Context: -1}, good, Text},
		{"q3", Model{CacheType: "q3"}, good, Text},
	} {
		_, s := sdk.NewPipelineWithRoot()
		if err := Embed(s, c.m, c.f, c.form); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		if err := Batch(s, c.m, c.f); (err == nil) != (c.form == "csv") {
			t.Errorf("batch: %v, want %s", err, c.want)
		}
	}
}

// TestFails: a worker whose model is missing or another, and a missing input, fail the job by name; the outputs stay as they are.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	files := Files{Input: put(t, filepath.Join(dir, "in"), mixed(12)...), Output: put(t, filepath.Join(dir, "out"), "old"), Errors: put(t, filepath.Join(dir, "bad"), "old")}
	another, missing, none := nano, Model{Path: filepath.Join(dir, "none.gguf")}, files
	another.Identity, none.Input = "another model", filepath.Join(dir, "none-*")
	for _, c := range []struct {
		want string
		m    Model
		f    Files
	}{
		{`the pipeline wants "another model"`, another, files}, {"model none", missing, files}, {"no file has this name", nano, none},
	} {
		_, err := run(t, func(s sdk.Scope) error { return Batch(s, c.m, c.f) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		for _, path := range []string{files.Output, files.Errors} {
			if got := read(t, path); !slices.Equal(got, []string{"", "old"}) {
				t.Errorf("%s: %s has %q", c.want, path, got)
			}
		}
	}
}
