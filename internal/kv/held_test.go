package kv

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// saved returns the file of a text's trunk.
func (b *book) saved(x *text) []byte {
	b.t.Helper()
	file := save(b.t, b.k, x.seq, x.ids)
	b.check()
	return file
}

func save(t testing.TB, k *Cache, s forest.Seq, ids []token.ID) []byte {
	t.Helper()
	h, err := k.Hold(s, ids)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := h.Write(&file); err != nil {
		t.Fatal(err)
	}
	h.Release()
	return file.Bytes()
}

// load reads a file into a sequence, for a text that begins with ids, and returns the file's text.
func load(k *Cache, s forest.Seq, file io.Reader, size int, salt string, ids []token.ID) ([]token.ID, error) {
	in, err := k.NewReader(file, int64(size), salt, vocabulary)
	if err != nil {
		return nil, err
	}
	if ids == nil {
		ids = append(slices.Clone(in.text), 1)
	}
	in.Use(ids)
	if err := in.Take(s); err != nil {
		return nil, err
	}
	if err := in.Fill(); err != nil {
		return nil, errors.Join(err, k.Truncate(s, 0))
	}
	return in.text, in.Adopt(s)
}

const vocabulary = 1000 // of story

// TestHeld writes texts of all lengths and expects a sequence of another cache to get the same bytes, whatever a window has passed,
// and no other to find them but those of the same file.
func TestHeld(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 100, 128, 190, 266} {
		b := newBook(t, small)
		x := b.open("salt")
		b.must(x, story(0, 0, n))
		file := b.saved(x)
		twice := small
		twice.Tokens *= 2
		other := newBook(t, twice)
		full := n / PageTokens * PageTokens
		var seqs []forest.Seq
		for range 2 {
			s := other.k.NewSeq("salt")
			seqs = append(seqs, s)
			ids, err := load(other.k, s, bytes.NewReader(file), len(file), "salt", nil)
			if err != nil || !slices.Equal(ids, x.ids) || other.k.Forest.Len(s) != full {
				t.Fatalf("%d tokens: %v; %d tokens are read, %d are in the cache", n, err, len(ids), other.k.Forest.Len(s))
			}
		}
		for l := range small.Layers {
			g := other.k.places[l].group
			for p := range full / PageTokens {
				ours, theirs := other.k.seqs[seqs[0]].tables[g][p], b.k.seqs[x.seq].tables[g][p]
				if ours != other.k.seqs[seqs[1]].tables[g][p] {
					t.Errorf("%d tokens: page %d of layer %d is there twice", n, p, l)
				}
				if seen := p >= other.k.firstSeen(g, full); seen != (ours != noPage) {
					t.Errorf("%d tokens: page %d of layer %d: %d", n, p, l, ours)
				}
				if ours == noPage || theirs == noPage { // it has passed the window, and was found by its name
					continue
				}
				if !bytes.Equal(b.k.layerPage(&b.k.seqs[x.seq], l, p), other.k.layerPage(&other.k.seqs[seqs[0]], l, p)) {
					t.Errorf("%d tokens: page %d of layer %d differs", n, p, l)
				}
			}
		}
		if !bytes.Equal(save(t, other.k, seqs[0], x.ids), file) {
			t.Errorf("%d tokens: what was read is written otherwise", n)
		}
		for _, salt := range []string{"salt", ""} {
			if found, err := other.k.Reuse(other.k.NewSeq(salt), append(slices.Clone(x.ids), 1)); found != 0 || err != nil {
				t.Errorf("%d tokens, salt %q: others find %d tokens of a file: %v", n, salt, found, err)
			}
		}
		b.finish()
	}
}

// TestHeldPrefix reads what a file has of texts that begin like its own: whole pages, of which a window leaves none but the last.
func TestHeldPrefix(t *testing.T) {
	for _, c := range []struct {
		name     string
		layers   []Layer
		same     int // tokens that the text has in common with the file's
		more     int
		windowed bool
		want     int
	}{
		{name: "all, and more", same: 200, more: 1, want: 192},
		{name: "all", same: 200, want: 192},
		{name: "the pages alone", same: 192, want: 128},
		{name: "a part", same: 150, more: 50, want: 128},
		{name: "a part of the first page", same: 63, more: 50},
		{name: "all, with a window", same: 200, more: 1, windowed: true, want: 192},
		{name: "a part, with a window", same: 150, more: 50, windowed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := small
			if !c.windowed {
				config.Layers = small.Layers[:1]
			}
			b := newBook(t, config)
			x := b.open("")
			b.must(x, story(0, 0, 200))
			file := b.saved(x)
			other := newBook(t, config)
			s := other.k.NewSeq("")
			ids := append(slices.Clone(x.ids[:c.same]), story(1, c.same, c.more)...)
			if _, err := load(other.k, s, bytes.NewReader(file), len(file), "", ids); err != nil || other.k.Forest.Len(s) != c.want {
				t.Errorf("%d tokens, want %d: %v", other.k.Forest.Len(s), c.want, err)
			}
			if err := other.k.CloseSeq(s); err != nil || other.k.Usage().Used != 0 {
				t.Errorf("%d pages are used: %v", other.k.Usage().Used, err)
			}
			b.finish()
		})
	}
}

// TestHeldRefusals expects files that are cut, changed or another cache's, and caches without room, to be refused, and
// nothing to be left of them.
func TestHeldRefusals(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 200))
	file := b.saved(x)
	more := append(slices.Clone(file), 0)
	gone, failure := errors.New("the weights are gone"), errors.New("the disk is gone")
	config := func(change func(c *Config)) Config {
		c := small
		change(&c)
		return c
	}
	type refusal struct {
		name   string
		config Config
		file   []byte
		size   int // that the reader is said to have
		salt   string
		fails  error // of the reader behind the file
		want   error
	}
	unknown := config(func(c *Config) { c.Identity = func() (string, error) { return "test", gone } })
	narrow := config(func(c *Config) { c.Tokens, c.Seqs, c.Scratch = 1, 1, 1 })
	tests := []refusal{
		{name: "the file itself", config: small, file: file, size: len(file)},
		{name: "a model without an identity", config: unknown, file: file, size: len(file), want: gone},
		{name: "another model's", config: config(func(c *Config) { c.Identity = named("testx") }), file: file, size: len(file), want: ErrFile},
		{name: "another cache type's", config: config(func(c *Config) { c.Type = tensor.F16 }), file: file, size: len(file), want: ErrFile},
		{name: "another salt's", config: small, file: file, size: len(file), salt: "x", want: ErrFile},
		{name: "no room", config: narrow, file: file, size: len(file), want: ErrFull},
		{name: "with more behind it", config: small, file: more, size: len(more), want: ErrFile},
		{name: "one that grew", config: small, file: more, size: len(file), want: ErrFile},
	}
	for i := range steps(file) {
		changed := slices.Clone(file)
		changed[i] ^= 1 << (i % 8)
		tests = append(tests,
			refusal{name: fmt.Sprint("cut at ", i), config: small, file: file[:i], size: i, want: ErrFile},
			refusal{name: fmt.Sprint("changed at ", i), config: small, file: changed, size: len(file), want: ErrFile},
			refusal{name: fmt.Sprint("a reader that fails at ", i), config: small, file: file[:i], size: len(file), fails: failure, want: failure})
	}
	for _, tt := range tests {
		k, err := New(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		r := io.Reader(bytes.NewReader(tt.file))
		if tt.fails != nil {
			r = io.MultiReader(r, errReader{tt.fails})
		}
		_, err = load(k, k.NewSeq(tt.salt), r, tt.size, tt.salt, nil)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if u := k.Usage(); err != nil && (u.Used != 0 || u.Idle != 0) {
			t.Errorf("%s: %v: %d pages are used, %d kept", tt.name, err, u.Used, u.Idle)
		}
	}
	b.finish()
}

// TestHeldVocabulary expects a file to be refused by a vocabulary that lacks one of its ids.
func TestHeldVocabulary(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 200))
	file, most := b.saved(x), int(slices.Max(x.ids))
	for vocabulary, want := range map[int]error{most: ErrFile, most + 1: nil} {
		if _, err := newBook(t, small).k.NewReader(bytes.NewReader(file), int64(len(file)), "", vocabulary); !errors.Is(err, want) {
			t.Errorf("a vocabulary of %d, the largest id is %d: %v, want %v", vocabulary, most, err, want)
		}
	}
	b.finish()
}

// TestHoldRefusals expects writers that fail to end a file, and pages of another text or of no sequence to be refused.
func TestHoldRefusals(t *testing.T) {
	b := newBook(t, small)
	x := b.open("")
	b.must(x, story(0, 0, 200))
	failure := errors.New("the disk is gone")
	for i := range steps(b.saved(x)) {
		h, err := b.k.Hold(x.seq, x.ids)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Write(&limitedWriter{i, failure}); !errors.Is(err, failure) {
			t.Errorf("a writer that fails at %d: %v", i, err)
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

// steps returns about 300 places of a file.
func steps(file []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < len(file) && yield(i); i += max(1, len(file)/300) {
		}
	}
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

// TestHeldOrigin expects a file to be refused by a cache that differs in one thing alone, where its size tells nothing: it
// has no pages.
func TestHeldOrigin(t *testing.T) {
	b := newBook(t, small)
	x := b.open("salt")
	b.must(x, story(0, 0, 10))
	file := b.saved(x)
	b.finish()
	typed, foreign := small, small
	typed.Type, foreign.Identity = tensor.F16, named("tesu")
	for _, c := range []struct {
		name   string
		config Config
		salt   string
		want   error
	}{
		{"the same", small, "salt", nil}, {"another cache type", typed, "salt", ErrFile},
		{"another model", foreign, "salt", ErrFile}, {"another salt", small, "sals", ErrFile}, {"no salt", small, "", ErrFile},
	} {
		k, err := New(c.config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := load(k, k.NewSeq(c.salt), bytes.NewReader(file), len(file), c.salt, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// FuzzHeld reads hostile session files, as they are and with the digest that they should have.
func FuzzHeld(f *testing.F) {
	b := newBook(f, small)
	x := b.open("")
	b.must(x, story(0, 0, 70))
	file := b.saved(x)
	f.Add(file, 71)
	f.Add(file[:50], 1)
	f.Add(signed(slices.Concat(file[:44], []byte{255, 255, 255, 127}, file[48:])), 5)
	f.Fuzz(func(t *testing.T, file []byte, n int) {
		k, err := New(small)
		if err != nil {
			t.Fatal(err)
		}
		s := k.NewSeq("")
		for _, file := range [][]byte{file, signed(file)} {
			_, err := load(k, s, bytes.NewReader(file), len(file), "", story(0, 0, max(0, min(n, 300))))
			if err != nil && !errors.Is(err, ErrFile) && !errors.Is(err, ErrFull) {
				t.Error(err)
			}
			if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
				t.Error(err)
			}
			if err := k.Truncate(s, 0); err != nil {
				t.Error(err)
			}
		}
		if err := k.CloseSeq(s); err != nil {
			t.Error(err)
		}
		if u := k.Usage(); u.Used != 0 {
			t.Errorf("%d pages are in use", u.Used)
		}
	})
}

// signed returns a file with the digest of its content at its end.
func signed(file []byte) []byte {
	body := file[:max(0, len(file)-sha256.Size)]
	sum := sha256.Sum256(body)
	return append(slices.Clone(body), sum[:]...)
}
