package engine_test

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// keeper is a method that keeps one number of bytes.
type keeper struct{ state []byte }

func (k *keeper) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &drafter{draft: func(d *drafter, tree *method.Tree) {
		tree.Add(method.Root, d.h.Last(0), 5, 0.5)
		tree.Add(method.Root, 1, 6, 0.5)
	}}, nil
}

func (k *keeper) MarshalBinary() ([]byte, error) { return append([]byte("kept"), k.state...), nil }

func (k *keeper) UnmarshalBinary(b []byte) error {
	if !bytes.HasPrefix(b, []byte("kept")) {
		return errors.New("makes no sense")
	}
	k.state = bytes.TrimPrefix(b, []byte("kept"))
	return nil
}

func init() {
	for _, name := range []string{"keeper", "keeper2"} {
		method.Register(method.Info{Name: name, Kind: method.KindText, Lasting: true})
	}
}

func openKeeper(t *testing.T, e *engine.Engine, name string) (*keeper, *engine.Drafting) {
	t.Helper()
	return openAs(t, e, name, true)
}

func openAs(t *testing.T, e *engine.Engine, name string, lasting bool) (*keeper, *engine.Drafting) {
	t.Helper()
	k := &keeper{}
	d, err := e.OpenDrafting(t.Context(), []method.Info{{Name: name, Kind: method.KindText, Lasting: lasting, Open: func(method.Env) (method.Method, error) {
		return k, nil
	}}}, method.Env{})
	if err != nil {
		t.Fatal(err)
	}
	d.Eager() // drafts run though they do not pay
	return k, d
}

// useDrafting draws a text with a drafting.
func useDrafting(t *testing.T, e *engine.Engine, d *engine.Drafting) {
	t.Helper()
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 9}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetDrafting(d, nil); err != nil {
		t.Fatal(err)
	}
	draw(t, s, 40, text(20))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNotLasting: of a method whose learning does not last nothing is kept, and nothing is taken over.
func TestNotLasting(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	e := newEngine(t, engine.Config{})
	path, err := e.LearnedPath()
	if err != nil {
		t.Fatal(err)
	}
	k, d := openAs(t, e, "keeper", false)
	k.state = []byte("123")
	useDrafting(t, e, d)
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(path); err == nil && strings.Contains(string(kept), "keeper") {
		t.Errorf("kept: %s", kept)
	}
	writeFile(t, path, `{"keeper":{"state":"a2VwdDk="}}`)
	if k, d = openAs(t, e, "keeper", false); len(k.state) > 0 {
		t.Fatalf("a new method has the state %q", k.state)
	}
	if d.Load(); len(k.state) > 0 {
		t.Errorf("loaded %q", k.state)
	}
	if k, d = openAs(t, e, "keeper", true); len(k.state) > 0 {
		t.Fatalf("a new method has the state %q", k.state)
	}
	if d.Load(); string(k.state) != "9" {
		t.Errorf("of a method that lasts %q is loaded", k.state)
	}
}

// saveDrafting keeps what a drafting has learned.
func saveDrafting(t *testing.T, d *engine.Drafting) {
	t.Helper()
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
}

// learnedFile returns the text of an engine's file of what methods learned; "": there is none. It removes the file.
func learnedFile(t *testing.T, e *engine.Engine) string {
	t.Helper()
	path, err := e.LearnedPath()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return ""
	}
	text := readFile(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return text
}

// writeLearned writes the file of an engine.
func writeLearned(t *testing.T, e *engine.Engine, text string) {
	t.Helper()
	path, err := e.LearnedPath()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, text)
}

// keptText returns a new engine and the file of a method that has a state and has drafted a text.
func keptText(t *testing.T) (e *engine.Engine, d *engine.Drafting, text string) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	e = newEngine(t, engine.Config{})
	k, d := openKeeper(t, e, "keeper")
	if saveDrafting(t, d); learnedFile(t, e) != "" {
		t.Error("a file of nothing was written")
	}
	k.state = []byte("123")
	useDrafting(t, e, d)
	saveDrafting(t, d)
	if text = learnedFile(t, e); !strings.Contains(text, `"c":10`) || !strings.Contains(text, `"state"`) {
		t.Errorf("kept: %s", text)
	}
	return e, d, text
}

// TestLearned: what methods learned is there when they are opened again, each method's beside the others'; nothing is
// written where nothing was learned.
func TestLearned(t *testing.T) {
	e, d, first := keptText(t)
	if saveDrafting(t, d); learnedFile(t, e) != "" {
		t.Error("the same was saved twice")
	}
	tests := []struct {
		name     string
		method   string
		file     string   // "": that of the test before
		state    string   // that is loaded
		has, not []string // in the file that is saved behind another text
		whole    bool     // the file is removed before it is saved, so that it has this method alone
	}{
		{"another method", "keeper2", strings.Replace(first, "{", `{"unknown method":{"state":"AAAA"},`, 1), "", []string{`"keeper"`, `"keeper2"`}, []string{"unknown"}, false},
		{"the method", "keeper", "", "123", []string{`"c":10`}, nil, true},
	}
	last := ""
	for _, tt := range tests {
		e := newEngine(t, engine.Config{})
		writeLearned(t, e, cmp.Or(tt.file, last))
		k, d := openKeeper(t, e, tt.method)
		d.Load()
		if string(k.state) != tt.state {
			t.Errorf("%s: loaded %q, want %q", tt.name, k.state, tt.state)
		}
		if tt.whole {
			learnedFile(t, e)
		}
		useDrafting(t, e, d)
		saveDrafting(t, d)
		saved := learnedFile(t, e)
		last = saved
		if saved == first {
			t.Errorf("%s: rates do not go on: %s", tt.name, saved)
		}
		for _, part := range tt.has {
			if !strings.Contains(saved, part) {
				t.Errorf("%s: kept without %s: %s", tt.name, part, saved)
			}
		}
		for _, part := range tt.not {
			if strings.Contains(saved, part) {
				t.Errorf("%s: kept with %s: %s", tt.name, part, saved)
			}
		}
	}
}

// TestLearnedDamaged: files that make no sense count as none, and drafting goes on.
func TestLearnedDamaged(t *testing.T) {
	e, _, good := keptText(t)
	rates := `{"keeper":{"rates":[{"c":-1,"h":1,"t":1},{"c":1000000,"h":1,"t":1},{"c":10,"h":2,"t":1},{"c":12,"h":-1,"t":1},{"c":14,"h":1e30,"t":1e30}]}}`
	tests := []struct{ name, file string }{
		{"empty", ""}, {"no object", "[1]"}, {"cut", good[:len(good)/2]}, {"a state that is too short", `{"keeper":{"state":"AAAA"}}`},
		{"too large", strings.Repeat(" ", 16<<20) + good}, {"rates out of range", rates},
	}
	for _, tt := range tests {
		writeLearned(t, e, tt.file)
		k, d := openKeeper(t, e, "keeper")
		if d.Load(); len(k.state) > 0 {
			t.Errorf("%s: loaded %q", tt.name, k.state)
		}
		useDrafting(t, e, d)
	}
}

// TestLearnedTogether saves, loads and drafts at the same time.
func TestLearnedTogether(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	e := newEngine(t, engine.Config{Seqs: 4})
	_, d := openKeeper(t, e, "keeper")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			useDrafting(t, e, d)
			if err := d.Save(); err != nil {
				t.Error(err)
			}
			d.Load()
		})
	}
	group.Wait()
}

// TestLearnedUnwritable expects an error where no file can be written.
func TestLearnedUnwritable(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	writeFile(t, blocked, "")
	t.Setenv("XDG_CACHE_HOME", blocked)
	e := newEngine(t, engine.Config{})
	_, d := openKeeper(t, e, "keeper")
	useDrafting(t, e, d)
	if err := d.Save(); err == nil {
		t.Error("saved below a file")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTypical: where the target has one token to give, typical acceptance gives plain decoding's text; where it has
// several it takes drafts that plain decoding would not have drawn, but none that is unlikely.
func TestTypical(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const n = 80
	run := func(p sample.Params, typical bool) ([]sample.Token, engine.SpecStats) {
		e := newEngine(t, engine.Config{})
		s, err := e.NewSequence(engine.Answer{Sampling: p})
		if err != nil {
			t.Fatal(err)
		}
		d := drafting(t, e, &drafter{draft: func(d *drafter, tree *method.Tree) {
			for id := range token.ID(48) {
				tree.Add(method.Root, id, 1, 0.5)
			}
		}})
		d.Eager()
		if err := s.SetDrafting(d, nil); err != nil {
			t.Fatal(err)
		}
		if typical {
			if err := s.SetRule(verify.Typical); err != nil {
				t.Fatal(err)
			}
		}
		got := draw(t, s, n, text(20))
		return got, s.SpecStats()
	}
	for name, p := range map[string]sample.Params{"greedy": {}, "one token": {Temperature: 1, TopK: 1, Seed: 3}} {
		want, _ := run(p, false)
		if got, _ := run(p, true); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	p := sample.Params{Temperature: 1, Seed: 3}
	want, _ := run(p, false)
	got, stats := run(p, true)
	if slices.Equal(got, want) || stats.Accepted < stats.Rounds/2 {
		t.Errorf("%d drafts accepted in %d rounds; the text of plain decoding: %v", stats.Accepted, stats.Rounds, slices.Equal(got, want))
	}
	var plain engine.Sequence
	if err := plain.SetRule(verify.Typical); err != nil {
		t.Fatal(err)
	} // without drafting there is nothing to accept
}
