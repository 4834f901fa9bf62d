package server_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"grove/internal/gopher"
	"grove/server"
	"grove/server/access"
	"grove/server/batch"
	"grove/server/batches"
)

// requestLines are requests whose answers are drawn.
func requestLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"%d","method":"POST","url":"/v1/completions","body":{"prompt":"func f%d(","max_tokens":8,"temperature":1}}`+"\n", i, i%7)
	}
	return b.String()
}

// uploadForm is the form of a file of requests.
func uploadForm(t *testing.T, text string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	file, err := w.CreateFormFile("file", "in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Write([]byte(text))
	if err := w.WriteField("purpose", "batch"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// openBatches opens files and batches in a directory.
func openBatches(t *testing.T, dir string) *batches.Service {
	t.Helper()
	s, err := batches.Open(batches.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBatches: a batch beside clients has the lines, but for their order, that grove batch writes of the same file, and its requests count for the key and are logged as others.
func TestBatches(t *testing.T) {
	g := gate(t, access.Config{Keys: []access.Key{{Name: "ann", Secret: "k"}}})
	s := serveTarget(t, server.Config{Access: g, Batches: openBatches(t, t.TempDir())})
	key := []string{"Authorization", "Bearer k"}
	text := requestLines(60)
	body, kind := uploadForm(t, text)
	status, answer, _ := s.do(t, "POST", "/v1/files", body, append(key, "Content-Type", kind)...)
	if status != 200 {
		t.Fatal(status, answer)
	}
	status, answer, _ = s.do(t, "POST", "/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"24h"}`, parse(t, answer).at("id")), append(key, "Content-Type", "application/json")...)
	if status != 200 {
		t.Fatal(status, answer)
	}
	id := parse(t, answer).at("id").(string)
	var b object
	for end := time.Now().Add(time.Minute); b.at("status") != "completed"; time.Sleep(10 * time.Millisecond) {
		_, answer, _ = s.do(t, "GET", "/v1/batches/"+id, "", key...)
		if b = parse(t, answer); time.Now().After(end) {
			t.Fatal(answer)
		}
	}
	_, got, _ := s.do(t, "GET", "/v1/files/"+b.at("output_file_id").(string)+"/content", "", key...)

	dir := t.TempDir()
	o := batch.Options{In: filepath.Join(dir, "in"), Out: filepath.Join(dir, "out"), Flight: 4}
	if err := os.WriteFile(o.In, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	alone, err := batch.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Run(t.Context(), load(t, server.Config{}, source(modelName, gopher.Model(), options)), "m"); err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(o.Out)
	if err != nil || sortedLines(got) != sortedLines(string(want)) {
		t.Errorf("%s\nwant\n%s", sortedLines(got), sortedLines(string(want)))
	}
	if _, text, _ := s.do(t, "GET", "/metrics", "", key...); !strings.Contains(text, "operator_only") {
		t.Error("the key is no operator's")
	}
}

func sortedLines(text string) string {
	all := strings.SplitAfter(text, "\n")
	slices.Sort(all)
	return strings.Join(all, "")
}

// TestRestartedBatch: a batch goes on in another server of the same model, which shows that its identity outlives a server.
func TestRestartedBatch(t *testing.T) {
	dir := t.TempDir()
	kept := openBatches(t, dir)
	s := server.New(server.Config{Batches: kept})
	if err := s.Add(source(modelName, gopher.Model(), options)); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	one := &site{s, h.URL}
	body, kind := uploadForm(t, requestLines(60))
	_, answer, _ := one.do(t, "POST", "/v1/files", body, "Content-Type", kind)
	id := one.post(t, "/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"1h"}`, parse(t, answer).at("id"))).at("id").(string)
	done := func(s *site) float64 {
		_, text, _ := s.do(t, "GET", "/v1/batches/"+id, "")
		return parse(t, text).at("request_counts/completed").(float64)
	}
	for done(one) < 10 {
		time.Sleep(time.Millisecond)
	}
	h.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	two := serveTarget(t, server.Config{Batches: openBatches(t, dir)})
	for end := time.Now().Add(time.Minute); done(two) < 60; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_, text, _ := two.do(t, "GET", "/v1/batches/"+id, "")
			t.Fatal(text)
		}
	}
}

// TestUploads: a server without a state says so, and no page sends a form to one without keys.
func TestUploads(t *testing.T) {
	body, kind := uploadForm(t, "x")
	s := serveTarget(t, server.Config{})
	if status, text, _ := s.do(t, "POST", "/v1/files", body, "Content-Type", kind); status != 404 || !strings.Contains(text, "grove serve --state-dir DIR") {
		t.Errorf("%d %s", status, text)
	}
	s = serveTarget(t, server.Config{Batches: openBatches(t, t.TempDir())})
	for header, want := range map[string]int{"X-Other": 200, "Origin": 415, "Referer": 415, "Cookie": 415} {
		value := s.url
		if header == "X-Other" {
			value = "x"
		}
		if status, text, _ := s.do(t, "POST", "/v1/files", body, "Content-Type", kind, header, value); status != want {
			t.Errorf("%s: %d %s", header, status, text)
		}
	}
	for _, c := range []string{"application/json", "multipart/mixed; boundary=x", ""} {
		if status, text, _ := s.do(t, "POST", "/v1/files", "{}", "Content-Type", c); status != 415 || !strings.Contains(text, "multipart/form-data") {
			t.Errorf("%q: %d %s", c, status, text)
		}
	}
	if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, "grove_batches_running 0") {
		t.Error("the metrics have no batches")
	}
}
