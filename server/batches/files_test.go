package batches

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// TestFiles: a file is kept, listed and read by its key alone, outlives the server, and is deleted.
func TestFiles(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	s := open(t, c, &host{})
	var ids []string
	for i := range 5 {
		ids = append(ids, s.keep(t, "ann", fmt.Sprintf("text %d", i)))
	}
	s.close(t)
	s = open(t, c, &host{})
	defer s.close(t)
	if got := s.text(t, "ann", ids[3]); got != "text 3" {
		t.Errorf("%q", got)
	}
	for _, path := range []string{"/v1/files/" + ids[0], "/v1/files/" + ids[0] + "/content", "/v1/files/x", "/v1/files/..%2f..%2fbatches.db/content"} {
		if status, text := s.ask("bob", "GET", path, "", ""); status != 404 || !strings.Contains(text, `"not_found"`) {
			t.Errorf("%s of another key: %d %s", path, status, text)
		}
	}
	for query, want := range map[string]string{
		"": "43210", "?order=asc&limit=2": "01+", "?limit=2": "43+", "?after=" + ids[2] + "&limit=9": "10", "?purpose=batch_output": "", "?purpose=batch&limit=5": "43210",
	} {
		list := s.get(t, "ann", "GET", "/v1/files"+query, "")
		got := ""
		for _, f := range list["data"].([]any) {
			got += fmt.Sprint(indexOf(ids, f.(map[string]any)["id"].(string)))
		}
		if list["has_more"] == true {
			got += "+"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if o := s.get(t, "ann", "DELETE", "/v1/files/"+ids[3], ""); o["deleted"] != true {
		t.Error(o)
	}
	if status, _ := s.ask("ann", "GET", "/v1/files/"+ids[3], "", ""); status != 404 {
		t.Error("a file that was deleted is there")
	}
	if n := s.usage.left("@ann"); n != storedBytes-4*6 {
		t.Errorf("%d bytes are left", n)
	}
}

func indexOf(all []string, one string) int {
	for i, s := range all {
		if s == one {
			return i
		}
	}
	return -1
}

// TestForms: what is no form of a file is refused by name, and leaves nothing on the disk.
func TestForms(t *testing.T) {
	c := Config{Dir: t.TempDir(), Upload: 100, Bytes: 150}
	s := open(t, c, &host{})
	defer s.close(t)
	kept := s.keep(t, "ann", strings.Repeat("x", 80))
	kind, whole := formOf(t, "file", "x", "purpose", "batch")
	for _, f := range []struct {
		fields []string
		status int
		want   string
	}{
		{[]string{"purpose", "batch"}, 400, "file is missing"},
		{[]string{"file", "x"}, 400, `purpose is \"\"`},
		{[]string{"file", "x", "purpose", "fine-tune"}, 400, "files are for batches alone"},
		{[]string{"file", "", "purpose", "batch"}, 400, "file is empty"},
		{[]string{"file", "x", "file", "y", "purpose", "batch"}, 400, "twice"},
		{[]string{"file", "x", "purpose", "batch", "name", "y"}, 400, "no such field"},
		{[]string{"file", "x", "purpose", "batch", "expires_after[anchor]", "now"}, 400, "must be created_at"},
		{[]string{"file", "x", "purpose", "batch", "expires_after[seconds]", "5"}, 400, "from 3600 to 2592000"},
		{[]string{"file", "x", "purpose", "batch", "expires_after[seconds]", "many"}, 400, "from 3600 to 2592000"},
		{[]string{"purpose", strings.Repeat("x", 2000)}, 400, "more than 1024 bytes"},
		{[]string{"file", strings.Repeat("x", 101), "purpose", "batch"}, 413, "file_too_large"},
		{[]string{"file", strings.Repeat("x", 71), "purpose", "batch"}, 507, "storage_full"},
	} {
		kind, body := formOf(t, f.fields...)
		if status, text := s.ask("ann", "POST", "/v1/files", kind, body); status != f.status || !strings.Contains(text, f.want) {
			t.Errorf("%.80q: %d %s", f.fields, status, text)
		}
	}
	for _, f := range []struct{ kind, body, want string }{
		{kind, whole[:len(whole)/2], "cut off"}, {"application/json", "{}", "has no form"}, {"multipart/form-data", whole, "has no form"},
		{kind, strings.Repeat("x", 300), "cut off"},
	} {
		if status, text := s.ask("ann", "POST", "/v1/files", f.kind, f.body); status < 400 || status >= 500 || !strings.Contains(text, f.want) {
			t.Errorf("%.60q: %d %s", f.body, status, text)
		}
	}
	entries, err := os.ReadDir(filepath.Join(c.Dir, filesDir))
	if err != nil || len(entries) != 1 || entries[0].Name() != kept || s.usage.left("@ann") != 70 {
		t.Errorf("%v, %v; %d bytes are left", entries, err, s.usage.left("@ann"))
	}
	s.keep(t, "bob", strings.Repeat("x", 90)) // has a quota of its own
}

// TestState: a state that another server uses, of another version or of no grove is refused by name. What a killed server left is removed.
func TestState(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	s := open(t, c, &host{})
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "another server uses it") {
		t.Error(err)
	}
	kept := s.keep(t, "ann", "x")
	for _, name := range []string{"upload-1", "file-0123", "file-0123.state", "note"} {
		if err := os.WriteFile(s.store.path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.close(t)
	s = open(t, c, &host{})
	var left []string
	entries, _ := os.ReadDir(filepath.Join(c.Dir, filesDir))
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if strings.Join(left, " ") != kept+" note" {
		t.Error(left)
	}
	if err := s.store.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(versionKey, []byte("7")) }); err != nil {
		t.Fatal(err)
	}
	s.close(t)
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "the state has version 7, and this grove has version 1") {
		t.Error(err)
	}
	for _, text := range []string{"no database", strings.Repeat("x", 1<<16)} {
		if err := os.WriteFile(filepath.Join(c.Dir, storeFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "it is no state of grove's") {
			t.Error(err)
		}
	}
}

// TestClock: time passes while a server runs, and an hour at most between two. A clock that is set forward or back ends nothing early.
func TestClock(t *testing.T) {
	wall := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		last reading
		want int64
	}{
		{reading{}, 0}, {reading{100, wall.Unix() - 60}, 160}, {reading{100, wall.Unix() - 1e8}, 100 + 3600}, {reading{100, wall.Unix() + 1e8}, 100},
	} {
		if got := resume(c.last, wall).base; got != c.want {
			t.Errorf("%+v: %d, want %d", c.last, got, c.want)
		}
	}
}

// TestExpire: a file is removed when its time has come, unless a batch needs it.
func TestExpire(t *testing.T) {
	stuck := make(chan struct{})
	h := &host{handle: nil}
	s := open(t, Config{Dir: t.TempDir()}, h)
	defer s.close(t)
	old, young := s.keep(t, "ann", "old"), s.keep(t, "ann", "young")
	h.handle = blocked(stuck)
	id := s.begin(t, "ann", lines(1))
	input := s.until(t, "ann", id, inProgress)["input_file_id"].(string)
	defer close(stuck)
	err := s.store.update(func(tx *bolt.Tx) error {
		for _, id := range []string{old, input} {
			f := new(fileRecord)
			if _, err := get(tx, "@ann", id, f); err != nil {
				return err
			}
			f.Due = -1
			if err := put(tx, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.expire(); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{old: 404, young: 200, input: 200} {
		if status, _ := s.ask("ann", "GET", "/v1/files/"+id, "", ""); status != want {
			t.Errorf("%s: %d", id, status)
		}
	}
	if status, text := s.ask("ann", "DELETE", "/v1/files/"+input, "", ""); status != 409 || !strings.Contains(text, "needs the file") {
		t.Errorf("%d %s", status, text)
	}
}
