package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"grove/internal/engine"
	"grove/internal/engine/pages"
	"grove/internal/engine/step"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// until waits for something that another goroutine does.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what, ": it takes too long")
		}
	}
}

// sharing makes an engine that shares a folder, and waits until it uses it.
func sharing(t testing.TB, c engine.Config, open func(engine.Config) *engine.Engine) *engine.Engine {
	t.Helper()
	e := open(c)
	until(t, "the identity", func() bool { return e.Load().Prefixes.Open == 1 })
	return e
}

// written waits until an engine has written all texts.
func written(t testing.TB, e *engine.Engine) step.Prefixes {
	t.Helper()
	until(t, "the writing", func() bool { return e.Load().Prefixes.Queued == 0 })
	return e.Load().Prefixes
}

// pageFiles returns the files below a folder.
func pageFiles(t testing.TB, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, at)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // others may remove files
		t.Fatal(err)
	}
	return all
}

// sharedKinds open engines for models whose layers keep everything, windows, chunks, states, and states alone.
func sharedKinds(t *testing.T) map[string]func(engine.Config) *engine.Engine {
	all := map[string]func(engine.Config) *engine.Engine{}
	for name, spec := range map[string]modeltest.Spec{
		"dense": {Context: 400}, "window": {Arch: "gemma3", Layers: 7, Context: 400}, "mixed": {Arch: "gemma2", Layers: 4, Window: 30, Context: 400},
		"chunk": {Arch: "llama4", Layers: 5, Window: 100, Context: 400},
	} {
		b := newBed(t, 1, spec.File(t))
		all[name] = func(c engine.Config) *engine.Engine { return b.engine(t, c) }
	}
	for name, r := range map[string]modeltest.Recurrent{"recurrent": {Attention: true, Vocab: 48, Context: 400}, "states": {Vocab: 48, Context: 400}} {
		all[name] = func(c engine.Config) *engine.Engine {
			pool := par.New(1)
			t.Cleanup(pool.Close)
			e, err := engine.New(r.Open(t, pool), pool, c)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
	return all
}

// TestShared lets a conversation go from engine to engine, which share a folder: each answers as one alone does, and computes new tokens alone.
func TestShared(t *testing.T) {
	for name, open := range sharedKinds(t) {
		for _, cache := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
			if name == "recurrent" && cache == tensor.Q8_0 {
				continue // its heads are too small
			}
			t.Run(fmt.Sprint(name, " ", cache), func(t *testing.T) { converse(t, cache, open) })
		}
	}
}

func converse(t *testing.T, cache tensor.Type, open func(engine.Config) *engine.Engine) {
	c := engine.Config{CacheType: cache}
	shared := c
	shared.Prefixes = pages.Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	var all []*engine.Engine
	for range 3 {
		all = append(all, sharing(t, shared, open))
	}
	ids := text(150)
	for turn := range 6 {
		want := draw(t, sequence(t, open(c)), 20, ids)
		e := all[turn%3]
		s := sequence(t, e)
		got := draw(t, s, 20, ids)
		if !slices.Equal(got, want) {
			t.Errorf("turn %d: %v, want %v", turn, got, want)
		}
		if whole := (len(ids) - 21 - 9) / kv.PageTokens * kv.PageTokens; turn > 0 && s.Reused() < whole {
			t.Errorf("turn %d: %d of %d tokens are reused, want %d", turn, s.Reused(), len(ids), whole)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		p := written(t, e)
		if p.Refused+p.Failed+p.Dropped != 0 || turn > 0 && p.Found == 0 {
			t.Errorf("turn %d: %+v", turn, p)
		}
		for _, d := range got {
			ids = append(ids, d.ID)
		}
		ids = append(ids, text(9)...)
		for i := range 2 { // another text that begins alike
			ids[len(ids)-1-i] = 7
		}
	}
	for _, e := range all {
		if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
			t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
		}
		e.Close()
	}
}

// TestSharedApart: other models, cache types, salts and private texts find nothing; a text with the same salt does.
func TestSharedApart(t *testing.T) {
	dir := t.TempDir()
	c := engine.Config{Prefixes: pages.Config{Dir: dir}}
	b := newBed(t, 1, modeltest.Spec{Context: 300}.File(t))
	other := newBed(t, 1, modeltest.Spec{Context: 300, Type: tensor.Q8_0}.File(t))
	say := func(b *bed, c engine.Config, terms engine.Terms) (reused, found int) {
		t.Helper()
		e := sharing(t, c, func(c engine.Config) *engine.Engine { return b.engine(t, c) })
		s := sequence(t, e)
		if err := s.SetTerms(terms); err != nil {
			t.Fatal(err)
		}
		draw(t, s, 3, text(150))
		reused = s.Reused()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		e.Close() // writes what waits
		return reused, e.Load().Prefixes.Found
	}
	if n, _ := say(b, c, engine.Terms{Private: true}); n != 0 || len(pageFiles(t, dir)) != 0 {
		t.Errorf("a private text: %d tokens found, %v written", n, pageFiles(t, dir))
	}
	say(b, c, engine.Terms{Salt: "a"})
	f16 := c
	f16.CacheType = tensor.F16
	for _, tt := range []struct {
		name  string
		b     *bed
		c     engine.Config
		terms engine.Terms
		found int
	}{
		{"the same", b, c, engine.Terms{Salt: "a"}, 128}, {"another salt", b, c, engine.Terms{Salt: "b"}, 0}, {"no salt", b, c, engine.Terms{}, 0},
		{"private", b, c, engine.Terms{Salt: "a", Private: true}, 0}, {"another cache type", b, f16, engine.Terms{Salt: "a"}, 0},
		{"another model", other, c, engine.Terms{Salt: "a"}, 0},
	} {
		if n, found := say(tt.b, tt.c, tt.terms); n != tt.found || (found > 0) != (tt.found > 0) {
			t.Errorf("%s: %d tokens found in %d texts, want %d", tt.name, n, found, tt.found)
		}
	}
}

// TestSharedAdapters: a text with adapters is found with these alone, by any engine; answers are as ever.
func TestSharedAdapters(t *testing.T) {
	file := modeltest.Spec{Context: 300}.File(t)
	b := newBed(t, 1, file)
	c := engine.Config{Prefixes: pages.Config{Dir: t.TempDir()}}
	sets := adapted(t, b, file)
	for round := range 2 {
		for i, set := range sets {
			terms := engine.Terms{Adapters: set}
			ask := func(e *engine.Engine) (got []sample.Token, reused int) {
				s := sequence(t, e)
				if err := s.SetTerms(terms); err != nil {
					t.Fatal(err)
				}
				got = draw(t, s, 10, text(150))
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return got, s.Reused()
			}
			want, _ := ask(b.engine(t, engine.Config{}))
			e := sharing(t, c, func(c engine.Config) *engine.Engine { return b.engine(t, c) })
			got, reused := ask(e)
			if e.Close(); !slices.Equal(got, want) || reused != round*128 {
				t.Errorf("round %d, set %d: %d tokens are reused; %v, want %v", round, i, reused, got, want)
			}
		}
	}
}

// TestSharedDamaged: files that are damaged, cut, another's or no files are as if they were not there: they are counted, named once in the log, and written anew.
func TestSharedDamaged(t *testing.T) {
	dir := t.TempDir()
	var log safeBuffer
	c := engine.Config{Prefixes: pages.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}}
	open := func(c engine.Config) *engine.Engine { return newEngine(t, c) }
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 20, text(200))
	say := func(what string) (reused int, p step.Prefixes) {
		t.Helper()
		e := sharing(t, c, open)
		s := sequence(t, e)
		if got := draw(t, s, 20, text(200)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		reused = s.Reused()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		e.Close()
		return reused, e.Load().Prefixes
	}
	say("the first")
	all := pageFiles(t, dir)
	if len(all) != 3 {
		t.Fatalf("the folder has %v", all)
	}
	good := map[string]string{}
	for _, at := range all {
		good[at] = readFile(t, at)
	}
	at := all[1]
	for what, damage := range map[string]func(){
		"changed": func() { writeFile(t, at, good[at][:300]+"x"+good[at][301:]) }, "cut": func() { writeFile(t, at, good[at][:300]) },
		"empty": func() { writeFile(t, at, "") }, "another version": func() { writeFile(t, at, "grovepg9"+good[at][8:]) },
		"another page": func() { writeFile(t, at, good[all[0]]) },
	} {
		damage()
		reused, p := say(what)
		if p.Refused != 1 || reused == 192 || p.Written == 0 {
			t.Errorf("%s: %d tokens are reused, %+v", what, reused, p)
		}
		if n := strings.Count(log.String(), "cannot be used"); n != 1 || !strings.Contains(log.String(), filepath.Base(at)) && what == "cut" {
			t.Errorf("%s: the log has %q", what, log.String())
		}
		log.Reset()
		for at, text := range good {
			if readFile(t, at) != text {
				t.Errorf("%s: %s is not as it was", what, at)
			}
		}
		if reused, p := say(what + ", then whole"); reused != 192 || p.Refused != 0 || p.Found != 1 {
			t.Errorf("%s, then whole: %d tokens are reused, %+v", what, reused, p)
		}
	}
	if err := errors.Join(os.Remove(at), os.Mkdir(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if reused, p := say("a directory"); reused == 192 || p.Refused == 0 || strings.Count(log.String(), "cannot be used") != 1 {
		t.Errorf("a directory: %d tokens are reused, %+v, the log has %q", reused, p, log.String())
	}
}

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *safeBuffer) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

// TestSharedBounds: the folder stays within its bytes, of which the text that was used last has its part; what killed writers have left goes.
func TestSharedBounds(t *testing.T) {
	dir := t.TempDir()
	open := func(c engine.Config) *engine.Engine { return newEngine(t, c) }
	c := engine.Config{Prefixes: pages.Config{Dir: dir}}
	sharing(t, c, open).Close()
	say := func(e *engine.Engine, first token.ID, n int) (reused int) {
		t.Helper()
		ids := text(n)
		ids[0] = first
		s := sequence(t, e)
		draw(t, s, 1, ids)
		reused = s.Reused()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		written(t, e)
		return reused
	}
	say(sharing(t, c, open), 1, 70)
	one := pageFiles(t, dir)
	if len(one) != 1 {
		t.Fatalf("one page is in %v", one)
	}
	size := int64(len(readFile(t, one[0])))
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{one[0] + ".tmp-77", filepath.Join(filepath.Dir(one[0]), "foreign")} {
		writeFile(t, name, "x")
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	c.Prefixes.Bytes = 5 * size
	e := sharing(t, c, open)
	for i := range token.ID(8) {
		say(e, 10+i, 140)
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	var bytes int64
	for _, at := range pageFiles(t, dir) {
		if filepath.Base(at) != "foreign" {
			bytes += int64(len(readFile(t, at)))
		}
	}
	p := e.Load().Prefixes
	if bytes > 5*size || bytes < 3*size || p.Removed < 10 || p.Failed != 0 {
		t.Errorf("%d bytes are kept of %d at most: %+v", bytes, 5*size, p)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*.tmp-*")); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(one[0]), "foreign")); err != nil {
		t.Error(err)
	}
	for i, want := range map[token.ID]int{17: 128, 10: 0} {
		if n := say(sharing(t, c, open), i, 140); n != want {
			t.Errorf("text %d: %d tokens are found, want %d", i, n, want)
		}
	}
	long := sharing(t, c, open) // a text larger than the folder: its beginning is kept
	say(long, 30, 290)
	if n := say(sharing(t, c, open), 30, 290); n != 256 {
		t.Errorf("a long text: %d tokens are found", n)
	}
}

// TestSharedFails: where nothing can be written, answers are as ever, and the failures are counted and named once.
func TestSharedFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	var log safeBuffer
	c := engine.Config{Prefixes: pages.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}}
	e := sharing(t, c, func(c engine.Config) *engine.Engine { return newEngine(t, c) })
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 20, text(150))
	for i := range 2 {
		s := sequence(t, e)
		if got := draw(t, s, 20, text(150)); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if p := written(t, e); p.Failed != i+1 || p.Written != 0 {
			t.Errorf("%+v", p)
		}
	}
	if n := strings.Count(log.String(), "cannot be written"); n != 1 {
		t.Errorf("the log has %q", log.String())
	}
	e.Close()
	e.Close()
}

// TestSharedBeside: several engines read and write one folder at a time, while files go.
func TestSharedBeside(t *testing.T) {
	dir := t.TempDir()
	c := engine.Config{Seqs: 2, Queue: 8, Prefixes: pages.Config{Dir: dir}}
	want := map[int][]int{}
	for n := 130; n < 134; n++ {
		for _, d := range draw(t, sequence(t, newEngine(t, engine.Config{})), 10, text(n)) {
			want[n] = append(want[n], int(d.ID))
		}
	}
	var all sync.WaitGroup
	var engines []*engine.Engine
	for range 3 {
		engines = append(engines, sharing(t, c, func(c engine.Config) *engine.Engine { return newEngine(t, c) }))
	}
	for _, e := range engines {
		for i := range 12 {
			s := sequence(t, e)
			if err := s.SetTerms(engine.Terms{Salt: fmt.Sprint(i % 5)}); err != nil {
				t.Fatal(err)
			}
			n := 130 + i%4
			all.Go(func() {
				var got []int
				err := s.Append(t.Context(), text(n))
				for range 10 {
					d, e := s.Next(t.Context())
					got, err = append(got, int(d.ID)), errors.Join(err, e)
				}
				if err := errors.Join(err, s.Close()); err != nil || !slices.Equal(got, want[n]) {
					t.Errorf("%d: %v, want %v: %v", n, got, want[n], err)
				}
			})
			if i == 6 {
				for _, at := range pageFiles(t, dir) {
					if !strings.Contains(at, ".tmp-") {
						_ = os.Remove(at)
					}
				}
			}
			if i >= 9 {
				all.Wait()
			}
		}
	}
	all.Wait()
	for _, e := range engines {
		written(t, e)
		e.Close()
		if p := e.Load().Prefixes; p.Refused+p.Failed != 0 {
			t.Errorf("%+v", p)
		}
		if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
			t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
		}
	}
}
