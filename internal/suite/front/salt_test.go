package front_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/engine/speculate"
	"grove/internal/gopher"
)

// TestSaltsDraftApart: what texts of one salt, of none, and private ones teach drafting shows in no counter of another salt's text, and
// does show in the next one of their own.
func TestSaltsDraftApart(t *testing.T) {
	options := grove.Options{Draft: gopher.NanoName, DraftVocab: 500, Eager: true, Forget: true, Parallel: 1, Threads: 1}
	counters := func(m *grove.Model, salt string, private bool, list string) [3]int {
		r := request(2)
		r.CacheSalt, r.Private, r.Method, r.MaxTokens = salt, private, list, 12
		_, st := generate(t, m, r)
		if private && st.ReusedTokens > 0 {
			t.Errorf("%s: a private text has %d tokens of another", list, st.ReusedTokens)
		}
		return [3]int{st.Drafting.Rounds, st.Drafting.Drafted, st.Drafting.Accepted}
	}
	learns := 0
	for _, list := range []string{"recycle", "goose", "swift", "draft", grove.MethodAuto} {
		want := counters(open(t, gopher.Name, options), "b", false, list)
		m := open(t, gopher.Name, options)
		for range 2 {
			counters(m, "", false, list)
			counters(m, "a", false, list)
		}
		got := map[string][3]int{
			"another salt": counters(m, "b", false, list), "a private text": counters(m, "", true, list), "one of a salt": counters(m, "a", true, list),
		}
		if diff := cmp.Diff(map[string][3]int{"another salt": want, "a private text": want, "one of a salt": want}, got); diff != "" {
			t.Errorf("%s: rounds, drafts that were run and those that were accepted (-fresh +got):\n%s", list, diff)
		}
		if counters(m, "a", false, list) != want && counters(m, "", false, list) != want {
			learns++
		}
	}
	if learns < 3 {
		t.Errorf("%d of 5 lists of methods draft otherwise once their salt is known", learns)
	}
}

// TestManySalts: of many salts the last are remembered.
func TestManySalts(t *testing.T) {
	m := open(t, gopher.Name, grove.Options{Eager: true, Forget: true, Parallel: 1, Threads: 1})
	r := request(2)
	r.Method, r.MaxTokens = "recycle", 16
	counters := func(salt int) (st grove.SpecStats) {
		r.CacheSalt = string(rune('a' + salt))
		_, all := generate(t, m, r)
		st = all.Drafting
		st.Drafting, st.Stepping = 0, 0
		return st
	}
	first := counters(0)
	for i := range speculate.MaxSalts {
		counters(1 + i)
	}
	if got := counters(0); got != first {
		t.Errorf("a salt that was forgotten: %+v, want %+v", got, first)
	}
	if got := counters(speculate.MaxSalts); got == first {
		t.Error("a salt is forgotten early")
	}
}

// TestSaltsAreNotKept: what texts with a salt teach lies on no disk.
func TestSaltsAreNotKept(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	for _, c := range []struct {
		salt    string
		private bool
		kept    bool
	}{{"a", false, false}, {"", true, false}, {"", false, true}} {
		m := open(t, gopher.Name, grove.Options{Eager: true, Parallel: 1, Threads: 1})
		r := request(2)
		r.Method, r.CacheSalt, r.Private = "recycle", c.salt, c.private
		generate(t, m, r)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "grove", "drafting-*"))
		if err != nil || (len(files) == 1) != c.kept {
			t.Errorf("salt %q, private %v: files %v, %v", c.salt, c.private, files, err)
		}
	}
}

// TestScoresApart: texts whose log-probabilities are computed leave nothing that another text finds: their requests may have had a salt.
func TestScoresApart(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 1})
	r := request(1)
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Logprobs(t.Context(), g.Prompt(), func(grove.LogprobRow) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for i, reused := range []bool{false, true} {
		if _, st := generate(t, m, r); (st.ReusedTokens > 0) != reused {
			t.Errorf("text %d: %d tokens are found", i, st.ReusedTokens)
		}
	}
}

// TestPrivateSession: a private text keeps nothing, so that it has no session.
func TestPrivateSession(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 1})
	_, err := m.Generate(t.Context(), grove.Request{Prompt: "a", Private: true, Session: filepath.Join(t.TempDir(), "s")})
	var option *grove.OptionError
	if !errors.As(err, &option) || err.Error() != "grove: Request.Session and Request.Private are both set, and a private request keeps nothing; leave one out" {
		t.Error(err)
	}
}
