package batch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// busy refuses so many requests for now.
type busy struct {
	status      int // 0: 503
	mu          sync.Mutex
	left, asked int
}

// ServeHTTP implements [http.Handler].
func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked++; b.left > 0 {
		b.left--
		w.WriteHeader(cmp.Or(b.status, http.StatusServiceUnavailable))
		fmt.Fprint(w, `{"error":{"code":"memory_full"}}`)
		return
	}
	fmt.Fprint(w, `{}`)
}

// TestBusy: a request that a server cannot take now is sent again, and fails in the end; a full queue is waited for as long as it takes.
func TestBusy(t *testing.T) {
	for _, c := range []struct {
		status, refusals, asked int
		code                    string
	}{{503, 0, 1, ""}, {503, 3, 4, ""}, {503, 11, 12, ""}, {503, 12, 12, "memory_full"}, {429, 3, 4, ""}, {429, 400, 401, ""}} {
		synctest.Test(t, func(t *testing.T) {
			h := &busy{status: c.status, left: c.refusals}
			r, err := Answer(t.Context(), h, &Request{url: "/v1/completions"})
			if err != nil {
				t.Fatal(err)
			}
			if code, _ := r.Failed(); code != c.code || h.asked != c.asked {
				t.Errorf("%d refusals: asked %d times, %q", c.refusals, h.asked, code)
			}
		})
	}
}

// TestSettle: what differs between two runs is taken out, and nothing else.
func TestSettle(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"id":"chatcmpl-abcdefghijk-123","created":1795540570,"x":"see abcdefghijk-123","timings":{"a":1}}`, `{"id":"chatcmpl-NAME","created":0,"x":"see NAME"}`},
		{`{"id":"a","created_at":null,"completed_at":5}`, `{"id":"a","created_at":null,"completed_at":0}`},
		{`{"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":2},"other":null}}`, `{"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"other":null}}`},
		{`{"usage":{"input_tokens":35,"cache_creation_input_tokens":0,"cache_read_input_tokens":192,"output_tokens":5}}`, `{"usage":{"input_tokens":227,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5}}`},
		{`{"usage":{"input_tokens":35,"input_tokens_details":{"cached_tokens":30}}}`, `{"usage":{"input_tokens":35,"input_tokens_details":{"cached_tokens":0}}}`},
		{`{"data":[{"created":5,"timings":1}],"usage":null,"id":7}`, `{"data":[{"created":5,"timings":1}],"usage":null,"id":7}`},
		{` { "a" : 1.50 } `, `{"a":1.50}`},
		{`[]`, "the answer is no JSON object"},
		{``, "the answer is no JSON object"},
		{`{"a":1`, "jsontext: unexpected EOF after offset 6"},
		{`{"a":1,"b"}`, `jsontext: invalid character '}' after object name (expecting ':') within "/b" after offset 10`},
		{`{"a":"x<y\u00e9","a":[1, 2]}`, `{"a":"x<y\u00e9","a":[1, 2]}`},
	} {
		got, err := settle([]byte(c.body), "NAME")
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != c.want {
			t.Errorf("%s\ngives %s\nwant  %s", c.body, got, c.want)
		}
	}
}

// TestFull: where an output takes no more, the batch ends with the reason, what is there stays, and another run goes on.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	o := Options{In: filepath.Join(dir, "in"), Out: filepath.Join(dir, "out"), Flight: 3}
	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, `{"custom_id":"%d","method":"POST","url":"/v1/embeddings","body":{}}`+"\n", i)
	}
	if err := os.WriteFile(o.In, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	file := b.out.file
	b.o.Progress = func(done, _ int) {
		if done == 7 {
			b.out.mu.Lock()
			b.out.file, err = os.Open(o.Out) // which takes no writes
			b.out.mu.Unlock()
		}
	}
	if err := b.Run(t.Context(), &busy{}, "m"); err == nil || !strings.Contains(err.Error(), "all lines before are kept: run the same command again once it can be written") {
		t.Error(err)
	}
	_ = b.Close() // it cannot sync
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err = Open(o); err != nil {
		t.Fatal(err)
	}
	if n := b.Report().Before; n < 7 || n > 7+3 {
		t.Errorf("%d lines were kept", n)
	}
	if err := b.Run(t.Context(), &busy{}, "m"); err != nil || b.Report().Answered != 20 {
		t.Errorf("%v, %+v", err, b.Report())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzLine: any line is a request or a fault; the body of a request is an object as before, but for the seed.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"x"}}`))
	f.Add([]byte(`{"custom_id":"a","method":"POST","url":"/v1/responses","body": { } }`))
	f.Add([]byte(`{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"stream":true}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		q, bad := Parse(1, line)
		if q == nil {
			t.Fatal("no request, not even one with a name")
		}
		if bad != nil {
			return
		}
		var body map[string]json.RawMessage
		if err := json.Unmarshal(q.body, &body); err != nil {
			t.Fatalf("%s: %v", q.body, err)
		}
		if q.id == "" || len(q.id) > MaxCustomID || !strings.HasPrefix(q.url, "/v1/") {
			t.Errorf("%+v", q)
		}
	})
}

// FuzzSettle: an answer that is settled is an object, and settling it again changes nothing.
func FuzzSettle(f *testing.F) {
	f.Add([]byte(`{"id":"chatcmpl-abcdefghijk-123","created":1,"usage":{"x":{"cached_tokens":1}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		one, err := settle(body, "012345678901234567890123")
		if err != nil {
			return
		}
		two, err := settle(one, "012345678901234567890123")
		if err != nil || !json.Valid(one) || !bytes.Equal(one, two) {
			t.Errorf("%s\n%s\n%s, %v", body, one, two, err)
		}
	})
}

// TestSort: requests that begin alike stand together, behind the first of them by as many as are under way at a time, and none is lost.
func TestSort(t *testing.T) {
	const flight = 4
	var window []*Request
	for i, name := range []string{"a", "b", "c", "short", "a", "b", "a", "short", "c", "a", "a", "b"} {
		text := fmt.Sprintf("%s%02d", name, i)
		if name != "short" {
			text = strings.Repeat(name, together) + fmt.Sprintf("%02d", i)
		}
		window = append(window, &Request{index: i, url: "/v1/completions", text: json.RawMessage(text)})
	}
	first, last, seen := map[string]int{}, map[string]int{}, map[int]bool{}
	got := ""
	for at, q := range sort(window, flight) {
		name := string(q.text[:1])
		if i, ok := first[name]; !ok {
			first[name] = at
		} else if at < i+flight && name != "s" {
			t.Errorf("%s stands at %d, and the first like it at %d", name, at, i)
		}
		if q.index < last[name] {
			t.Errorf("%s: line %d stands behind line %d", name, q.index, last[name])
		}
		last[name], seen[q.index] = q.index, true
		got += name
	}
	if got != "abcsaaaabbcs" || len(seen) != len(window) {
		t.Errorf("the order is %s, of %d requests", got, len(seen))
	}
}
