package front_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/method"
)

// TestMethods: every exact method gives the answer of plain decoding, alone and in the company of others; the rest say
// what they are.
func TestMethods(t *testing.T) {
	plain := open(t, goldenModel, grove.Options{Parallel: 1})
	r := request(2)
	r.Method = grove.MethodOff
	want, stats := generate(t, plain, r)
	if stats.Drafting.Rounds != 0 || stats.Grade != grove.Exact {
		t.Errorf("plain decoding drafts: %+v", stats)
	}
	m := open(t, goldenModel, grove.Options{Draft: goldenModel, Eager: true, Forget: true, Parallel: 1})
	lists := []string{"auto", "", "sam,lookup, recycle", "goose,draft"}
	for _, i := range grove.Methods() {
		if i.Name == "" || i.Paper == "" || i.Grade == "" || i.Kind == grove.KindModel && i.Needs == "" {
			t.Errorf("a method that does not say what it is: %+v", i)
		}
		if _, err := m.Generate(t.Context(), grove.Request{Prompt: "x", Method: i.Name}); err != nil {
			if !errors.Is(err, method.ErrNeeds) || !strings.Contains(err.Error(), "method "+i.Name+" needs "+i.Needs) {
				t.Errorf("%s: %v", i.Name, err)
			}
			continue // the model is too small for it
		}
		lists = append(lists, i.Name)
	}
	if len(lists) < 14 {
		t.Errorf("methods that the model can use: %v", lists)
	}
	for _, list := range lists {
		r.Method, r.Prediction = list, "a prediction; a long, long line; "
		got, stats := generate(t, m, r)
		if d := cmp.Diff(want, got, sameBits); d != "" && stats.Grade == grove.Exact {
			t.Errorf("method %s (-want +got):\n%s", list, d)
		}
		if stats.Grade != grove.MethodGrade(list) || stats.Drafting.Rounds == 0 || stats.Drafting.Tokens == 0 {
			t.Errorf("method %s: %+v", list, stats)
		}
	}
}

func TestMethodErrors(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 1})
	var names []string
	for _, i := range grove.Methods() {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	var rules []string
	for _, r := range grove.Rules() {
		rules = append(rules, r.Name)
	}
	unknown := " is not known; auto, off and these are: " + strings.Join(names, ", ")
	for _, c := range []struct{ method, accept, want string }{
		{"smart", "", `grove: method: "smart"` + unknown},
		{"sam,off", "", `grove: method: "off"` + unknown},
		{"sam,sam", "", "grove: method sam is named twice; name it once"},
		{"draft", "", "grove: method draft needs a draft model: none is given"},
		{"sam,draft-rsd", "", "grove: method draft-rsd verifies its drafts by the rule reject: it cannot work beside methods with other rules"},
		{"sam", "greedy", `grove: verify: rule "greedy" is not known; use one of: ` + strings.Join(rules, ", ") + `; exact keeps the methods' own`},
		{"off", "typical", "grove: the rule typical verifies drafts, and drafting is off; choose a method, or leave the rule out"},
	} {
		_, err := m.Generate(t.Context(), grove.Request{Prompt: "x", MaxTokens: 2, Method: c.method, Accept: c.accept})
		var option *grove.OptionError
		if !errors.As(err, &option) || err.Error() != c.want {
			t.Errorf("method %q, accept %q: %v; want %s", c.method, c.accept, err, c.want)
		}
	}
	if g := grove.MethodGrade("smart"); g != "" {
		t.Errorf("an unknown method is %s", g)
	}
}

// TestAccept: typical acceptance says that it is lossy, and is plain decoding where one token is likely alone.
func TestAccept(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Eager: true, Parallel: 1})
	r := request(3)
	for _, temperature := range []float32{0, 1} {
		r.Sampling = grove.Sampling{Temperature: temperature, TopK: 1}
		r.Method, r.Accept = grove.MethodOff, grove.AcceptExact
		want, _ := generate(t, m, r)
		r.Method, r.Accept = grove.MethodAuto, grove.AcceptTypical
		got, stats := generate(t, m, r)
		if d := cmp.Diff(want, got, sameBits); d != "" || stats.Grade != grove.Lossy {
			t.Errorf("grade %s, temperature %v (-want +got):\n%s", stats.Grade, temperature, d)
		}
	}
}

// TestKept: what drafting learned is kept when the model is closed, unless it is to be forgotten.
func TestKept(t *testing.T) {
	for _, forget := range []bool{true, false} {
		dir := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", dir)
		m, err := grove.Open(goldenModel, threaded(grove.Options{Forget: forget}))
		if err != nil {
			t.Fatal(err)
		}
		generate(t, m, request(4))
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "grove", "drafting-*.json"))
		if err != nil || len(files) != 0 == forget {
			t.Errorf("to be forgotten %v: %v, %v", forget, files, err)
		}
		for _, f := range files {
			if info, err := os.Stat(f); err != nil || info.Size() < 100 {
				t.Errorf("%s: %v, %v", f, info, err)
			}
		}
	}
}

// TestDraftSlots: more answers at a time than the draft model has slots all end, with the tokens that they have alone; those that get a
// slot draft, also where they get it late.
func TestDraftSlots(t *testing.T) {
	const n = 6
	m := open(t, goldenModel, grove.Options{Draft: goldenModel, Eager: true, Forget: true, Parallel: 2})
	ask := func(i int) grove.Request {
		r := request(uint64(i))
		r.Method = "draft"
		return r
	}
	want := make([]answer, n)
	for i := range want {
		want[i], _ = generate(t, m, ask(i))
	}
	var all sync.WaitGroup
	var drafted atomic.Int64
	for i := range n {
		all.Go(func() {
			g, err := m.Generate(t.Context(), ask(i))
			if err != nil {
				t.Error(err)
				return
			}
			got, err := answerOf(g)
			if d := cmp.Diff(want[i], got, sameBits); d != "" || err != nil {
				t.Errorf("answer %d: %v (-alone +got):\n%s", i, err, d)
			}
			if g.Stats().Drafting.Drafted > 0 {
				drafted.Add(1)
			}
		})
	}
	all.Wait()
	if drafted.Load() < 2 {
		t.Errorf("%d of %d answers drafted with 2 slots of the draft model", drafted.Load(), n)
	}

	// The first sequence has the slot until it is closed; the second one drafts from then on.
	m = open(t, goldenModel, grove.Options{Draft: goldenModel, Eager: true, Forget: true, Parallel: 1})
	sequence := func(i int) *grove.Sequence {
		s, err := m.NewSequence(t.Context(), ask(i))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	first := sequence(1)
	second := sequence(2)
	if n := second.SpecStats().Drafted; n > 0 {
		t.Errorf("%d drafts without a slot of the draft model", n)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		d, err := second.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d.ID != want[2].Tokens[4+i].ID {
			t.Errorf("token %d differs", 4+i)
		}
	}
	if second.SpecStats().Drafted == 0 {
		t.Error("no drafts with the slot of a sequence that has closed")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}
