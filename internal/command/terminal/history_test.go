package terminal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHistory keeps messages across runs, for their owner alone, and no secrets.
func TestHistory(t *testing.T) {
	h := &history{filepath.Join(t.TempDir(), "grove", "history")}
	for _, m := range []string{"one", "two\nlines \x1b[2J", " secret", "", "\n", strings.Repeat("x", historyMessage+1), "日本 👨‍👩‍👧"} {
		if err := h.add(m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.read()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two\nlines \x1b[2J", "日本 👨‍👩‍👧"}, got); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(h.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
}

// TestHistoryBound keeps the latest messages of a file that has grown too long.
func TestHistoryBound(t *testing.T) {
	h := &history{filepath.Join(t.TempDir(), "history")}
	var b strings.Builder
	for i := range historyMessages + 10 {
		m, _ := json.Marshal(strings.Repeat("x", i+1))
		b.Write(append(m, '\n'))
	}
	if err := os.WriteFile(h.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := h.read()
		if err != nil || len(got) != historyMessages || len(got[0]) != 11 {
			t.Fatalf("%d messages, %v", len(got), err)
		}
	}
	if info, err := os.Stat(h.path); err != nil || info.Mode().Perm() != 0o600 || info.Size() >= int64(b.Len()) {
		t.Errorf("the file has mode %v and %d bytes, %v", info.Mode(), info.Size(), err)
	}
}

// TestHistoryWrong reports histories that cannot be used, and uses what can be.
func TestHistoryWrong(t *testing.T) {
	dir := t.TempDir()
	path := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name, path, add, read string
		messages              int
	}{
		{"damaged", path("damaged", "\"a\"\n{}\n\xff\xfe\n\"b\"\n\"c", 0o600), "", "3 lines are damaged and left out", 2},
		{"a directory", dir, "is a directory", "it is a directory; a regular file is needed", 0},
		{"below a file", filepath.Join(path("file", "", 0o600), "history"), "not a directory", "not a directory", 0},
		{"a device", os.DevNull, "", "it is a device; a regular file is needed", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &history{c.path}
			got, err := h.read()
			if len(got) != c.messages || err == nil || !strings.Contains(err.Error(), c.read) {
				t.Errorf("read gives %q, %v", got, err)
			}
			if c.add == "" {
				return
			}
			if err := h.add("x"); err == nil || !strings.Contains(err.Error(), c.add) {
				t.Errorf("add gives %v", err)
			}
		})
	}
}

// FuzzHistory reads hostile files of messages: no message is empty or beyond its bound, and what is written reads back.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("\"one\"\n\"two\\nlines\"\n{}\n\"\"\n\"cut"))
	f.Add([]byte("\"\\ud800\x00\"\n\xff\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, damaged := parseHistory(data)
		if len(messages)+damaged > bytes.Count(data, []byte("\n"))+1 {
			t.Errorf("%d messages and %d lines that are none", len(messages), damaged)
		}
		var again []byte
		for _, m := range messages {
			if m == "" || len(m) > historyMessage {
				t.Errorf("a message has %d bytes", len(m))
			}
			line, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			again = append(append(again, line...), '\n')
		}
		if got, damaged := parseHistory(again); damaged != 0 || !slices.Equal(got, messages) {
			t.Errorf("%q reads back as %q", messages, got)
		}
	})
}
