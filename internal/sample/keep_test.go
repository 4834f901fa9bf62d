package sample

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naive is truncation by its definition, over a full sort: the tokens kept, best first.
func naive(p Params, logits []float32) []int {
	var ids []int
	for id, l := range logits {
		if l > float32(math.Inf(-1)) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), a-b)
	})
	temperature := 1.0
	if p.Order == TemperFirst {
		temperature = float64(p.Temperature)
	}
	prob := func() []float64 {
		out, sum := make([]float64, len(ids)), 0.0
		for i, id := range ids {
			out[i] = math.Exp(float64(logits[id]-logits[ids[0]]) / temperature)
			sum += out[i]
		}
		for i := range out {
			out[i] /= sum
		}
		return out
	}
	topK := func() {
		if p.TopK > 0 {
			ids = ids[:min(p.TopK, len(ids))]
		}
	}
	topP := func() {
		sum := 0.0
		for i, q := range prob() {
			if sum += q; p.TopP > 0 && p.TopP < 1 && sum >= float64(p.TopP) {
				ids = ids[:i+1]
				return
			}
		}
	}
	minP := func() {
		floor := math.Log(float64(p.MinP)) * temperature
		for i, id := range ids {
			if float64(logits[id])-float64(logits[ids[0]]) < floor {
				ids = ids[:i]
				return
			}
		}
	}
	if p.Order == TemperFirst {
		minP()
		topK()
		topP()
	} else {
		topK()
		topP()
		minP()
	}
	return ids
}

// TestKeepIsTheDefinition compares with the naive chain, save for one token at the border, where
// float32 and float64 may fall on different sides; whatever is kept must be a prefix of the order,
// and never a masked token.
func TestKeepIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logit := rapid.OneOf(
			rapid.Float32Range(-8, 8),
			rapid.SampledFrom([]float32{-inf, 0, 1, float32(math.Copysign(0, -1)), -300, 40}),
		)
		logits := rapid.SliceOfN(logit, 1, 60).Draw(t, "logits")
		if slices.Max(logits) == -inf {
			t.Skip("all masked")
		}
		p := Params{
			Temperature: rapid.Float32Range(.2, 4).Draw(t, "temperature"),
			TopK:        rapid.SampledFrom([]int{0, 1, 2, 5, 30}).Draw(t, "top-k"),
			TopP:        rapid.SampledFrom([]float32{0, .1, .5, .9, .99, 1}).Draw(t, "top-p"),
			MinP:        rapid.SampledFrom([]float32{0, .01, .1, .5, 1}).Draw(t, "min-p"),
			Order:       rapid.SampledFrom([]Order{TruncateFirst, TemperFirst}).Draw(t, "order"),
		}
		s, err := newSampler(p, len(logits))
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]float32, len(logits))
		if err := s.distribution(dst, row{logits: logits}); err != nil {
			t.Fatal(err)
		}
		loose, sum := naive(Params{}, logits), float32(0)
		rank := make(map[int]int)
		for i, id := range loose {
			rank[id] = i
		}
		keys, _ := s.truncate(row{logits: logits}, logits[loose[0]], lseOf(logits))
		kept := len(keys)
		if !s.truncates() {
			kept = len(loose)
		}
		for id, q := range dst {
			sum += q
			if r, ok := rank[id]; q > 0 && (!ok || r >= kept) {
				t.Fatalf("token %d has probability %v and is not among the first %d", id, q, kept)
			}
		}
		if kept < 1 || math.Abs(float64(sum-1)) > 1e-5 {
			t.Fatalf("%d tokens kept, probabilities sum to %v", kept, sum)
		}
		if want := len(naive(p, logits)); kept != want && !borderline(p, logits, kept) {
			t.Fatalf("%d tokens kept, the definition keeps %d", kept, want)
		}
	})
}

// borderline reports whether a change of the limits by one millionth brings the definition to n.
func borderline(p Params, logits []float32, n int) bool {
	lo, hi := p, p
	lo.TopP, hi.TopP = p.TopP*(1-1e-6), min(p.TopP*(1+1e-6), 1)
	lo.MinP, hi.MinP = min(p.MinP*(1+1e-6), 1), p.MinP*(1-1e-6)
	return len(naive(lo, logits)) <= n && n <= len(naive(hi, logits))
}

func lseOf(logits []float32) float32 {
	top, sum := slices.Max(logits), 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l - top))
	}
	return top + float32(math.Log(sum))
}

// TestBorders expects top-p to end with the token that reaches it exactly, min-p to keep a token that is exactly as likely
// as it asks for, and typical-p to go on until it is exceeded. Equal logits have exact probabilities.
func TestBorders(t *testing.T) {
	four := []float32{0, 0, 0, 0, -inf}
	one := math.Nextafter32(1, 0)
	for _, c := range []struct {
		name   string
		p      Params
		logits []float32
		want   int // tokens that are kept
	}{
		{"top-p 0.5", Params{TopP: 0.5}, four, 2},
		{"top-p 0.25", Params{TopP: 0.25}, four, 1},
		{"top-p just above 0.5", Params{TopP: math.Nextafter32(0.5, 1)}, four, 3},
		{"top-p just below 1", Params{TopP: one}, four, 4},
		{"top-p 0.5 of top-k 2", Params{TopP: 0.5, TopK: 2}, four, 1},
		{"top-p 0.5 of top-k 4", Params{TopP: 0.5, TopK: 4}, four, 2},
		{"top-p 0.5, 3 at least", Params{TopP: 0.5, MinKeep: 3}, four, 3},
		{"top-p 0.5, 2 at least", Params{TopP: 0.5, MinKeep: 2}, four, 2},
		{"top-p 0.75, 2 at least", Params{TopP: 0.75, MinKeep: 2}, four, 3},
		{"top-k 3", Params{TopK: 3}, four, 3},
		{"min-p 1", Params{MinP: 1}, []float32{0, 0, -1e-6}, 2},
		{"min-p 1, 3 at least", Params{MinP: 1, MinKeep: 3}, []float32{0, 0, -1e-6, -1}, 3},
		{"typical-p 0.5", Params{TypicalP: 0.5}, four, 3},
		{"typical-p just below 0.5", Params{TypicalP: math.Nextafter32(0.5, 0)}, four, 2},
		{"top-n-sigma 1", Params{TopNSigma: 1}, []float32{1, -1}, 1},
		{"top-n-sigma 2", Params{TopNSigma: 2}, []float32{1, -1}, 2},
	} {
		for _, order := range []Order{TruncateFirst, TemperFirst} {
			c.p.Temperature, c.p.Order = 1, order
			kept := 0
			for _, q := range distribution(t, c.p, c.logits) {
				if q > 0 {
					kept++
				}
			}
			if kept != c.want {
				t.Errorf("%s, %v: %d tokens are kept, want %d", c.name, order, kept, c.want)
			}
		}
	}
}

// TestBestIsASort runs the gathering of best over rows that fill its space again and again.
func TestBestIsASort(t *testing.T) {
	const vocab = 20_000
	rows := map[string]func(i int) float32{
		"noise":      func(i int) float32 { return noise(1, uint64(i))[0] },
		"ascending":  func(i int) float32 { return float32(i) },
		"descending": func(i int) float32 { return -float32(i) },
		"few values": func(i int) float32 { return float32(i * i % 7) },
		"equal":      func(i int) float32 { return 1 },
		"masked":     func(i int) float32 { return float32(math.Log(float64(i % 50))) },
	}
	for name, f := range rows {
		t.Run(name, func(t *testing.T) {
			logits := make([]float32, vocab)
			for i := range logits {
				logits[i] = f(i)
			}
			want := naive(Params{}, logits)
			for _, n := range []int{1, 2, 40, 256, 1000, 4999, 5001, vocab - 1, vocab, 2 * vocab} {
				s := newDrawer(t, Params{Temperature: 1, TopP: .5}, vocab).sampler
				if n < vocab {
					s = newDrawer(t, Params{Temperature: 1, TopK: n}, vocab).sampler
				}
				space := cap(s.keys)
				got := s.best(logits, n)
				if len(got) > space {
					t.Fatalf("n=%d: %d keys outgrow the space of %d", n, len(got), space)
				}
				for i, id := range want[:min(n, len(want))] {
					if i >= len(got) || idOf(got[i]) != id {
						t.Fatalf("n=%d: %d keys; place %d is not token %d", n, len(got), i, id)
					}
				}
			}
		})
	}
}

// TestSmallest compares the selection with a sort, for keys in orders that divide well and badly.
func TestSmallest(t *testing.T) {
	orders := map[string]func(i, n int) uint64{
		"noise":      func(i, n int) uint64 { return uint64(i*7919%n)<<32 | uint64(i) },
		"ascending":  func(i, n int) uint64 { return uint64(i) },
		"descending": func(i, n int) uint64 { return uint64(n - i) },
		"pipes":      func(i, n int) uint64 { return uint64(min(i, n-i))<<32 | uint64(i) },
		"saw":        func(i, n int) uint64 { return uint64(i%17)<<32 | uint64(i) },
	}
	for name, order := range orders {
		for _, size := range []int{0, 1, 2, 16, 17, 100, 1024, 5000} {
			keys := make([]uint64, size)
			for i := range keys {
				keys[i] = order(i, size)
			}
			want := slices.Sorted(slices.Values(keys))
			for _, n := range []int{0, 1, 2, size / 3, size - 1, size} {
				if n < 0 || n > size {
					continue
				}
				got := slices.Clone(keys)
				smallest(got, n)
				slices.Sort(got[:n])
				slices.Sort(got[n:])
				if !slices.Equal(got, want) {
					t.Errorf("%s: the %d smallest of %d keys are others", name, n, size)
				}
			}
		}
	}
}

// TestWideNucleus: a flat row needs more tokens than the first selection holds.
func TestWideNucleus(t *testing.T) {
	const vocab = 40_000
	logits := make([]float32, vocab)
	for _, order := range []Order{TruncateFirst, TemperFirst} {
		got := distribution(t, Params{Temperature: 1, TopP: .5, Order: order}, logits)
		kept := 0
		for id, q := range got {
			if q > 0 {
				kept++
			}
			if (q > 0) != (id < kept) {
				t.Fatalf("%v: token %d is not part of a prefix", order, id)
			}
		}
		if kept < vocab/2-1 || kept > vocab/2+1 {
			t.Errorf("%v: top-p 0.5 of %d equal tokens keeps %d", order, vocab, kept)
		}
	}
}

var large = []struct {
	name string
	p    Params
}{
	{"greedy", Params{}},
	{"all", Params{Temperature: .8}},
	{"default", DefaultParams()},
	{"top-k", Params{Temperature: .8, TopK: 40}},
	{"top-k=20000", Params{Temperature: .8, TopK: 20_000}},
	{"top-p", Params{Temperature: .8, TopP: .95}},
	{"min-p", Params{Temperature: .8, MinP: .05}},
	{"default,temper-first", Params{Temperature: .8, TopK: 40, TopP: .95, MinP: .05, Order: TemperFirst}},
	{"top-p,temper-first", Params{Temperature: .8, TopP: .95, Order: TemperFirst}},
}

const largeVocab = 256 << 10

func TestSampleAllocatesNothing(t *testing.T) {
	logits := noise(largeVocab, 5)
	for _, tt := range large {
		s := newDrawer(t, tt.p, largeVocab)
		if n := testing.AllocsPerRun(2, func() { _, _ = s.Sample(logits, 0, 1) }); n != 0 {
			t.Errorf("%s: Sample allocates %v times, want 0", tt.name, n)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	logits := noise(largeVocab, 5)
	for _, tt := range large {
		b.Run(fmt.Sprintf("vocab=256k/params=%s", tt.name), func(b *testing.B) {
			s := newDrawer(b, tt.p, largeVocab)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := s.Sample(logits, 0, i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
