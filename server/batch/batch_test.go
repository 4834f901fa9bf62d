package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/server"
	"grove/server/batch"
)

// served returns a server of a model inside the program.
func served(tb testing.TB, name string, parallel int) *server.Server {
	tb.Helper()
	s := server.New(server.Config{})
	open := func(_ context.Context, memory uint64) (*grove.Model, error) {
		return grove.OpenBytes(gopher.Named(name), grove.Options{Parallel: parallel, Memory: memory, Forget: true, ChatTemplate: "chatml"})
	}
	if err := s.Add(server.Entry{Name: name, Path: name, Open: open}); err != nil {
		tb.Fatal(err)
	}
	if err := s.Load(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// run runs a batch to its end.
func run(tb testing.TB, h http.Handler, o batch.Options) batch.Report {
	tb.Helper()
	b, err := batch.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.Run(tb.Context(), h, "a model"); err != nil {
		tb.Fatal(err)
	}
	if err := b.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Report()
}

// echo answers a request with its body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json":
		w.WriteHeader(http.StatusTeapot)
	case strings.Contains(string(body), `"refuse"`):
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"no","code":"refused"}}`)
	case strings.Contains(string(body), `"panic"`):
		panic("the handler is ill")
	default:
		fmt.Fprintf(w, `{"id":"echo-0123456789-abcdef","created":17,"url":%q,"body":%s,"timings":{"ms":3}}`, r.URL.Path, body)
	}
})

// line makes a line of a batch.
func line(id, url, body string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":%q,"body":%s}`, id, url, body)
}

// put writes lines into a new file.
func put(tb testing.TB, lines ...string) batch.Options {
	tb.Helper()
	in := filepath.Join(tb.TempDir(), "in.jsonl")
	if err := os.WriteFile(in, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
	return batch.Options{In: in, Out: filepath.Join(filepath.Dir(in), "out.jsonl"), Flight: 4}
}

// read returns the lines of a file, sorted.
func read(tb testing.TB, path string) []string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if lines[0] == "" {
		return nil
	}
	slices.Sort(lines)
	return lines
}

func errorsOf(o batch.Options) string { return strings.TrimSuffix(o.Out, ".jsonl") + ".errors.jsonl" }

// TestFormat compares answers and failures with what they must be, byte by byte.
func TestFormat(t *testing.T) {
	o := put(t,
		line("a", "/v1/embeddings", `{"input":"x"}`), "", line("b", "/v1/completions", `{"prompt":"y","seed":7}`), `{"custom_id":`, line("a", "/v1/embeddings", `{}`),
		line("c", "/v1/new", `{"refuse":1}`))
	report := run(t, echo, o)
	report.Seconds = 0
	want := batch.Report{Lines: 5, Answered: 2, Failed: 3, Failures: map[string]int{"invalid_json": 1, "repeated_custom_id": 1, "refused": 1}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
	if codes := report.Codes(); !slices.Equal(codes, []string{"invalid_json", "refused", "repeated_custom_id"}) {
		t.Error(codes)
	}
	answers := []string{
		`{"id":"batch_req_ID","custom_id":"a","response":{"status_code":200,"request_id":"batch-ID","body":{"id":"echo-ID","created":0,"url":"/v1/embeddings","body":{"input":"x"}}},"error":null}`,
		`{"id":"batch_req_ID","custom_id":"b","response":{"status_code":200,"request_id":"batch-ID","body":{"id":"echo-ID","created":0,"url":"/v1/completions","body":{"prompt":"y","seed":7}}},"error":null}`,
	}
	failures := []string{
		`{"id":"batch_req_ID","custom_id":"c","line":6,"response":{"status_code":400,"request_id":"batch-ID","body":{"error":{"message":"no","code":"refused"}}},"error":null}`,
		`{"id":"batch_req_line_4","custom_id":null,"line":4,"response":null,"error":{"code":"invalid_json","message":"the line ends within its JSON"}}`,
		`{"id":"batch_req_line_5","custom_id":"a","line":5,"response":null,"error":{"code":"repeated_custom_id","message":"custom_id is that of line 1; it must be a text that no other line has"}}`,
	}
	for path, want := range map[string][]string{o.Out: answers, errorsOf(o): failures} {
		var got []string
		for _, l := range read(t, path) {
			var r struct{ ID string }
			if err := json.Unmarshal([]byte(l), &r); err != nil {
				t.Fatal(err)
			}
			if id, ok := strings.CutPrefix(r.ID, "batch_req_"); ok && len(id) == 24 {
				l = strings.ReplaceAll(l, id, "ID")
			}
			got = append(got, l)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", path, diff)
		}
	}
}

// TestFaults: each line that is none is named by a code.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ line, code string }{
		{`x`, "invalid_json"},
		{`{} {}`, "invalid_json"},
		{`[]`, "invalid_json"},
		{`{"custom_id":"a","method":"POST","url":"/v1/completions","body":{},"priority":1}`, "invalid_json"},
		{`{"custom_id":7,"method":"POST","url":"/v1/completions","body":{}}`, "invalid_json"},
		{`{"method":"POST","url":"/v1/completions","body":{}}`, "missing_custom_id"},
		{`{"custom_id":"","method":"POST","url":"/v1/completions","body":{}}`, "missing_custom_id"},
		{line(strings.Repeat("x", 513), "/v1/completions", "{}"), "invalid_custom_id"},
		{`{"custom_id":"a","method":"GET","url":"/v1/models","body":{}}`, "invalid_method"},
		{line("a", "/models/unload", "{}"), "invalid_url"},
		{line("a", "/v1/load_lora_adapter", "{}"), "invalid_url"},
		{line("a", "/v1/batches/x", "{}"), "invalid_url"},
		{line("a", "http://other/v1/completions", "{}"), "invalid_url"},
		{line("a", "/v1/../models/unload", "{}"), "invalid_url"},
		{line("a", "/v1/completions", "[]"), "invalid_body"},
		{line("a", "/v1/completions", "null"), "invalid_body"},
		{`{"custom_id":"a","method":"POST","url":"/v1/completions"}`, "invalid_body"},
		{line("a", "/v1/completions", `{"stream":true}`), "stream_not_supported"},
		{line("a", "/v1/completions", `{"prompt":"`+strings.Repeat("x", 16<<20)+`"}`), "line_too_long"},
		{line("a", "/v1/completions", `{"panic":1}`), "handler_failed"},
	} {
		t.Run(clip(c.line), func(t *testing.T) {
			o := put(t, c.line, line("other", "/v1/completions", "{}"))
			b, err := batch.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			err = b.Run(t.Context(), echo, "a model")
			if r := b.Report(); err != nil || r.Answered != 1 || r.Failures[c.code] != 1 || r.Failed != 1 {
				t.Errorf("%v, %+v; want %s", err, r, c.code)
			}
		})
	}
}

func clip(text string) string { return text[:min(len(text), 60)] }

// TestSeeds: a request without a seed gets one of its content, on routes that have seeds; equal bodies of two lines get two.
func TestSeeds(t *testing.T) {
	lines := []string{
		line("a", "/v1/completions", `{"prompt":"x"}`), line("b", "/v1/completions", ` { "prompt":"x" }`), line("c", "/v1/chat/completions", `{}`), line("d", "/v1/responses", `{"seed":null}`), line("e", "/v1/embeddings", `{}`),
	}
	var seeds []map[string]string
	for range 2 {
		o, found := put(t, lines...), map[string]string{}
		run(t, echo, o)
		for _, l := range read(t, o.Out) {
			var r struct {
				CustomID string `json:"custom_id"`
				Response struct {
					Body struct{ Body map[string]json.RawMessage }
				}
			}
			if err := json.Unmarshal([]byte(l), &r); err != nil {
				t.Fatal(err)
			}
			found[r.CustomID] = string(r.Response.Body.Body["seed"])
		}
		seeds = append(seeds, found)
	}
	one := seeds[0]
	if diff := cmp.Diff(one, seeds[1]); diff != "" {
		t.Error(diff)
	}
	if one["a"] == "" || one["a"] == one["b"] || one["c"] == "" || one["d"] != "null" || one["e"] != "" || len(one["a"]) > 16 {
		t.Errorf("the seeds are %v", one)
	}
}

// TestOrder: requests with one beginning follow each other.
func TestOrder(t *testing.T) {
	var lines, got []string
	for i := range 30 {
		lines = append(lines, line(fmt.Sprint(i), "/v1/completions", fmt.Sprintf(`{"max_tokens":%d,"seed":1,"prompt":"group %d, text %02d"}`, i, i%3, i)))
	}
	o := put(t, lines...)
	o.Flight = 1
	run(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Prompt string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got = append(got, body.Prompt)
		fmt.Fprint(w, "{}")
	}), o)
	if !slices.IsSorted(got) || len(got) != 30 {
		t.Error(got)
	}
}

// mixed are lines of all kinds, for models and for echo.
func mixed(n int) (lines []string) {
	for i := range n {
		id := fmt.Sprintf("line-%d", i)
		switch i % 6 {
		case 0:
			lines = append(lines, line(id, "/v1/completions", fmt.Sprintf(`{"prompt":"func Name%d(","max_tokens":%d,"temperature":1,"n":2,"logprobs":2}`, i%12, 1+i%7)))
		case 1:
			lines = append(lines, line(id, "/v1/chat/completions", `{"messages":[{"role":"user","content":"func main"}],"max_tokens":5,"prediction":{"type":"content","content":"func main() {"}}`))
		case 2:
			lines = append(lines, line(id, "/v1/responses", `{"input":"type T struct","max_output_tokens":16}`))
		case 3:
			lines = append(lines, line(id, "/v1/embeddings", fmt.Sprintf(`{"input":["a","b%d"]}`, i)))
		case 4:
			lines = append(lines, line(id, "/v1/messages", `{"messages":[{"role":"user","content":"func"}],"max_tokens":4,"seed":3}`))
		default:
			lines = append(lines, []string{"{", line(id, "/v1/completions", `{"model":"none"}`), line("line-0", "/v1/completions", "{}"), line(id, "/v1/none", "{}")}[i/6%4])
		}
	}
	return lines
}

// TestSame: a model's answers to a batch are the same bytes with any number of slots, in any order, on a server that has answered before.
func TestSame(t *testing.T) {
	lines := mixed(120)
	var answers, failures []string
	for i, slots := range []int{1, 4, 16} {
		s := served(t, gopher.NanoName, slots)
		for range 2 {
			o := put(t, lines...)
			o.Flight = 2*slots - 1
			r := run(t, s, o)
			if r.Answered != 100 || r.Failed != 20 {
				t.Fatalf("%+v\n%s", r, strings.Join(read(t, errorsOf(o)), "\n"))
			}
			if i == 0 && answers == nil {
				answers, failures = read(t, o.Out), read(t, errorsOf(o))
			}
			if diff := cmp.Diff(answers, read(t, o.Out)); diff != "" {
				t.Fatalf("%d slots:\n%s", slots, diff)
			}
			if diff := cmp.Diff(failures, read(t, errorsOf(o))); diff != "" {
				t.Fatalf("%d slots:\n%s", slots, diff)
			}
		}
	}
}

// TestResume ends batches at many places, leaves a torn line, and goes on: each line has exactly one answer, that of an undisturbed batch.
func TestResume(t *testing.T) {
	lines := mixed(100)
	whole := put(t, lines...)
	want := run(t, echo, whole)
	for _, after := range []int{0, 1, 7, 40, 99, 100} {
		o := put(t, lines...)
		for round := 0; ; round++ {
			if round == 200 {
				t.Fatal("the batch does not end")
			}
			var n atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			o.Progress = func(int, int) {
				if int(n.Add(1)) >= after {
					cancel()
				}
			}
			b, err := batch.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			left := b.Left()
			err = b.Run(ctx, echo, "a model")
			if n.Load() > 0 && b.Left() >= left {
				t.Error("a line is done and as many are left")
			}
			done := b.Left() == 0
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			cancel()
			if done {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			for _, path := range []string{o.Out, errorsOf(o)} { // as a kill within a write would
				tear(t, path)
			}
		}
		for _, of := range []func(batch.Options) string{func(o batch.Options) string { return o.Out }, errorsOf} {
			if diff := cmp.Diff(read(t, of(whole)), read(t, of(o))); diff != "" {
				t.Errorf("after %d lines each:\n%s", after, diff)
			}
		}
		got := run(t, echo, o)
		got.Seconds, want.Seconds, want.Before = 0, 0, 100
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a batch that is done:\n%s", diff)
		}
	}
}

// tear appends the beginning of a line.
func tear(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"id":"batch_req_0","custom_id":"line-`)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRefused: files that are not those of the batch are refused by name, and stay as they are.
func TestRefused(t *testing.T) {
	one := line("a", "/v1/embeddings", "{}")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, want string
		change     func(o *batch.Options)
	}{
		{"no input", "no such file", func(o *batch.Options) { o.In += "x" }},
		{"a folder", "it is no regular file", func(o *batch.Options) { o.In = filepath.Dir(o.In) }},
		{"an empty input", "there is no line", func(o *batch.Options) { write(o.In, "\n \n") }},
		{"one file", "are one file", func(o *batch.Options) { o.Out = o.In }},
		{"flight", "0 requests at a time; there must be from 1 to 4096", func(o *batch.Options) { o.Flight = 0 }},
		{"another input", "the output was begun for another file, of 1 lines; this one has 2: name another output", func(o *batch.Options) { write(o.In, one+"\n"+line("b", "/v1/embeddings", "{}")) }},
		{"another version", "the state has version 9, and this grove has version 1", func(o *batch.Options) { write(o.Out+".state", `{"version":9}`) }},
		{"no state", "it is no state of a batch", func(o *batch.Options) { write(o.Out+".state", `{"ver`) }},
		{"a state that is missing", "no batch is known to have written it", func(o *batch.Options) {
			if err := os.Remove(o.Out + ".state"); err != nil {
				t.Fatal(err)
			}
		}},
		{"an output of something else", "line 1: invalid character", func(o *batch.Options) { write(o.Out, "some text\n") }},
		{"another line's answer", "line 1: it is of no line of the requests", func(o *batch.Options) {
			write(o.Out, `{"id":"x","custom_id":"z","response":{"status_code":200,"request_id":"x","body":{}},"error":null}`+"\n")
		}},
		{"two answers", "line 2: line 1 of the requests has two answers", func(o *batch.Options) {
			text, err := os.ReadFile(o.Out)
			if err != nil {
				t.Fatal(err)
			}
			write(o.Out, string(text)+string(text))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := put(t, one)
			run(t, echo, o)
			c.change(&o)
			before := readAll(t, o.Out)
			b, err := batch.Open(o)
			if err == nil {
				b.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if after := readAll(t, o.Out); after != before {
				t.Errorf("the output was %q and is %q", before, after)
			}
		})
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// TestModel: an output goes on with the model with which it was begun.
func TestModel(t *testing.T) {
	o := put(t, line("a", "/v1/embeddings", "{}"), line("b", "/v1/embeddings", "{}"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct{ model, want string }{{"one", "context canceled"}, {"two", "the output was begun with one, and now there is two"}, {"one", "context canceled"}} {
		b, err := batch.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Run(ctx, echo, c.model); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.model, err, c.want)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLocked: of several batches with one output, one runs.
func TestLocked(t *testing.T) {
	o := put(t, line("a", "/v1/embeddings", "{}"))
	b, err := batch.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			if _, err := batch.Open(o); err != nil && strings.Contains(err.Error(), "another batch runs with this output") {
				refused.Add(1)
			}
		})
	}
	others.Wait()
	if refused.Load() != 4 {
		t.Errorf("%d of 4 others are refused", refused.Load())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, echo, o)
}

// TestSearchLines: lines whose searches need several slots at once wait for them: none is lost, and two runs with other slots, and other lines beside, have the same answers; the
// counts of messages do not tell what was in the cache.
func TestSearchLines(t *testing.T) {
	story := strings.Repeat("func main() { fmt.Println(1) } ", 12)
	var lines []string
	for i, search := range []string{"beam,n=4", "adadec", "groups,n=3", "smc,n=4,power=2,block=4", "cntp,n=3,low=0,high=1", "best,n=4", "", "beam,n=2"} {
		for j := range 5 {
			body := fmt.Sprintf(`{"prompt":"func f%d() {","max_tokens":10,"temperature":1,"search":%q}`, j, search)
			if search == "" {
				body = fmt.Sprintf(`{"prompt":"func f%d() {","max_tokens":30}`, j)
			}
			lines = append(lines, line(fmt.Sprint(i, ".", j), "/v1/completions", body),
				line(fmt.Sprint("m", i, ".", j), "/v1/messages", fmt.Sprintf(`{"max_tokens":4,"temperature":0,"messages":[{"role":"user","content":%q}]}`, story+fmt.Sprint(j))))
		}
	}
	var want []string
	for _, parallel := range []int{4, 5, 8} {
		o := put(t, lines...)
		o.Flight = batch.Flight(parallel)
		s := served(t, gopher.NanoName, parallel)
		for range 2 { // the second run finds the prompts in the cache
			o.Out += "x"
			o.Errors = o.Out + ".errors"
			if r := run(t, s, o); r.Failed != 0 || r.Answered != len(lines) {
				t.Errorf("%d slots: %+v", parallel, r)
			}
			got := read(t, o.Out)
			if want == nil {
				want = got
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%d slots (-want +got):\n%s", parallel, d)
			}
		}
	}
}
