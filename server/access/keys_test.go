package access_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/server/access"
	"grove/server/wire"
)

func TestParseKeys(t *testing.T) {
	got, err := access.ParseKeys("keys", []byte("\ufeff# who may call\n\nann:sk-1\r\n  bob : sk:2 , requests=60/min,tokens=100000/min\nc-3_C:x,tokens=1/min\nd:y,priority=-3,operator"))
	urgent := -3
	want := []access.Key{{Name: "ann", Secret: "sk-1"}, {Name: "bob", Secret: "sk:2", Requests: 60, Tokens: 100000}, {Name: "c-3_C", Secret: "x", Tokens: 1},
		{Name: "d", Secret: "y", Priority: &urgent, Operator: true}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	for _, tt := range []struct{ text, wants string }{
		{"", "keys has no key"}, {"# none\n\n", "keys has no key"}, {"secret", "line 1: a line is NAME:KEY"}, {"\n:secret", "line 2: a line is"}, {"ann:", "no key"}, {"ann: ,requests=1/min", "no key"},
		{"ann:secret key", "a space"}, {"ann:sécret", "beyond ASCII"}, {"ann:" + strings.Repeat("k", 513), "more than 512 bytes"}, {"a b:secret", "letters, digits"}, {"ä:secret", "letters, digits"},
		{strings.Repeat("a", 65) + ":secret", "up to 64"}, {"../x:secret", "letters, digits"},
		{"ann:secret,", "is none of requests"}, {"ann:secret,rpm=1/min", "is none of requests"}, {"ann:secret,requests=0/min", "from 1/min"}, {"ann:secret,requests=-1/min", "from 1/min"},
		{"ann:secret,requests=60", "requests=60; it must be"}, {"ann:secret,requests=60/s", "from 1/min"}, {"ann:secret,tokens=1e3/min", "from 1/min"}, {"ann:secret,tokens=99999999999999999999/min", "from 1/min"},
		{"ann:secret,tokens=1/min,tokens=2/min", "tokens is there twice"}, {"ann:secret,priority=1,priority=1", "priority is there twice"}, {"ann:secret,operator,operator", "operator is there twice"},
		{"ann:secret,priority=-11", "priority=-11; it must be from -10 (the most urgent) to 10"}, {"ann:secret,priority=1/min", "from -10"}, {"ann:secret,priority", "from -10"}, {"ann:secret,operator=1", "is none of requests"}, {"ann:secret\nAnn:other", `two keys are called "Ann"`}, {"ann:secret\nbob:secret", "the keys ann and bob are equal"},
		{strings.Repeat("a:secret\n", 10_001), "more than 10000 keys"},
	} {
		_, err := access.ParseKeys("keys", []byte(tt.text))
		if !errors.Is(err, access.ErrConfig) || !strings.Contains(err.Error(), tt.wants) || strings.Contains(err.Error(), "secret") || len(err.Error()) > 300 {
			t.Errorf("%.60q: %v, want %q and no key", tt.text, err, tt.wants)
		}
	}
}

// TestKeyFiles: files that cannot be read, and those that others may read.
func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	private, public := write("private", "ann:one\n", 0o600), write("public", "ann:one\n", 0o644)
	if keys, err := access.ReadKeys(private); err != nil || len(keys) != 1 || access.Exposed(private) || !access.Exposed(public) {
		t.Errorf("%v %v", keys, err)
	}
	if keys, err := access.ReadSecrets(write("secrets", "one\n\n two \n", 0o600)); err != nil || len(keys) != 2 || keys[1] != (access.Key{Secret: "two"}) {
		t.Errorf("%v %v", keys, err)
	}
	for name, path := range map[string]string{
		"missing": filepath.Join(dir, "none"), "directory": dir, "large": write("large", strings.Repeat("#", 1<<20+1), 0o600), "empty": write("empty", " \n", 0o600),
	} {
		for _, read := range []func(string) ([]access.Key, error){access.ReadKeys, access.ReadSecrets} {
			if _, err := read(path); !errors.Is(err, access.ErrConfig) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if os.Getuid() > 0 {
		if _, err := access.ReadKeys(write("unreadable", "ann:one", 0)); !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
	}
}

// TestCaller: a key in any of the customary headers leads to its owner, and each owner has a folder of its own.
func TestCaller(t *testing.T) {
	g := gate(t, access.Config{Keys: []access.Key{{Name: "Ann", Secret: "one"}, {Secret: "two"}, {Secret: "three"}}})
	folders := map[string]bool{}
	for _, tt := range []struct {
		headers []string
		want    string // name; "": refused
	}{
		{[]string{"Authorization", "Bearer one"}, "Ann"}, {[]string{"Authorization", "bearer  one "}, "Ann"}, {[]string{"X-Api-Key", "two"}, "#2"}, {[]string{"api-key", "three"}, "#3"},
		{[]string{"Authorization", "Basic YTpi", "X-Api-Key", "two"}, "#2"},
		{[]string{"Authorization", "BEARER one", "X-Api-Key", "two"}, "Ann"}, {[]string{"Authorization", "", "Api-Key", "three"}, "#3"},
		{nil, ""}, {[]string{"Authorization", "one"}, ""}, {[]string{"Authorization", "Bearer"}, ""}, {[]string{"Authorization", "Bearer One"}, ""}, {[]string{"Authorization", "Bearer ", "X-Api-Key", "two"}, ""},
		{[]string{"X-Api-Key", ""}, ""}, {[]string{"X-Api-Key", strings.Repeat("x", 1<<16)}, ""},
	} {
		c, err := g.Caller(request("a", tt.headers...))
		if c.Name() != tt.want || (err == nil) != (tt.want != "") || err != nil && keyError(t, err) == "" {
			t.Errorf("%.60v: %q %v, want %q", tt.headers, c.Name(), err, tt.want)
		}
		if c != nil {
			folders[c.Folder()] = true
		}
		if got := access.CallerOf(access.With(t.Context(), c)); got != c {
			t.Errorf("%v, want %v", got, c)
		}
	}
	if len(folders) != 3 || !folders["@ann"] {
		t.Errorf("folders %v", folders)
	}
	for folder := range folders {
		if strings.Contains(folder, "two") || filepath.Base(folder) != folder {
			t.Errorf("folder %q", folder)
		}
	}
	open := gate(t, access.Config{})
	c, err := open.Caller(request("a", "X-Api-Key", "any"))
	if err != nil || c.Name() != "" || c.Folder() != "" || c.Take(http.Header{}) != nil || access.CallerOf(context.Background()) != nil {
		t.Errorf("without keys: %v %v", c, err)
	}
	c.Spend(5)
}

// keyError returns the message of an error about a key; "": it is none.
func keyError(t *testing.T, err error) string {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Status != http.StatusUnauthorized || e.Code != "invalid_api_key" || len(e.Message) > 200 {
		t.Errorf("%#v", err)
		return ""
	}
	return e.Message
}

// TestRefusedKeys: the error for headers that show no key says why, and no part of a header.
func TestRefusedKeys(t *testing.T) {
	g := gate(t, access.Config{Keys: []access.Key{{Secret: "one"}, {Secret: "two"}}})
	for _, tt := range []struct {
		name    string
		headers []string
		wants   string
	}{
		{"no key", nil, "missing or wrong"},
		{"Basic", []string{"Authorization", "Basic b25lOg=="}, "another scheme than Bearer; send Authorization: Bearer KEY"},
		{"a key without a scheme", []string{"Authorization", "one"}, "another scheme than Bearer"},
		{"two keys in one", []string{"Authorization", "Bearer one, Bearer two"}, "missing or wrong"},
		{"the same key twice", []string{"X-Api-Key", "one", "X-Api-Key", "one"}, "X-Api-Key is there 2 times"},
		{"two of Bearer", []string{"Authorization", "Bearer one", "authorization", "Bearer two"}, "Authorization is there 2 times"},
		{"an empty one first", []string{"Api-Key", "", "Api-Key", "one"}, "Api-Key is there 2 times"},
		{"a second one behind a valid one", []string{"Authorization", "Bearer one", "X-Api-Key", "one", "X-Api-Key", "two"}, "X-Api-Key is there 2 times"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := g.Caller(request("a", tt.headers...))
			if got := keyError(t, err); !strings.Contains(got, tt.wants) || strings.Contains(got, "one,") || strings.Contains(got, "b25l") {
				t.Errorf("%q, want %q", got, tt.wants)
			}
		})
	}
}

// TestLimits: a key's requests and tokens of a minute end, come back evenly, and are told in OpenAI's headers.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, access.Config{Keys: []access.Key{{Name: "ann", Secret: "a", Requests: 2}, {Name: "bob", Secret: "b", Tokens: 600}, {Name: "eve", Secret: "e", Tokens: 1}}})
		take := func(key string, retry int) http.Header {
			t.Helper()
			c, err := g.Caller(request("a", "X-Api-Key", key))
			if err != nil {
				t.Fatal(err)
			}
			var e *wire.Error
			h := http.Header{}
			if err := c.Take(h); retry == 0 && err != nil || retry > 0 && (!errors.As(err, &e) || e.Status != 429 || e.Retry != retry || e.Code != "rate_limit_exceeded") {
				t.Errorf("%s: %#v, want %d s", key, err, retry)
			}
			return h
		}
		spend := func(key string, n int) {
			c, err := g.Caller(request("a", "X-Api-Key", key))
			if err != nil {
				t.Fatal(err)
			}
			c.Spend(n)
		}
		h := take("a", 0)
		if d := cmp.Diff(http.Header{"X-Ratelimit-Limit-Requests": {"2"}, "X-Ratelimit-Remaining-Requests": {"1"}, "X-Ratelimit-Reset-Requests": {"30s"}}, h); d != "" {
			t.Error(d)
		}
		take("a", 0)
		take("a", 30)
		time.Sleep(30 * time.Second)
		take("a", 0)
		if h := take("a", 30); h.Get("X-Ratelimit-Remaining-Requests") != "0" || h.Get("X-Ratelimit-Reset-Requests") != "1m0s" {
			t.Error(h)
		}

		spend("b", 1000) // more than there are
		if h := take("b", 41); h.Get("X-Ratelimit-Limit-Tokens") != "600" || h.Get("X-Ratelimit-Remaining-Tokens") != "0" || h.Get("X-Ratelimit-Reset-Tokens") != "1m40s" {
			t.Error(h)
		}
		time.Sleep(41 * time.Second)
		take("b", 0)
		spend("b", -5)
		spend("b", 0)
		take("b", 0)

		spend("e", 1<<40) // a debt of a day at most
		if h := take("e", 24*3600); h.Get("X-Ratelimit-Remaining-Tokens") != "0" {
			t.Error(h)
		}
	})
}

// TestSetKeys: keys are replaced at once; what is used of a limit stays used unless the limit changes.
func TestSetKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, access.Config{Keys: []access.Key{{Name: "ann", Secret: "old", Requests: 1}, {Name: "bob", Secret: "b", Requests: 1}}})
		take := func(key string) error {
			c, err := g.Caller(request("a", "X-Api-Key", key))
			if err != nil {
				return err
			}
			return c.Take(http.Header{})
		}
		if take("old") != nil || take("b") != nil {
			t.Error("a first request is refused")
		}
		if err := g.SetKeys([]access.Key{{Name: "ann", Secret: "new", Requests: 1}, {Name: "bob", Secret: "b", Requests: 2}}); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(take("old"), wire.ErrKey) || take("new") == nil || take("b") != nil {
			t.Error("the keys are not those of the second list")
		}
		for _, bad := range [][]access.Key{nil, {{Secret: ""}}, {{Secret: "x"}, {Secret: "x"}}} {
			if err := g.SetKeys(bad); !errors.Is(err, access.ErrConfig) {
				t.Errorf("%v: %v", bad, err)
			}
		}
		if take("b") != nil {
			t.Error("keys that could not be used replaced others")
		}
		if err := gate(t, access.Config{}).SetKeys([]access.Key{{Secret: "x"}}); !errors.Is(err, access.ErrConfig) {
			t.Error(err)
		}
	})
}

// TestManyKeys: the largest list of keys is taken.
func TestManyKeys(t *testing.T) {
	var keys []access.Key
	for i := range 10_000 {
		keys = append(keys, access.Key{Name: "n" + strconv.Itoa(i), Secret: "s" + strconv.Itoa(i), Requests: 1})
	}
	g := gate(t, access.Config{Keys: keys})
	if err := g.SetKeys(keys); err != nil {
		t.Fatal(err)
	}
	if c, err := g.Caller(request("a", "X-Api-Key", "s9999")); err != nil || c.Name() != "n9999" {
		t.Error(c.Name(), err)
	}
	if _, err := access.New(access.Config{Keys: append(keys, access.Key{Secret: "x"})}); err == nil {
		t.Error("a key more is taken")
	}
}

// FuzzParseKeys reads hostile files of keys: errors show no key, and keys that are taken can be used.
func FuzzParseKeys(f *testing.F) {
	f.Add("ann:secret,requests=3/min,tokens=5/min\n# bob:x\n")
	f.Add("\ufeffann:s\r\nann:t")
	f.Add("a:b,requests=99999999999999999999/min")
	f.Add(":\n,:,\x00")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := access.ParseKeys("keys", []byte(text))
		if err != nil {
			if strings.ContainsRune(err.Error(), '\n') || !strings.Contains(err.Error(), "keys") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if _, err := access.New(access.Config{Keys: keys}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for _, k := range keys {
			if k.Requests < 0 || k.Tokens < 0 || k.Secret == "" || strings.ContainsAny(k.Name, "/\\.") {
				t.Errorf("%q: %+v", text, k)
			}
		}
	})
}
