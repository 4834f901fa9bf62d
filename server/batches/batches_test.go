package batches

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"grove/server/access"
	"grove/server/batch"
	"grove/server/wire"
)

// blocked returns a handler that answers once a channel is closed.
func blocked(until chan struct{}) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-until:
			fmt.Fprint(w, `{}`)
		case <-r.Context().Done():
		}
	}
}

// TestBatch: a batch has the answers, byte by byte, that package batch writes of the same file.
func TestBatch(t *testing.T) {
	h := &host{identity: "m"}
	s := open(t, Config{Dir: t.TempDir()}, h)
	defer s.close(t)
	b := s.until(t, "ann", s.begin(t, "ann", lines(50)), completed)
	counts := b["request_counts"].(map[string]any)
	if counts["total"] != 50.0 || counts["completed"] != 50.0 || counts["failed"] != 0.0 || b["error_file_id"] != nil || b["metadata"].(map[string]any)["a"] != "b" || b["completed_at"] == nil {
		t.Errorf("%v", b)
	}
	dir := t.TempDir()
	o := batch.Options{In: filepath.Join(dir, "in"), Out: filepath.Join(dir, "out"), Flight: 3}
	if err := os.WriteFile(o.In, []byte(lines(50)), 0o600); err != nil {
		t.Fatal(err)
	}
	alone, err := batch.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Run(t.Context(), behind{h, h.Owner("@ann")}, "m"); err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(o.Out)
	if got := s.text(t, "ann", b["output_file_id"]); err != nil || sorted(got) != sorted(string(want)) {
		t.Errorf("%s\nwant %s", got, want)
	}
	if left, err := filepath.Glob(s.store.path("*.*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func sorted(text string) string {
	all := strings.SplitAfter(text, "\n")
	slices.Sort(all)
	return strings.Join(all, "")
}

// TestRefusedBatches: what is no batch is refused by name.
func TestRefusedBatches(t *testing.T) {
	stuck := make(chan struct{})
	s := open(t, Config{Dir: t.TempDir(), Open: 2}, &host{handle: blocked(stuck)})
	defer s.close(t)
	defer close(stuck)
	input := s.keep(t, "ann", lines(1))
	const usual = `{"input_file_id":"INPUT","endpoint":"/v1/embeddings","completion_window":"24h"`
	for _, c := range []struct{ body, want string }{
		{`{}`, "completion_window is"},
		{strings.Replace(usual, "24h", "1s", 1) + `}`, "from 1m to 720h"},
		{strings.Replace(usual, "24h", "soon", 1) + `}`, "from 1m to 720h"},
		{strings.Replace(usual, "/v1/embeddings", "/health", 1) + `}`, "endpoint is"},
		{strings.Replace(usual, "/v1/embeddings", "/v1/files", 1) + `}`, "endpoint is"},
		{strings.Replace(usual, "INPUT", "x", 1) + `}`, "there is no file"},
		{usual + `,"output_expires_after":{"anchor":"created_at","seconds":1}}`, "output_expires_after.seconds"},
		{usual + `,"metadata":{"` + strings.Repeat("x", 65) + `":""}}`, "more than 64 bytes"},
		{usual + `,"endpoints":"x"}`, "endpoints"},
	} {
		if status, text := s.ask("ann", "POST", "/v1/batches", "application/json", strings.Replace(c.body, "INPUT", input, 1)); status != 400 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
	}
	body := strings.Replace(usual, "INPUT", input, 1) + `}`
	if status, _ := s.ask("bob", "POST", "/v1/batches", "application/json", body); status != 400 {
		t.Error("a file of another key is taken")
	}
	first := s.get(t, "ann", "POST", "/v1/batches", body)["id"].(string)
	s.get(t, "ann", "POST", "/v1/batches", body)
	if status, text := s.ask("ann", "POST", "/v1/batches", "application/json", body); status != 429 || !strings.Contains(text, "--max-batches") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := s.ask("bob", "GET", "/v1/batches/"+first, "", ""); status != 404 {
		t.Error("a batch of another key is shown")
	}
	if list := s.get(t, "ann", "GET", "/v1/batches?limit=1", ""); list["has_more"] != true || list["first_id"] == first {
		t.Errorf("%v", list)
	}
	if list := s.get(t, "bob", "GET", "/v1/batches", ""); len(list["data"].([]any)) != 0 {
		t.Errorf("%v", list)
	}
}

// TestFaultyLines: a batch with lines that are no requests fails with their numbers, and nothing is asked.
func TestFaultyLines(t *testing.T) {
	h := &host{}
	s := open(t, Config{Dir: t.TempDir()}, h)
	defer s.close(t)
	text := lines(2) + "no JSON\n" + lines(1) + `{"custom_id":"x","method":"POST","url":"/v1/completions","body":{}}` + "\n" + `{"custom_id":"y","method":"POST","url":"/v1/embeddings","body":{"stream":true}}`
	b := s.until(t, "ann", s.begin(t, "ann", text), failed)
	var got []string
	for _, f := range b["errors"].(map[string]any)["data"].([]any) {
		o := f.(map[string]any)
		got = append(got, fmt.Sprintf("%v %v", o["line"], o["code"]))
	}
	if strings.Join(got, ", ") != "3 invalid_json, 4 repeated_custom_id, 5 invalid_url, 6 stream_not_supported" || h.asked.Load() != 0 || b["output_file_id"] != nil {
		t.Errorf("%v, %d asked", got, h.asked.Load())
	}
	b = s.until(t, "ann", s.begin(t, "ann", " \n\n"), failed)
	if text := fmt.Sprint(b["errors"]); !strings.Contains(text, "invalid_file") || !strings.Contains(text, "there is no line") || strings.Contains(text, s.config.Dir) {
		t.Error(text)
	}
}

// TestCancel: a batch that is cancelled keeps its answers, and each other line has an error. One that waits never begins.
func TestCancel(t *testing.T) {
	stuck := make(chan struct{})
	var n atomic.Int64
	s := open(t, Config{Dir: t.TempDir(), Flight: 2}, &host{handle: func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) <= 5 {
			fmt.Fprint(w, `{}`)
		} else {
			blocked(stuck)(w, r)
		}
	}})
	defer s.close(t)
	id := s.begin(t, "ann", lines(20))
	waiting := s.begin(t, "ann", lines(3))
	for n.Load() < 7 {
		s.get(t, "ann", "GET", "/v1/batches/"+id, "")
	}
	s.get(t, "ann", "POST", "/v1/batches/"+waiting+"/cancel", "")
	b := s.until(t, "ann", waiting, cancelled)
	if text := s.text(t, "ann", b["error_file_id"]); strings.Count(text, "batch_cancelled") != 3 || b["output_file_id"] != nil || b["in_progress_at"] != nil {
		t.Errorf("%s, %v", text, b)
	}
	s.get(t, "ann", "POST", "/v1/batches/"+id+"/cancel", "")
	b = s.until(t, "ann", id, cancelled)
	done, rest := s.text(t, "ann", b["output_file_id"]), s.text(t, "ann", b["error_file_id"])
	if strings.Count(done, "\n") != 5 || strings.Count(rest, "batch_cancelled") != 15 {
		t.Errorf("%s\n%s", done, rest)
	}
	for i := range 20 {
		if strings.Count(done+rest, fmt.Sprintf(`"custom_id":"%d"`, i)) != 1 {
			t.Errorf("line %d has not one answer", i)
		}
	}
	if status, text := s.ask("ann", "POST", "/v1/batches/"+id+"/cancel", "application/json", ""); status != 409 || !strings.Contains(text, "a batch that is cancelled cannot be cancelled") {
		t.Errorf("%d %s", status, text)
	}
}

// TestExpiredBatch: when the window has passed, lines without an answer have an error.
func TestExpiredBatch(t *testing.T) {
	c, h := Config{Dir: t.TempDir()}, &host{handle: blocked(make(chan struct{}))}
	s := open(t, c, h)
	id := s.begin(t, "ann", lines(3))
	s.until(t, "ann", id, inProgress)
	s.Stop()
	b := &batchRecord{header: header{ID: id, Owner: "@ann"}}
	if err := s.change(b, func() error { b.Due = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.store.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(clockKey, []byte(`{"time":5}`)) }); err != nil {
		t.Fatal(err)
	}
	s.store.clock.base += 5
	s.close(t)
	s = open(t, c, h)
	defer s.close(t)
	o := s.until(t, "ann", id, expired)
	if text := s.text(t, "ann", o["error_file_id"]); strings.Count(text, "batch_expired") != 3 {
		t.Errorf("%s, %v", text, o)
	}
}

// TestRestart: a batch goes on in the next server with what is left, and fails where the model has changed or its key is gone; what was answered is kept.
func TestRestart(t *testing.T) {
	for _, want := range []string{"", "model_changed", "key_gone"} {
		c := Config{Dir: t.TempDir(), Flight: 1}
		h := &host{identity: "one"}
		var n atomic.Int64
		h.handle = func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) > 10 {
				<-r.Context().Done()
				return
			}
			fmt.Fprint(w, `{}`)
		}
		s := open(t, c, h)
		id := s.begin(t, "ann", lines(30))
		for n.Load() <= 10 {
			s.get(t, "ann", "GET", "/v1/batches/"+id, "")
		}
		s.close(t)
		second := &host{identity: "one", gate: h.gate}
		end, key := failed, "ann"
		switch want {
		case "":
			end = completed
		case "model_changed":
			second.identity = "two"
		case "key_gone":
			if err := h.gate.SetKeys([]access.Key{{Name: "bob", Secret: "bob"}}); err != nil {
				t.Fatal(err)
			}
		}
		s = open(t, c, second)
		if want == "key_gone" {
			for s.host.asked.Load() == 0 && running(s) {
			}
			if err := h.gate.SetKeys([]access.Key{{Name: "ann", Secret: "ann"}}); err != nil {
				t.Fatal(err)
			}
		}
		b := s.until(t, key, id, end)
		left := 30 - strings.Count(s.text(t, "ann", b["output_file_id"]), "\n")
		if want == "" && (left != 0 || second.asked.Load() != 20) || want != "" && (left != 20 || !strings.Contains(fmt.Sprint(b["errors"]), want)) {
			t.Errorf("%q: %d lines are left, %d asked, %v", want, left, second.asked.Load(), b)
		}
		s.close(t)
	}
}

// running reports whether a batch has not ended.
func running(s *site) (open bool) {
	_ = s.store.db.View(func(tx *bolt.Tx) error {
		all, err := list[batchRecord](tx, nil)
		for _, b := range all {
			open = open || !b.Status.ended()
		}
		return err
	})
	return open
}

// TestStorage: a batch whose answers would have too many bytes fails, and what was answered is kept.
func TestStorage(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), Bytes: 6000, Flight: 1}, &host{})
	defer s.close(t)
	b := s.until(t, "ann", s.begin(t, "ann", lines(40)), failed)
	if text := fmt.Sprint(b["errors"]); !strings.Contains(text, "storage_full") || b["output_file_id"] == nil {
		t.Errorf("%v", b)
	}
	if n := s.usage.left("@ann"); n > 0 || n < -300 {
		t.Errorf("%d bytes are left", n)
	}
}

// TestInterrupted: a batch whose files cannot be written waits and goes on, and the interruptions are counted.
func TestInterrupted(t *testing.T) {
	stuck := make(chan struct{})
	s := open(t, Config{Dir: t.TempDir(), retry: time.Millisecond}, &host{handle: blocked(stuck)})
	defer s.close(t)
	s.begin(t, "ann", lines(1))
	id := s.begin(t, "ann", lines(5)) // waits for the first
	b := &batchRecord{header: header{ID: id, Owner: "@ann"}}
	if err := s.change(b, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.store.path(b.Answers), 0o700); err != nil {
		t.Fatal(err)
	}
	close(stuck)
	r := &s.runner
	for broken := int64(0); broken < 2; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		broken = r.broken
		r.mu.Unlock()
	}
	if err := os.Remove(s.store.path(b.Answers)); err != nil {
		t.Fatal(err)
	}
	if o := s.until(t, "ann", id, completed); o["request_counts"].(map[string]any)["completed"] != 5.0 {
		t.Error(o)
	}
}

// TestErrors: errors of the state name no places.
func TestErrors(t *testing.T) {
	for err, want := range map[error]string{
		&os.PathError{Op: "write", Path: "/secret", Err: syscall.ENOSPC}: "disk_full", &os.PathError{Op: "write", Path: "/secret", Err: syscall.EIO}: "state_failed",
	} {
		if e := wire.ErrorOf(storeError(err)); strings.Contains(e.Error(), "secret") || e.Code != want {
			t.Errorf("%v: %s", e, e.Code)
		}
	}
}
