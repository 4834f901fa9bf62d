package resident

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/engine"
	"grove/internal/engine/speculate"
	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architectures
	"grove/internal/sample"
	"grove/internal/text/tokenizer"
	_ "grove/method/all" // links the methods
)

// opened opens a gopher model with what is beside it.
func opened(t testing.TB, o Options) *Model {
	t.Helper()
	f, err := OpenFile(gopher.Name)
	if err != nil {
		t.Fatal(err)
	}
	o.Threads, o.Forget, o.Eager, o.Parallel = 1, true, true, max(1, o.Parallel)
	m, err := Open(f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// drafts opens a sequence that drafts with a list of methods behind a prompt.
func drafts(t testing.TB, m *Model, list string, p sample.Params) (*engine.Sequence, error) {
	t.Helper()
	d, err := m.Drafting(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Engine.NewSequence(engine.Answer{Sampling: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.SetDrafting(d, nil); err != nil {
		return nil, m.DraftError(err)
	}
	ids, err := m.Tokenizer.Encode(nil, "func main() {\n\tfor i := range 10 {\n\t\tfmt.Println(i)\n\t}\n}\n\nfunc ", tokenizer.Options{})
	if err == nil {
		err = s.Append(t.Context(), ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, nil
}

// TestMemory expects what the model of the bytes says to be what is allocated, part by part, of models with and without bounds.
func TestMemory(t *testing.T) {
	sampled := sample.Params{Temperature: 0.8, TopK: 20, Seed: 7}
	for _, c := range []struct {
		method        string
		draft, middle string
		p             sample.Params
		budget        uint64
		whole         bool // steps and passes reach their greatest size
	}{
		{"draft", gopher.DraftName, "", sample.Params{}, 0, false},
		{"draft", gopher.DraftName, "", sample.Params{}, 500_000, true},
		{"draft-chain", gopher.DraftName, "", sampled, 500_000, true},
		{"draft-rsd", gopher.DraftName, "", sampled, 600_000, true},
		{"draft-rsd", gopher.DraftName, "", sample.Params{Temperature: 1}, 800_000, false},
		{"draft-specinfer", gopher.NanoName, "", sampled, 400_000, false},
		{"kseq", gopher.NanoName, "", sampled, 0, false},
		{"levels", gopher.NanoName, gopher.DraftName, sampled, 1_500_000, false},
		{"levels", gopher.DraftName, "q8_0", sample.Params{}, 0, false},
		{"pearl", gopher.DraftName, "", sampled, 500_000, false},
		{"mirror", gopher.NanoName, "", sampled, 900_000, false},
		{"recycle", "", "", sampled, 100_000, true},
		{"goose", "", "", sampled, 0, false},
		{"lookahead", "", "", sampled, 200_000, false},
		{"sjd", "", "", sampled, 200_000, false},
		{"swift", "", "", sampled, 0, false},
		{"sam", "", "", sample.Params{}, 100_000, false},
	} {
		t.Run(fmt.Sprint(c.method, c.budget), func(t *testing.T) {
			m := opened(t, Options{Draft: c.draft, Middle: c.middle, DraftMemory: c.budget})
			s, err := drafts(t, m, c.method, c.p)
			if err != nil {
				t.Fatal(err)
			}
			for range 150 {
				if _, err := s.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			size, want := m.DraftSize()
			needs, held, drafted := s.DraftMemory()
			want.Add(1, needs)
			got := m.HeldByModels()
			got.Add(1, held)
			t.Logf("%d drafts, %+v: %+v, %d in all", drafted, size, want, want.Total())
			if c.budget > 0 && want.Total() > int(c.budget) {
				t.Errorf("%d bytes, and %d are allowed", want.Total(), c.budget)
			}
			if got.Logits > want.Logits || c.whole && got.Logits < want.Logits {
				t.Errorf("%d bytes of logits, want %d", got.Logits, want.Logits)
			}
			got.Logits = want.Logits
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if s.SpecStats().Drafted == 0 {
				t.Error("nothing is drafted")
			}
		})
	}
}

// TestLeast expects bounds that are too small to be refused with the least that would do, and that to do.
func TestLeast(t *testing.T) {
	var wanted uint64
	for _, c := range []struct{ method, draft string }{{"draft-chain", gopher.DraftName}, {"draft-rsd", gopher.DraftName}, {"sam", ""}, {"recycle", ""}} {
		f, err := OpenFile(gopher.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(f, Options{Threads: 1, Parallel: 2, Draft: c.draft, DraftMemory: 1000})
		var option *OptionError
		if !errors.As(err, &option) {
			t.Fatalf("%s: %v", c.method, err)
		}
		if n, err := fmt.Sscanf(err.Error(), "grove: draft memory of 1000 bytes: a round of one draft needs %d", &wanted); n != 1 {
			t.Fatal(err)
		}
		for tries := 0; ; tries++ {
			m := opened(t, Options{Draft: c.draft, DraftMemory: wanted, Parallel: 2})
			s, err := drafts(t, m, c.method, sample.Params{Temperature: 1})
			if err == nil {
				if _, err := s.Next(t.Context()); err != nil || !s.Drafts() {
					t.Errorf("%s: %v", c.method, err)
				}
				break
			}
			if least, ok := strings.CutPrefix(err.Error(), fmt.Sprintf("grove: method %s: draft memory of %d bytes is too small for a round of one draft of its kind; ", c.method, wanted)); !ok || tries > 0 || !errors.As(err, &option) {
				t.Fatal(err)
			} else if _, err := fmt.Sscanf(least, "%d would do", &wanted); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTexts expects as many texts to draft at a time as there is room for, and a further one when one of them is closed.
func TestTexts(t *testing.T) {
	var m *Model
	size := speculate.MemorySize{}
	for budget := uint64(100_000); size.Texts != 2; budget += 10_000 {
		if budget > 2_000_000 {
			t.Fatalf("no bound lets two texts draft; the last %+v", size)
		}
		m = opened(t, Options{Parallel: 3, Draft: gopher.NanoName, DraftMemory: budget})
		size, _ = m.DraftSize()
	}
	var all []*engine.Sequence
	for i := range 3 {
		s, err := drafts(t, m, "draft-chain", sample.Params{})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, s); s.Drafts() != (i < size.Texts) {
			t.Errorf("text %d of %d drafts: %v", i, size.Texts, s.Drafts())
		}
		if _, err := s.Next(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(all[0].Close(), all[2].Close()); err != nil {
		t.Fatal(err)
	}
	if s, err := drafts(t, m, "draft-chain", sample.Params{}); err != nil || !s.Drafts() {
		t.Errorf("a later text does not draft: %v", err)
	}
}

// TestSteady expects rounds to allocate nothing once they have had their greatest size.
func TestSteady(t *testing.T) {
	for _, c := range []struct{ method, draft, middle string }{
		{"draft", gopher.DraftName, ""}, {"draft-rsd", gopher.DraftName, ""}, {"levels", gopher.NanoName, "q8_0"}, {"recycle", "", ""},
	} {
		m := opened(t, Options{Draft: c.draft, Middle: c.middle, DraftMemory: 2_000_000, NoRepack: true})
		s, err := drafts(t, m, c.method, sample.Params{Temperature: 0.8, TopK: 20, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		next := func() {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 130 {
			next()
		}
		n := testing.AllocsPerRun(20, next)
		for range 2 { // other goroutines of the process are counted, too
			n = min(n, testing.AllocsPerRun(20, next))
		}
		if n > 0 {
			t.Errorf("%s: %v allocations a token", c.method, n)
		}
	}
}
