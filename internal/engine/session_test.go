package engine_test

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/kv"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// TestSession saves texts and expects another engine to go on behind them as the first does, without computing what was
// saved.
func TestSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session")
	for _, spec := range []modeltest.Spec{{Context: 300}, {Arch: "gemma3", Layers: 7, Context: 300}} {
		b := newBed(t, 1, spec.File(t))
		for _, cache := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
			for _, n := range []int{10, 100, 230} {
				s := sequence(t, b.engine(t, engine.Config{CacheType: cache}))
				drawn := draw(t, s, 30, text(n))
				if err := s.Save(path); err != nil {
					t.Fatal(err)
				}
				want := draw(t, s, 20)

				e := b.engine(t, engine.Config{CacheType: cache})
				all := text(n)
				for _, c := range drawn {
					all = append(all, c.ID)
				}
				s = sequence(t, e)
				if err := s.AppendSaved(t.Context(), all, path); err != nil {
					t.Fatal(err)
				}
				if got := draw(t, s, 20); !slices.Equal(got, want) {
					t.Errorf("%v, %d tokens: %v, want %v", cache, n, got, want)
				}
				if reused := (n + 29) / kv.PageTokens * kv.PageTokens; s.Reused() != reused {
					t.Errorf("%v, %d tokens: %d reused, want %d", cache, n, s.Reused(), reused)
				}
			}
		}
	}
}

// TestSessionErrors expects files that are no sessions of the engine, and places that cannot be written, to be refused,
// and what was there to stay.
func TestSessionErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "session")
	config := engine.Config{Seqs: 1, Queue: 1}
	s := sequence(t, newEngine(t, config))
	draw(t, s, 3, text(150))
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	good := readFile(t, path)
	if err := s.Save(filepath.Join(dir, "none", "session")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(path); !errors.Is(err, engine.ErrClosed) || readFile(t, path) != good {
		t.Errorf("a closed sequence: %v", err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v are left: %v", all, err)
	}

	refuse := func(what string, e *engine.Engine, salt, file string, is error) {
		t.Helper()
		writeFile(t, path, file)
		s := sequence(t, e)
		if err := s.SetTerms(engine.Terms{Salt: salt}); err != nil {
			t.Fatal(err)
		}
		if err := s.AppendSaved(t.Context(), append(text(150), 1, 2), path); !errors.Is(err, is) || s.Len() != 0 {
			t.Errorf("%s: %v, %d tokens", what, err, s.Len())
		}
		if u, _, _ := e.Held(); u.Used+u.Idle != 0 {
			t.Errorf("%s: %d pages are left", what, u.Used+u.Idle)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	fresh := newEngine(t, config)
	refuse("empty", fresh, "", "", kv.ErrFile)
	refuse("cut", fresh, "", good[:len(good)-1], kv.ErrFile)
	refuse("longer", fresh, "", good+"x", kv.ErrFile)
	refuse("changed", fresh, "", good[:len(good)-50]+"x"+good[len(good)-49:], kv.ErrFile)
	refuse("a model", fresh, "", "GGUF"+good[4:], kv.ErrFile)
	refuse("another salt", fresh, "x", good, kv.ErrFile)
	refuse("another cache type", newEngine(t, engine.Config{CacheType: tensor.F16}), "", good, kv.ErrFile)
	refuse("an id beyond the vocabulary", fresh, "", signed(good[:firstID]+"\x30"+good[firstID+1:]), kv.ErrFile)
	other := newBed(t, 1, modeltest.Spec{Context: 300, Type: tensor.Q8_0}.File(t))
	refuse("another model", other.engine(t, config), "", good, kv.ErrFile)
	again := sequence(t, fresh)
	draw(t, again, 1, text(5))
	if err := again.AppendSaved(t.Context(), text(5), path); err == nil || again.Len() != 6 {
		t.Errorf("behind a text: %v", err)
	}
}

// firstID is where a session's file has its text.
const firstID = 8 + sha256.Size + 4

// signed gives a file of a session that was changed its digest.
func signed(file string) string {
	body := file[:len(file)-sha256.Size]
	sum := sha256.Sum256([]byte(body))
	return body + string(sum[:])
}

// TestSessionAbsent: a file that is not there holds nothing, and what is no regular file is refused at once.
func TestSessionAbsent(t *testing.T) {
	dir := t.TempDir()
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 5, text(100))
	s := sequence(t, newEngine(t, engine.Config{}))
	if err := s.AppendSaved(t.Context(), text(100), filepath.Join(dir, "none")); err != nil || s.Restored() {
		t.Fatal(err)
	}
	if got := draw(t, s, 5); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s = sequence(t, newEngine(t, engine.Config{}))
	if err := s.AppendSaved(t.Context(), text(100), dir); !errors.Is(err, engine.ErrSession) || s.Len() != 0 {
		t.Errorf("a directory: %v", err)
	}
}

// TestSessionForged: pages of a forged file, which has a right digest, are used by the sequence that names the file and by no other,
// be they read before or after those of others are computed. The sequence gets an error that says what they are, or a wrong text.
func TestSessionForged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session")
	e := newEngine(t, engine.Config{Seqs: 3})
	s := sequence(t, newEngine(t, engine.Config{}))
	want := draw(t, s, 30, text(150))
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	good := readFile(t, path)
	pages := firstID + 4*(150+30) + 4
	for _, c := range []struct {
		name, bytes string
		err         error
	}{
		{"NaN", "\xff\xff\xff\x7f", compute.ErrNotFinite},
		{"zero", "\x00\x00\x00\x00", nil},
	} {
		writeFile(t, path, signed(good[:pages]+strings.Repeat(c.bytes, (len(good)-pages)/4)))
		if len(readFile(t, path)) != len(good) {
			t.Fatal("the forged file has another size")
		}
		forged := sequence(t, e)
		err := forged.AppendSaved(t.Context(), text(150), path)
		if !errors.Is(err, c.err) || !forged.Restored() {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			if got := draw(t, forged, 30); slices.Equal(got, want) {
				t.Errorf("%s: the pages of the file make no difference", c.name)
			}
		}
		plain := sequence(t, e)
		if got := draw(t, plain, 30, text(150)); !slices.Equal(got, want) {
			t.Errorf("beside %s: %v, want %v", c.name, got, want)
		}
		known := sequence(t, e) // what was computed here comes first
		if err := known.AppendSaved(t.Context(), text(150), path); err != nil || known.Restored() || known.Reused() != 128 {
			t.Errorf("behind %s: %v, %d tokens are reused", c.name, err, known.Reused())
		}
		if got := draw(t, known, 30); !slices.Equal(got, want) {
			t.Errorf("behind %s: %v, want %v", c.name, got, want)
		}
		for _, s := range []*engine.Sequence{forged, plain, known} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		e = newEngine(t, engine.Config{Seqs: 3})
	}
}

// TestSessionGoesOn: a text that a session was read for is saved again, turn after turn, on one engine and on others.
func TestSessionGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session")
	ids := text(70)
	e := newEngine(t, engine.Config{})
	for turn := range 6 {
		if turn%2 == 0 {
			e = newEngine(t, engine.Config{})
		}
		want := draw(t, sequence(t, newEngine(t, engine.Config{})), 30, ids)
		s := sequence(t, e)
		if err := s.AppendSaved(t.Context(), ids, path); err != nil {
			t.Fatal(err)
		}
		if reused := s.Reused(); turn > 0 && reused != (len(ids)-8)/kv.PageTokens*kv.PageTokens {
			t.Errorf("turn %d: %d of %d tokens are reused", turn, reused, len(ids))
		}
		got := draw(t, s, 30)
		if !slices.Equal(got, want) {
			t.Errorf("turn %d: %v, want %v", turn, got, want)
		}
		if err := errors.Join(s.Save(path), s.Close()); err != nil {
			t.Fatal(err)
		}
		for _, c := range got {
			ids = append(ids, c.ID)
		}
		ids = append(ids, text(7)...)
	}
}

// TestSessionBesideSteps saves and restores while other sequences are at work.
func TestSessionBesideSteps(t *testing.T) {
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 100, text(150))
	e := newEngine(t, engine.Config{Seqs: 6})
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 3 {
		path := filepath.Join(dir, string(rune('a'+i)))
		s := sequence(t, e)
		all.Go(func() {
			if err := s.Append(t.Context(), text(150)); err != nil {
				t.Error(err)
				return
			}
			for n, c := range want {
				if got, err := s.Next(t.Context()); err != nil || got.Token != c {
					t.Errorf("token %d: %v, want %v: %v", n, got, c, err)
					return
				}
				if n%20 != i {
					continue
				}
				if err := s.Save(path); err != nil {
					t.Error(err)
				}
				ids := text(150)
				for _, c := range want[:n+1] {
					ids = append(ids, c.ID)
				}
				again := sequence(t, e)
				if err := again.AppendSaved(t.Context(), ids, path); err != nil || again.Reused() < 128 {
					t.Errorf("%d tokens: %v", len(ids), err)
				}
				if got, err := again.Next(t.Context()); err != nil || n+1 < len(want) && got.Token != want[n+1] {
					t.Errorf("behind %d tokens: %v: %v", len(ids), got, err)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
		t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
	}
}

// TestSaveLost: a sequence whose slot or pages others took saves what the cache still has of its text, once it has a slot again.
func TestSaveLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session")
	e := newEngine(t, engine.Config{Seqs: 1, Queue: 2})
	s := sequence(t, e)
	draw(t, s, 3, text(150))
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	want := readFile(t, path)
	other := sequence(t, e)
	draw(t, other, 1, []token.ID{7, 9}) // waits until s has been idle for long enough, and takes its slot
	if e.Load().Preempted != 1 {
		t.Fatal("the slot was not taken")
	}
	if err := errors.Join(os.Remove(path), s.Save(path)); err != nil || readFile(t, path) != want {
		t.Errorf("the file differs: %v", err)
	}
	draw(t, s, 3)
}

// TestSessionContexts: a session of an engine with another context is gone on with, or computed anew where its states stand elsewhere, and kept again.
func TestSessionContexts(t *testing.T) {
	open := map[string]func(t *testing.T, context int) *engine.Engine{
		"attention": func(t *testing.T, context int) *engine.Engine { return newEngine(t, engine.Config{Context: context}) },
		"recurrent": func(t *testing.T, context int) *engine.Engine { return newLongRecurrent(t, context) },
	}
	for name, contexts := range map[string][]int{"attention": {300, 200, 152, 300}, "recurrent": {1024, 4096, 2048, 200, 4096, 1024}} {
		path := filepath.Join(t.TempDir(), name)
		for i, context := range contexts {
			ids := text(140)
			if i == 0 {
				ids = text(min(context, 1024) - 30) // longer than some contexts
			}
			want := draw(t, sequence(t, open[name](t, context)), 9, ids)
			s := sequence(t, open[name](t, context))
			if err := s.AppendSaved(t.Context(), ids, path); err != nil {
				t.Fatalf("%s, %v: %v", name, contexts[:i+1], err)
			}
			if got := draw(t, s, 9); !slices.Equal(got, want) {
				t.Errorf("%s, %v: %v, want %v", name, contexts[:i+1], got, want)
			}
			if err := s.Save(path); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
