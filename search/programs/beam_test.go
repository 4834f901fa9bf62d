package programs

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/suite/searchtest"
	"grove/search"
)

// random is a table whose rows depend on the whole beginning. The last word ends an answer.
func random(words int, seed uint64) func(answer string) []float64 {
	return func(answer string) []float64 {
		h := fnv.New64a()
		h.Write([]byte(answer))
		rng := rand.New(rand.NewPCG(seed, h.Sum64()))
		p, sum := make([]float64, words), 0.0
		for i := range p {
			p[i] = math.Exp(1.5 * rng.NormFloat64())
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
}

// TestAllSequences: with as many beams as there are sequences of three tokens, the search gives all of them in order.
func TestAllSequences(t *testing.T) {
	next := random(3, 1)
	m := searchtest.New(t, 27, []string{"a", "b", "c"}, next)
	type sequence struct {
		text string
		sum  float64
	}
	var want []sequence
	var walk func(text string, sum float64)
	walk = func(text string, sum float64) {
		if len(text) == 3 {
			want = append(want, sequence{text, sum})
			return
		}
		for i, p := range next(text) {
			walk(text+m.Words[i], sum+math.Log(p))
		}
	}
	walk("", 0)
	slices.SortFunc(want, func(a, b sequence) int { return cmp.Compare(b.sum, a.sum) })
	r, err := m.Run(t, "beam,n=27,length=0", 0, search.Problem{MaxTokens: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Attempts) != 27 {
		t.Fatalf("%d answers", len(r.Attempts))
	}
	for i, a := range r.Attempts {
		if m.Text(a.IDs) != want[i].text || math.Abs(a.Score-want[i].sum) > 1e-5 {
			t.Errorf("answer %d is %q with %v, want %q with %v", i, m.Text(a.IDs), a.Score, want[i].text, want[i].sum)
		}
	}
}

// beamReference is beam search over texts, with all continuations of each step sorted.
func beamReference(b beamBeam, next func(string) []float64, words []string, most int) (done []string) {
	type item struct {
		text string
		sum  float64
		rank float64
	}
	live, finished := []item{{}}, []item{}
	finish := func(text string, sum float64, n int) {
		finished = append(finished, item{text, sum, sum / math.Pow(float64(n), b.length)})
		slices.SortStableFunc(finished, func(a, b item) int { return cmp.Compare(b.rank, a.rank) })
		finished = finished[:min(len(finished), b.n)]
	}
	for n := 1; n <= most && len(live) > 0; n++ {
		var all, kept []item
		for _, l := range live {
			for i, p := range next(l.text) {
				if p > 0 {
					all = append(all, item{text: l.text + words[i] + map[bool]string{true: "."}[words[i] == ""], sum: l.sum + math.Log(p)})
				}
			}
		}
		slices.SortStableFunc(all, func(a, b item) int { return cmp.Compare(b.sum, a.sum) })
		for rank, c := range all[:min(len(all), 2*b.n)] {
			if len(kept) == b.n {
				break
			}
			if !strings.HasSuffix(c.text, ".") {
				kept = append(kept, c)
			} else if rank < b.n {
				finish(c.text, c.sum, n)
			}
		}
		if live = kept; n == most {
			for _, l := range live {
				finish(l.text, l.sum, n)
			}
		}
		if len(finished) < b.n || len(live) == 0 {
			continue
		}
		reach := live[0].sum / math.Pow(float64(n), b.length)
		if b.early == "never" && b.length > 0 {
			reach = live[0].sum / math.Pow(float64(most), b.length)
		}
		if b.early == "true" || reach <= finished[b.n-1].rank {
			break
		}
	}
	for _, f := range finished {
		done = append(done, f.text)
	}
	return done
}

// TestBeamReference compares the search with the reference, on random tables, for all ways to end.
func TestBeamReference(t *testing.T) {
	differ := map[string]bool{}
	for seed := range uint64(12) {
		next := random(4, seed)
		m := searchtest.New(t, 4, []string{"a", "b", "c", ""}, next)
		for _, early := range []string{"false", "true", "never"} {
			for _, length := range []float64{0, 1, 2, -1} {
				b := beamBeam{2 + int(seed%3), length, early}
				want := beamReference(b, next, m.Words, 7)
				r, err := m.Run(t, fmt.Sprintf("beam,n=%d,length=%v,early=%s", b.n, length, early), 0, search.Problem{MaxTokens: 7})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, a := range r.Attempts {
					got = append(got, m.Text(a.IDs)+map[bool]string{true: "."}[a.Ended])
				}
				if !slices.Equal(got, want) {
					t.Errorf("seed %d, %+v: %q, want %q", seed, b, got, want)
				}
				differ[early+strings.Join(got, " ")] = true
			}
		}
	}
	if len(differ) < 20 {
		t.Errorf("%d different results", len(differ))
	}
}

// TestForbidden: tokens without probability never displace others, though there are fewer of these than beams.
func TestForbidden(t *testing.T) {
	m := searchtest.New(t, 8, []string{"a", "b", ""}, func(answer string) []float64 {
		if len(answer) < 2 {
			return []float64{1, 0, 0}
		}
		return []float64{0, .5, .5}
	})
	r, err := m.Run(t, "beam,n=8", 0, search.Problem{MaxTokens: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Attempts {
		if text := m.Text(a.IDs); text != "aa" && text != "aab" && text != "aabb" {
			t.Errorf("%q", text)
		}
	}
	if len(r.Attempts) != 3 {
		t.Errorf("answers %+v", r.Attempts)
	}
}

// TestOne: one beam is greedy decoding.
func TestOne(t *testing.T) {
	for seed := range uint64(8) {
		next := random(4, 100+seed)
		m := searchtest.New(t, 1, []string{"a", "b", "c", ""}, next)
		want := ""
		for len(want) < 12 {
			p := next(want)
			i := slices.Index(p, slices.Max(p))
			if want += m.Words[i]; i == 3 {
				break
			}
		}
		r, err := m.Run(t, "beam,n=1", 0, search.Problem{MaxTokens: 12})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Text(r.Attempts[0].IDs); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBeamOpen reads options.
func TestBeamOpen(t *testing.T) {
	p, err := search.Open("beam,n=3,length=0.6,early=never")
	if err != nil || p.Samples() != 3 || p.(beamBeam) != (beamBeam{3, .6, "never"}) {
		t.Fatal(p, err)
	}
	for _, bad := range []string{"beam,n=0", "beam,length=x", "beam,length=NaN", "beam,early=1", "beam,m=2"} {
		if _, err := search.Open(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if p.Check(&search.Problem{Slots: 2}) == nil || p.Check(&search.Problem{Slots: 3, Greedy: true}) != nil {
		t.Error("the check of slots")
	}
}
