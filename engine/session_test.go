package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"grove/engine"
	"grove/kv"
	"grove/suite/modeltest"
	"grove/weights/tensor"
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
				ids, err := e.Restore(path, "")
				if err != nil {
					t.Fatal(err)
				}
				all := text(n)
				for _, c := range drawn {
					all = append(all, c.ID)
				}
				if !slices.Equal(ids, all) {
					t.Errorf("%v, %d tokens: the text differs", cache, n)
				}
				s = sequence(t, e)
				if got := draw(t, s, 20, ids); !slices.Equal(got, want) {
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
	e := newEngine(t, config)
	s, waits := sequence(t, e), sequence(t, e)
	draw(t, s, 3, text(150))
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	good := readFile(t, path)
	if err := s.Save(filepath.Join(dir, "none", "session")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := waits.Save(path); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a sequence that waits: %v", err)
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
		if _, err := e.Restore(path, salt); !errors.Is(err, is) {
			t.Errorf("%s: %v", what, err)
		}
		if u, _, _ := e.Held(); u.Used+u.Idle != 0 {
			t.Errorf("%s: %d pages are left", what, u.Used+u.Idle)
		}
	}
	fresh := newEngine(t, config)
	refuse("empty", fresh, "", "", kv.ErrFile)
	refuse("cut", fresh, "", good[:len(good)-1], kv.ErrFile)
	refuse("changed", fresh, "", good[:300]+"x"+good[301:], kv.ErrFile)
	refuse("a model", fresh, "", "GGUF"+good[4:], kv.ErrFile)
	refuse("another salt", fresh, "x", good, kv.ErrFile)
	refuse("another cache type", newEngine(t, engine.Config{CacheType: tensor.F16}), "", good, kv.ErrFile)
	refuse("a shorter context", newEngine(t, engine.Config{Context: 152}), "", good, kv.ErrFile)
	other := newBed(t, 1, modeltest.Spec{Context: 300, Type: tensor.Q8_0}.File(t))
	refuse("another model", other.engine(t, config), "", good, kv.ErrFile)
	if _, err := fresh.Restore(filepath.Join(dir, "none"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	full := newEngine(t, engine.Config{Context: 200, Tokens: 200})
	holds := sequence(t, full)
	draw(t, holds, 1, text(195)[1:])
	writeFile(t, path, good)
	if _, err := full.Restore(path, ""); !errors.Is(err, kv.ErrFull) {
		t.Errorf("no room: %v", err)
	}
	draw(t, holds, 3)
}

// TestSessionBesideSteps saves and restores while other sequences are at work.
func TestSessionBesideSteps(t *testing.T) {
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 100, text(150))
	e := newEngine(t, engine.Config{Seqs: 4})
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
				if ids, err := e.Restore(path, ""); err != nil || !slices.Equal(ids[:150], text(150)) || ids[len(ids)-1] != c.ID {
					t.Errorf("%d tokens: %v", len(ids), err)
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
