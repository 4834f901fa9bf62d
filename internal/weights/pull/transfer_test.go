package pull

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const segment = 1 << 10

// content is bytes that begin as a GGUF file does.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	copy(b, "GGUF")
	return b
}

func digestOf(b []byte) Digest { return Digest{"sha256", fmt.Sprintf("%x", sha256.Sum256(b))} }

// bench is a cache, a server and a client of them.
type bench struct {
	t      *testing.T
	cache  *Cache
	client *Client
	server *httptest.Server
	mu     sync.Mutex
	events []Event
}

func newBench(t *testing.T, h http.Handler) *bench {
	b := &bench{t: t, server: httptest.NewServer(h)}
	t.Cleanup(b.server.Close)
	var err error
	if b.cache, err = OpenCache(filepath.Join(t.TempDir(), "cache")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.cache.Close() })
	b.client, err = NewTransfer(TransferConfig{Backoff: time.Millisecond, Segment: segment, Progress: func(e Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) file(text []byte) File {
	return File{Name: "x", URL: b.server.URL + "/x", Path: "blobs/x", Lock: ".locks/x.lock", Size: int64(len(text)), Digest: digestOf(text), Magic: "GGUF"}
}

// expect fetches a file and compares it with what it must hold; nil: it must not be there, and the error holds a text.
func (b *bench) expect(f File, want []byte, text string) {
	b.t.Helper()
	_, err := b.client.FetchAll(b.t.Context(), b.cache, []File{f})
	got, there := os.ReadFile(b.cache.Path(f.Path))
	switch {
	case want != nil && err != nil:
		b.t.Fatal(err)
	case want != nil && !bytes.Equal(got, want):
		b.t.Fatalf("%d bytes came, want %d; %v", len(got), len(want), there)
	case want == nil && (err == nil || !strings.Contains(err.Error(), text)):
		b.t.Fatalf("error %v, want one with %q", err, text)
	case want == nil && there == nil:
		b.t.Fatal("the file is there")
	}
}

// ranged serves bytes with ranges and a validator.
func ranged(text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha1.Sum(text)))
		http.ServeContent(w, r, "x", time.Time{}, bytes.NewReader(text))
	}
}

func TestFetch(t *testing.T) {
	for _, n := range []int{4, segment - 1, segment, segment + 1, 40*segment + 7} {
		text := content(n)
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var requests atomic.Int64
			b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests.Add(1); ranged(text)(w, r) }))
			b.expect(b.file(text), text, "")
			if want := int64((n + segment - 1) / segment); requests.Load() != want {
				t.Errorf("%d requests, want %d", requests.Load(), want)
			}
			last := b.events[len(b.events)-1]
			if diff := cmp.Diff(Event{State: Ready, File: "x", Digest: digestOf(text).String(), Completed: int64(n), Total: int64(n)}, last); diff != "" {
				t.Error(diff)
			}
			before := requests.Load()
			if b.expect(b.file(text), text, ""); requests.Load() != before {
				t.Error("what is there is fetched again")
			}
			left, _ := fs.Glob(b.cache.Root.FS(), "blobs/*")
			if diff := cmp.Diff([]string{"blobs/x"}, left); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUnknown: a file of unknown length and hash.
func TestUnknown(t *testing.T) {
	text := content(10 * segment)
	b := newBench(t, ranged(text))
	f := b.file(text)
	f.Size, f.Digest = -1, Digest{}
	b.expect(f, text, "")
	b.expect(f, text, "") // it is there
	if err := os.WriteFile(b.cache.Path(f.Path), []byte("GGUF of mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.Fetch(t.Context(), b.cache, f); err == nil || !strings.Contains(err.Error(), "is there with 12 bytes") {
		t.Error("another file of the name is replaced", err)
	}
}

// TestResume: a partial file is continued, whoever left it, and started over where the content is another one.
func TestResume(t *testing.T) {
	text := content(5*segment + 3)
	for _, c := range []struct {
		name    string
		partial []byte
		etag    string
		known   bool // the hash is known
		least   int64
		most    int64
	}{
		{"beginning", text[:2*segment], "", true, 3*segment + 3, 3*segment + 3},
		{"whole", text, "", true, 0, 0},
		{"wrong", content(2 * segment)[1:], "", true, 5*segment + 3, 11 * segment},
		{"too long", content(9 * segment), "", true, 5*segment + 3, 5*segment + 3},
		{"empty", nil, "", true, 5*segment + 3, 5*segment + 3},
		{"validator", text[:2*segment], fmt.Sprintf(`"%x"`, sha1.Sum(text)), false, 3*segment + 3, 3*segment + 3},
		{"old validator", content(2 * segment), `"old"`, false, 5*segment + 3, 6*segment + 3},
		{"no validator", text[:segment], "", false, 5*segment + 3, 5*segment + 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, ranged(text))
			f := b.file(text)
			if !c.known {
				f.Size, f.Digest = -1, Digest{}
			}
			for name, content := range map[string][]byte{Suffix: c.partial, validatorSuffix: []byte(c.etag)} {
				if err := b.cache.Write(f.Path+name, content); err != nil {
					t.Fatal(err)
				}
			}
			received, err := b.client.Fetch(t.Context(), b.cache, f)
			got, _ := os.ReadFile(b.cache.Path(f.Path))
			if err != nil || !bytes.Equal(got, text) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			if received < c.least || received > c.most {
				t.Errorf("%d bytes came over the network, want %d to %d", received, c.least, c.most)
			}
		})
	}
}

// TestServers: servers that fail for a while, and those that never give what they promised.
func TestServers(t *testing.T) {
	text := content(3*segment + 5)
	part := func(w http.ResponseWriter, from, to, total int, b []byte) {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, total))
		w.Header().Set("Content-Length", strconv.Itoa(to-from))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(b)
	}
	bounds := func(r *http.Request) (from, to int) {
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
		return from, to + 1
	}
	for _, c := range []struct {
		name  string
		serve func(w http.ResponseWriter, r *http.Request, n int) // n counts requests from 1
		err   string                                              // "": the file comes
	}{
		{"cuts each first answer", func(w http.ResponseWriter, r *http.Request, n int) {
			if from, to := bounds(r); n%2 == 1 {
				part(w, from, to, len(text), text[from:from+(to-from)/2])
				return
			}
			ranged(text)(w, r)
		}, ""},
		{"cuts always", func(w http.ResponseWriter, r *http.Request, n int) {
			from, to := bounds(r)
			part(w, from, to, len(text), text[from:from])
		}, "EOF"},
		{"has no ranges", func(w http.ResponseWriter, r *http.Request, n int) { w.Write(text) }, ""},
		{"has no ranges and cuts once", func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			if w.Write(text[:segment]); n > 1 {
				w.Write(text[segment:])
			}
		}, ""},
		{"has no ranges and says less", func(w http.ResponseWriter, r *http.Request, n int) { w.Write(text[:100]) }, "the server has 100 bytes, and 3077 were promised"},
		{"sends without end", func(w http.ResponseWriter, r *http.Request, n int) {
			w.Write(text)
			for range 10_000 {
				if _, err := w.Write(text); err != nil {
					return
				}
			}
		}, "sends more than the 3077 bytes"},
		{"says another total", func(w http.ResponseWriter, r *http.Request, n int) {
			from, to := bounds(r)
			part(w, from, to, 10<<30, text[from:to])
		}, "the server has 10737418240 bytes, and 3077 were promised"},
		{"changes the total", func(w http.ResponseWriter, r *http.Request, n int) {
			from, to := bounds(r)
			part(w, from, to, len(text)+from, text[from:to])
		}, "changed during the download"},
		{"sends another part", func(w http.ResponseWriter, r *http.Request, n int) { part(w, 7, 9, len(text), text[7:9]) }, `sends the bytes "bytes 7-8/3077", and 0-1023 were asked for`},
		{"sends other bytes", func(w http.ResponseWriter, r *http.Request, n int) {
			ranged(append([]byte("GGUF"), make([]byte, len(text)-4)...))(w, r)
		}, "and sha256:" + digestOf(text).Hex() + " was promised"},
		{"sends a compressed text", func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(text)
		}, `the encoding "gzip"`},
		{"500 for a while", func(w http.ResponseWriter, r *http.Request, n int) {
			if n < 3 {
				http.Error(w, "later", http.StatusInternalServerError)
				return
			}
			ranged(text)(w, r)
		}, ""},
		{"500", func(w http.ResponseWriter, r *http.Request, n int) {
			http.Error(w, "never\x1b[2J", http.StatusServiceUnavailable)
		}, "answers 503 Service Unavailable: never\ufffd[2J (5 attempts)"},
		{"429 for a second", func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 1 {
				w.Header().Set("Retry-After", time.Now().Add(time.Second).UTC().Format(http.TimeFormat))
				http.Error(w, "", http.StatusTooManyRequests)
				return
			}
			ranged(text)(w, r)
		}, ""},
		{"429 for an hour", func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Retry-After", "3600")
			http.Error(w, "", http.StatusTooManyRequests)
		}, "asks to wait for 1h0m0s"},
		{"401", func(w http.ResponseWriter, r *http.Request, n int) { w.WriteHeader(401) }, "answers 401 Unauthorized"},
		{"404", func(w http.ResponseWriter, r *http.Request, n int) { http.NotFound(w, r) }, "answers 404 Not Found: 404 page not found"},
		{"redirects for ever", func(w http.ResponseWriter, r *http.Request, n int) {
			http.Redirect(w, r, fmt.Sprintf("/%d", n), http.StatusFound)
		}, "redirects more than 10 times"},
		{"redirects to a file", func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, `redirects to "file", which is no address of HTTP`},
		{"vanishes", func(w http.ResponseWriter, r *http.Request, n int) { panic(http.ErrAbortHandler) }, "EOF (5 attempts)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n atomic.Int64
			b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, int(n.Add(1))) }))
			if c.err == "" {
				b.expect(b.file(text), text, "")
			} else if b.expect(b.file(text), nil, c.err); n.Load() > 4*MaxAttempts {
				t.Errorf("%d requests", n.Load())
			}
		})
	}
}

// TestBoundless: what is said of an unknown file is believed within bounds alone.
func TestBoundless(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
		err   string
	}{
		{"no length", func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); fmt.Fprint(w, "GGUF") }, "does not say how long"},
		{"too long", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-1023/%d", int64(MaxFileBytes)+1))
			w.WriteHeader(http.StatusPartialContent)
		}, "at most 4398046511104 are taken"},
		{"a page", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>sign in</html>") }, `begins with "<htm"`},
		{"the disk", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-1023/%d", int64(MaxFileBytes)))
			w.WriteHeader(http.StatusPartialContent)
		}, "the disk has"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.serve)
			f := b.file(nil)
			f.Size, f.Digest = -1, Digest{}
			if free, _ := freeBytes(b.cache.Dir); c.name == "the disk" && free > MaxFileBytes {
				t.Skip("the disk is larger than any file")
			}
			b.expect(f, nil, c.err)
		})
	}
}

// TestToken: a token reaches the host that it is for, and no other, however it is redirected; an address that runs out is asked
// for again.
func TestToken(t *testing.T) {
	text := content(6 * segment)
	var foreign atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("another host gets %v", r.Header)
		}
		if n := foreign.Add(1); n == 3 {
			http.Error(w, "the signature has run out", http.StatusForbidden)
			return
		}
		ranged(text)(w, r)
	}))
	defer other.Close()
	var asked atomic.Int64
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("the host gets %q", got)
		}
		if r.URL.Path == "/x" {
			http.Redirect(w, r, "/y", http.StatusFound)
			return
		}
		http.Redirect(w, r, other.URL+"/x?signature=s", http.StatusTemporaryRedirect)
	}))
	f := b.file(text)
	f.Token = "secret"
	b.expect(f, text, "")
	if asked.Load() >= 2*6 {
		t.Errorf("the host was asked %d times; the redirected address is not kept", asked.Load())
	}
}

func TestRedirects(t *testing.T) {
	for _, c := range []struct {
		from, to string
		err      string
		token    bool
	}{
		{"https://a.example/x", "https://a.example/y", "", true},
		{"https://a.example/x", "https://b.example/y", "", false},
		{"https://a.example/x", "https://cdn.a.example/y", "", false},
		{"https://a.example/x", "https://a.example:8443/y", "", false},
		{"https://a.example/x", "http://a.example/y", "from https to http", false},
		{"http://a.example/x", "https://a.example/y", "", false},
		{"http://a.example/x", "ftp://a.example/y", "no address of HTTP", false},
	} {
		from, _ := url.Parse(c.from)
		to, _ := url.Parse(c.to)
		r := &http.Request{URL: to, Header: http.Header{"Authorization": {"Bearer x"}, "Referer": {"x"}}}
		err := checkRedirect(r, []*http.Request{{URL: from}})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
		if err == nil && (r.Header.Get("Authorization") != "") != c.token {
			t.Errorf("%s to %s: the token is sent: %v", c.from, c.to, !c.token)
		}
	}
}

// TestCancel: the end of a context keeps the partial file, a beginning of the whole; the next download continues it.
func TestCancel(t *testing.T) {
	text := content(20 * segment)
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("enough")
	var n atomic.Int64
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 10 {
			cancel(reason)
		}
		ranged(text)(w, r)
	}))
	f := b.file(text)
	if _, err := b.client.FetchAll(ctx, b.cache, []File{f}); !errors.Is(err, reason) {
		t.Fatalf("error %v, want the cause of the context", err)
	}
	partial, err := os.ReadFile(b.cache.Path(f.Path + Suffix))
	if err != nil || !bytes.HasPrefix(text, partial) {
		t.Fatalf("%d bytes are kept, %v", len(partial), err)
	}
	received, err := b.client.FetchAll(t.Context(), b.cache, []File{f})
	if err != nil || received != int64(len(text)-len(partial)) {
		t.Fatalf("%d bytes came, %d were missing; %v", received, len(text)-len(partial), err)
	}
}

// TestCancelWithin: what came of a segment before the end of the context stays too.
func TestCancelWithin(t *testing.T) {
	text := content(2 * segment)
	ctx, cancel := context.WithCancel(context.Background())
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", segment-1, 2*segment))
		w.Header().Set("Content-Length", strconv.Itoa(segment))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(text[:100])
		w.(http.Flusher).Flush()
		time.AfterFunc(200*time.Millisecond, cancel)
		<-r.Context().Done()
	}))
	f := b.file(text)
	if _, err := b.client.FetchAll(ctx, b.cache, []File{f}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if partial, err := os.ReadFile(b.cache.Path(f.Path + Suffix)); !bytes.Equal(partial, text[:100]) {
		t.Errorf("%d bytes are kept, want 100; %v", len(partial), err)
	}
}

// TestTwo: of two downloads of a file one waits, and finds it there.
func TestTwo(t *testing.T) {
	text := content(8 * segment)
	begun := make(chan struct{})
	var once sync.Once
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(begun); time.Sleep(300 * time.Millisecond) })
		ranged(text)(w, r)
	}))
	f := b.file(text)
	var group sync.WaitGroup
	var total atomic.Int64
	fetch := func() {
		n, err := b.client.Fetch(t.Context(), b.cache, f)
		if total.Add(n); err != nil {
			t.Error(err)
		}
	}
	group.Go(fetch)
	<-begun
	group.Go(fetch)
	group.Wait()
	waited := false
	for _, e := range b.events {
		waited = waited || e.State == Waiting
	}
	if total.Load() != int64(len(text)) || !waited {
		t.Errorf("%d bytes came for a file of %d; one said that it waits: %v", total.Load(), len(text), waited)
	}
}

// TestLinks: nothing is written through a link out of the cache, or through one in place of a partial file.
func TestLinks(t *testing.T) {
	text := content(segment)
	outside := t.TempDir()
	for _, c := range []struct{ name, link, to, err string }{
		{"directory", "blobs", outside, "path escapes"},
		{"locks", ".locks", outside, "path escapes"},
		{"lock", ".locks/x.lock", filepath.Join(outside, "lock"), "path escapes"},
		{"partial file", "blobs/x" + Suffix, filepath.Join(outside, "secret"), "not a regular file"},
		{"partial file within", "blobs/x" + Suffix, "./other", "not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, ranged(text))
			link := b.cache.Path(c.link)
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(c.to, link); err != nil {
				t.Skip("symbolic links cannot be made here:", err)
			}
			b.expect(b.file(text), nil, c.err)
			if left, _ := os.ReadDir(outside); len(left) > 0 {
				t.Errorf("outside there is %v", left)
			}
		})
	}
}

func TestSpace(t *testing.T) {
	b := newBench(t, http.NotFoundHandler())
	if _, known := freeBytes(b.cache.Dir); !known {
		t.Skip("this system does not say how much room there is")
	}
	f := b.file(nil)
	f.Size = MaxFileBytes
	var files []File
	for i := range 4096 {
		f.Path = fmt.Sprint("blobs/", i)
		files = append(files, f)
	}
	_, err := b.client.FetchAll(t.Context(), b.cache, files)
	var space *SpaceError
	if !errors.As(err, &space) || space.Need != 4096*MaxFileBytes {
		t.Errorf("error %v", err)
	}
	f.Size++
	if _, err := b.client.FetchAll(t.Context(), b.cache, []File{f}); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("error %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", ".hidden", "a/b", `a\b`, "a\x00b", "a\nb", "C:x", "con", "NUL.gguf", "com1.txt", "x.", "x ", "a*", "a?", strings.Repeat("x", 201), "\u202egguf",
	} {
		if CheckName(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
	for _, name := range []string{"x.gguf", "Qwen3-0.6B-Q8_0.gguf", "config.json", "console.gguf", "comet.gguf", "ü.gguf"} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"a/../b", "/a", "a//b", "a/", "./a"} {
		if CheckPath(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
	for _, digest := range []string{"", "sha256:", "sha256:abc", "sha256:" + strings.Repeat("A", 64), "sha512:" + strings.Repeat("a", 64), "sha256:../" + strings.Repeat("a", 61)} {
		if _, err := ParseDigest(digest); err == nil {
			t.Errorf("%q is taken", digest)
		}
	}
	for _, object := range []string{"", "abc", strings.Repeat("g", 40), strings.Repeat("a", 64)} {
		if _, err := ParseGit(object); err == nil {
			t.Errorf("%q is taken", object)
		}
	}
}

func TestGet(t *testing.T) {
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.Atoi(r.URL.Path[1:]); err == nil {
			w.Write(make([]byte, n))
		}
	}))
	for n, want := range map[int]string{0: "", 100: "", 101: "sends more than 100 bytes"} {
		got, _, err := b.client.Get(t.Context(), fmt.Sprintf("%s/%d", b.server.URL, n), "", nil, 100)
		if want == "" && (err != nil || len(got) != n) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: %d came, %v", n, len(got), err)
		}
	}
	if _, err := NewTransfer(TransferConfig{Parallel: 17}); err == nil {
		t.Error("17 requests at a time are taken")
	}
}

// FuzzNames reads hostile names and digests: those that are taken stay within the cache, on every system.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a/b.gguf", "..", "a/../b", "con.txt", "a\\b", "a:b", "sha256:" + strings.Repeat("0", 64), strings.Repeat("f", 40)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckPath(name) == nil && (!filepath.IsLocal(name) || strings.ContainsAny(name, "\\:\x00")) {
			t.Errorf("the path %q is taken", name)
		}
		if CheckName(name) == nil && strings.ContainsRune(name, '/') {
			t.Errorf("the name %q is taken", name)
		}
		d, err := ParseDigest(name)
		if err == nil && (d.String() != name || len(d.Hex()) != 64) {
			t.Errorf("the digest %q is %v", name, d)
		}
		if d, err = ParseGit(name); err == nil && d.Hex() != name {
			t.Errorf("the object %q is %v", name, d)
		}
	})
}
