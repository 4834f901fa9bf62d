package front_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/text/token"
)

// searched is a request whose samples end soon.
func searched(seed uint64) grove.Request {
	r := request(seed)
	r.StopTokens, r.Sampling.TopK, r.Sampling.Temperature = nil, 0, 2
	for id := range token.ID(64) {
		r.StopTokens = append(r.StopTokens, 4*id)
	}
	return r
}

// shortest computes samples one after the other and returns that with the fewest tokens, of equal ones the first.
func shortest(t *testing.T, m *grove.Model, r grove.Request, from, to int) (best answer, index int, lengths []int) {
	t.Helper()
	index = -1
	for i := from; i < to; i++ {
		r.SampleIndex = i
		a, stats := generate(t, m, r)
		lengths = append(lengths, stats.Tokens)
		if stats.Finish == grove.FinishStop && (index < 0 || stats.Tokens < lengths[index-from]) {
			best, index = a, i
		}
	}
	return best, index, lengths
}

// TestFirstFinishSearch expects the shortest sample, alone and beside others that take its slots, and all slots and
// pages free behind it.
func TestFirstFinishSearch(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	alone := open(t, goldenModel, grove.Options{Threads: 1})
	m := open(t, goldenModel, grove.Options{Threads: 2, Parallel: 4, Queue: 64, Eager: true})
	ties := 0
	var all sync.WaitGroup
	for seed := range uint64(6) {
		r := searched(seed)
		for answers := range 2 {
			want, index, lengths := shortest(t, alone, r, 4*answers, 4*answers+4)
			if index < 0 {
				t.Fatalf("seed %d: no sample ends", seed)
			}
			n := lengths[index-4*answers]
			var attempts []grove.Attempt
			ended := 0
			for i, l := range lengths {
				attempts = append(attempts, grove.Attempt{Index: 4*answers + i, Tokens: n, Ended: l == n})
				if l == n {
					ended++
				}
			}
			if ended > 1 {
				ties++
			}
			r := r
			r.Search, r.SampleIndex = "ffs,n=4", answers
			for _, crowd := range []int{1, 3} {
				for range crowd {
					all.Go(func() {
						g, err := m.Generate(t.Context(), r)
						if err != nil {
							t.Error(err)
							return
						}
						got, err := answerOf(g)
						if d := cmp.Diff(want, got, sameBits); d != "" || err != nil {
							t.Errorf("seed %d, answer %d: %v (-want +got):\n%s", seed, answers, err, d)
						}
						s := g.Stats()
						if d := cmp.Diff(attempts, s.Attempts); d != "" || s.Grade != grove.Lossy || s.Tokens != n {
							t.Errorf("seed %d, answer %d: grade %s, %d tokens (-want +got):\n%s", seed, answers, s.Grade, s.Tokens, d)
						}
					})
				}
				if crowd == 1 {
					all.Wait()
				}
			}
		}
	}
	all.Wait()
	if ties == 0 {
		t.Error("no two samples of a search have the same length")
	}
	if l := m.Load(); l.Open != 0 || l.Admitted != 0 || l.Pages.Used != 0 {
		t.Errorf("behind the searches there are %+v", l)
	}
}

// TestSearchWithoutEnd expects the first sample where none ends by itself.
func TestSearchWithoutEnd(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	r := request(3)
	r.IgnoreEnd, r.MaxTokens = true, 9
	want, _ := generate(t, m, r)
	r.Search = "ffs,n=3"
	got, stats := generate(t, m, r)
	attempts := []grove.Attempt{{Index: 0, Tokens: 9}, {Index: 1, Tokens: 9}, {Index: 2, Tokens: 9}}
	if d := cmp.Diff(want, got, sameBits) + cmp.Diff(attempts, stats.Attempts); d != "" || stats.Finish != grove.FinishLength {
		t.Errorf("finish %s (-want +got):\n%s", stats.Finish, d)
	}
}

// TestSearchRefused expects searches that cannot be made to be refused before the first token.
func TestSearchRefused(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 3})
	hot := grove.DefaultSampling()
	var names []string
	for _, s := range grove.Searches() {
		names = append(names, s.Name)
	}
	for want, r := range map[string]grove.Request{
		`"magic" is not known; these are: ` + strings.Join(names, ", "):  {Search: "magic", Sampling: hot},
		`n is "x"; it must be a whole number from 2 to 64`:               {Search: "ffs,n=x", Sampling: hot},
		"n is 4; it must be from 2 to 3":                                 {Search: "ffs", Sampling: hot},
		"the temperature is 0":                                           {Search: "ffs,n=2"},
		"a search keeps no session; leave out the search or the session": {Search: "ffs,n=2", Session: "x", Sampling: hot},
		"sample index": {Search: "ffs,n=2", Sampling: hot, SampleIndex: 1 << 62},
	} {
		option := new(grove.OptionError)
		if _, err := m.Generate(t.Context(), r); !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
