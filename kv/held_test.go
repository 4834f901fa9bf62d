package kv

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"grove/forest"
	"grove/text/token"
	"grove/weights/tensor"
)

// saved returns the file of a text's trunk.
func (b *book) saved(x *text) []byte {
	b.t.Helper()
	h, err := b.k.Hold(x.seq, x.ids)
	if err != nil {
		b.t.Fatal(err)
	}
	var file bytes.Buffer
	if err := h.Write(&file); err != nil {
		b.t.Fatal(err)
	}
	h.Release()
	b.check()
	return file.Bytes()
}

// load reads a file and seals its pages.
func load(k *Cache, r io.Reader, salt string) ([]token.ID, error) {
	in, err := k.NewReader(r, salt)
	if err != nil {
		return nil, err
	}
	h, err := in.Take()
	if err != nil {
		return nil, err
	}
	defer h.Release()
	if err := in.Fill(); err != nil {
		return nil, err
	}
	h.Seal()
	return h.Text, nil
}

// TestHeld writes texts of all lengths and expects another cache to find the same bytes, whatever a
// window has passed.
func TestHeld(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 100, 128, 190, 266} {
		b := newBook(t, small)
		x := b.open("salt")
		b.must(x, story(0, 0, n))
		file := b.saved(x)
		other := newBook(t, small)
		ids, err := load(other.k, bytes.NewReader(file), "salt")
		if err != nil || !slices.Equal(ids, x.ids) {
			t.Fatalf("%d tokens: %v; %d tokens are read", n, err, len(ids))
		}
		if u := other.k.Usage(); u.Used != 0 {
			t.Errorf("%d tokens: %d pages are in use", n, u.Used)
		}
		if again, err := load(other.k, bytes.NewReader(file), "salt"); err != nil || !slices.Equal(again, ids) {
			t.Errorf("%d tokens, a second time: %v", n, err)
		}
		s := other.k.NewSeq("salt")
		found, err := other.k.Reuse(s, append(slices.Clone(ids), 1))
		if want := n / PageTokens * PageTokens; err != nil || found != want {
			t.Errorf("%d tokens: %d are found, want %d: %v", n, found, want, err)
		}
		for l := range small.Layers {
			for p := other.k.firstSeen(other.k.places[l].group, found); p < found/PageTokens; p++ {
				if id := b.k.seqs[x.seq].tables[b.k.places[l].group][p]; id == noPage {
					continue // it has passed the window; it was found by its name
				}
				if !bytes.Equal(b.k.layerPage(&b.k.seqs[x.seq], l, p), other.k.layerPage(&other.k.seqs[s], l, p)) {
					t.Errorf("%d tokens: page %d of layer %d differs", n, p, l)
				}
			}
		}
		if s := other.k.NewSeq(""); n > PageTokens {
			if found, err := other.k.Reuse(s, ids); found != 0 || err != nil {
				t.Errorf("%d tokens are found across salts: %v", found, err)
			}
		}
		b.finish()
	}
}

// TestHeldRefusals expects files that are cut, changed or another cache's, and caches without room, to be refused, and
// nothing to be left of them.
func TestHeldRefusals(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 200))
	file := b.saved(x)
	load := func(c Config, r io.Reader, salt string) error {
		t.Helper()
		k, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = load(k, r, salt)
		if u := k.Usage(); err != nil && (u.Used != 0 || u.Idle != 0) {
			t.Errorf("%v: %d pages are used, %d kept", err, u.Used, u.Idle)
		}
		return err
	}
	if err := load(small, bytes.NewReader(file), ""); err != nil {
		t.Fatal(err)
	}
	if err := load(small, bytes.NewReader(file), ""); err != nil {
		t.Fatal(err)
	}
	unknown, gone := small, errors.New("the weights are gone")
	unknown.Identity = func() (string, error) { return "test", gone }
	refuse := func(what string, c Config, file []byte, salt string, is error) {
		t.Helper()
		if err := load(c, bytes.NewReader(file), salt); !errors.Is(err, is) {
			t.Errorf("%s: %v", what, err)
		}
	}
	foreign, typed, short, narrow := small, small, small, small
	foreign.Identity = named("testx")
	typed.Type = tensor.F16
	short.Context = 199
	narrow.Tokens, narrow.Seqs, narrow.Scratch = 1, 1, 1
	refuse("a model without an identity", unknown, file, "", gone)
	refuse("another model's", foreign, file, "", ErrFile)
	refuse("another cache type's", typed, file, "", ErrFile)
	refuse("another salt's", small, file, "x", ErrFile)
	refuse("longer than the context", short, file, "", ErrFile)
	refuse("no room", narrow, file, "", ErrFull)
	refuse("with more behind it", small, append(slices.Clone(file), 0), "", ErrFile)
	step := max(1, len(file)/300)
	for i := 0; i < len(file); i += step {
		refuse("cut", small, file[:i], "", ErrFile)
		bad := slices.Clone(file)
		bad[i] ^= 1 << (i % 8)
		refuse("changed", small, bad, "", ErrFile)
		failure := errors.New("the disk is gone")
		if err := load(small, io.MultiReader(bytes.NewReader(file[:i]), errReader{failure}), ""); !errors.Is(err, failure) {
			t.Errorf("a reader that fails: %v", err)
		}
		h, err := b.k.Hold(x.seq, x.ids)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Write(&limitedWriter{i, failure}); !errors.Is(err, failure) {
			t.Errorf("a writer that fails: %v", err)
		}
		h.Release()
	}
	b.check()
	if _, err := b.k.Hold(x.seq, story(1, 0, 150)); err == nil {
		t.Error("pages of another text are held")
	}
	if _, err := b.k.Hold(forest.Seq(99), nil); !errors.Is(err, forest.ErrSeq) {
		t.Errorf("pages of no sequence: %v", err)
	}
	b.finish()
}

// named returns the identity of a model.
func named(s string) func() (string, error) { return func() (string, error) { return s, nil } }

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// limitedWriter is a disk with room for some bytes.
type limitedWriter struct {
	room int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// FuzzHeld reads hostile session files.
func FuzzHeld(f *testing.F) {
	b := newBook(f, small)
	x := b.open("")
	b.must(x, story(0, 0, 70))
	file := b.saved(x)
	f.Add(file)
	f.Add(file[:50])
	f.Fuzz(func(t *testing.T, file []byte) {
		k, err := New(small)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := load(k, bytes.NewReader(file), ""); err != nil && !errors.Is(err, ErrFile) && !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		if u := k.Usage(); u.Used != 0 {
			t.Errorf("%d pages are in use", u.Used)
		}
	})
}
