package engine_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// raggedTokens is the number of tokens of an answer of [TestRaggedRounds].
const raggedTokens = 150

// ragged is a sequence whose drafts have a length, and are wrong at some places.
type ragged struct {
	name   string
	length int
	wrong  func(at int) bool
	tokens int // of the answer
	rounds [2]int
}

// saveText computes the last token of a sequence and returns its file.
func saveText(t *testing.T, s *engine.Sequence) string {
	if err := s.Append(t.Context(), nil); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "text")
	if err := s.Save(path); err != nil {
		t.Error(err)
	}
	return readFile(t, path)
}

// run draws the answer by a sequence with drafts, and compares it, what the cache holds behind every token, and the file behind the last one, with
// those of plain decoding.
func (r *ragged) run(t *testing.T, s *engine.Sequence, prompt []token.ID, answer []sample.Token, file string) {
	if err := s.Append(t.Context(), prompt); err != nil {
		t.Error(err)
		return
	}
	for j, want := range answer {
		got, err := s.Next(t.Context())
		if err != nil || got.Token != want {
			t.Errorf("%s, token %d: %v, want %v: %v", r.name, j, got, want, err)
			return
		}
		if trunk, taken, live := s.Aligned(); trunk+taken != s.Len()-1 || live > r.length+1 {
			t.Errorf("%s, %d tokens: %d in the trunk, %d of a round, %d rows", r.name, s.Len(), trunk, taken, live)
		}
	}
	if saveText(t, s) != file {
		t.Errorf("%s: its keys and values are not those of plain decoding", r.name)
	}
	if n := s.SpecStats().Rounds; n < r.rounds[0] || n > r.rounds[1] {
		t.Errorf("%s: %d rounds, want %d to %d", r.name, n, r.rounds[0], r.rounds[1])
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestRaggedRounds runs rounds of several sequences in common steps, of which each accepts another number of drafts: all,
// none, some; one ends early. It holds what goes wrong in batches that are aligned by padding (EqSpec): every answer is
// that of plain decoding; behind a round the cache holds exactly the text but its last token; nothing of a rejected
// draft is left; and the keys and values are, byte for byte, those that plain decoding leaves, so that no position
// and no mask was another's.
func TestRaggedRounds(t *testing.T) {
	b := newBed(t, few(), modeltest.Spec{Context: 300}.File(t))
	never, free := func(int) bool { return false }, [2]int{0, raggedTokens + 1}
	kinds := []ragged{
		{"all are right", 6, never, raggedTokens, [2]int{0, 1 + raggedTokens/7 + 1}},
		{"none is right", 6, func(int) bool { return true }, raggedTokens, [2]int{raggedTokens - 1, raggedTokens + 1}},
		{"two of seven are wrong", 9, func(at int) bool { return at*at%7 == 1 }, raggedTokens, free},
		{"every second is wrong, few tokens", 3, func(at int) bool { return at%2 == 0 }, 20, free},
		{"long drafts, one of eleven is wrong", 40, func(at int) bool { return at%11 == 0 }, raggedTokens, free},
		{"no drafts", 0, never, raggedTokens, free},
	}
	for _, cache := range []tensor.Type{tensor.F16, tensor.Q8_0} {
		e := b.engine(t, engine.Config{Seqs: len(kinds), CacheType: cache})
		var all sync.WaitGroup
		tokens := 0
		for i, kind := range kinds {
			p, prompt := sample.Params{Temperature: 0.8 * float32(i%2), Seed: uint64(i)}, text(20 + 7*i)[i:]
			tokens += kind.tokens
			plain, err := b.engine(t, engine.Config{CacheType: cache}).NewSequence(engine.Answer{Sampling: p})
			if err != nil {
				t.Fatal(err)
			}
			answer := draw(t, plain, kind.tokens, prompt)
			file := saveText(t, plain)
			whole := slices.Clone(prompt)
			for _, c := range answer {
				whole = append(whole, c.ID)
			}
			s, err := e.NewSequence(engine.Answer{Sampling: p})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetDrafting(openDrafters(t, e, true, scripted(kind.length, kind.wrong)), whole); err != nil {
				t.Fatal(err)
			}
			all.Go(func() { kind.run(t, s, prompt, answer, file) })
		}
		all.Wait()
		if l := e.Load(); l.Steps >= tokens {
			t.Errorf("%d steps for %d tokens", l.Steps, tokens)
		}
	}
}

// TestManyRequests answers thousands of short requests, some of them cancelled, and expects neither memory nor goroutines
// to grow once buffers have their sizes. What the heap holds varies with the order of steps, so that medians are compared.
func TestManyRequests(t *testing.T) {
	requests := 1000
	if long {
		requests = 10_000
	}
	const callers = 8
	b := newBed(t, few(), modeltest.Spec{Context: 128}.File(t))
	e := b.engine(t, engine.Config{Seqs: 6, Queue: callers, Tokens: 512})
	drafts := openDrafters(t, e, true, oracles)
	held := func() (heap uint64, goroutines int) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what the first one freed
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	run := func(first, end int) {
		var all sync.WaitGroup
		for c := range callers {
			all.Go(func() {
				for i := first + c; i < end; i += callers {
					o := &order{prompt: text(10 + i%90)[i%10:], tokens: 1 + i%7, params: sample.Params{Temperature: 1, Seed: uint64(i)}, whole: text(120)}
					if i%5 == 0 {
						o.stop = 1 + i%3
					}
					var d *engine.Drafting
					if i%3 == 0 {
						d = drafts
					}
					if _, err := o.run(t.Context(), e, d); err != nil && o.stop == 0 {
						t.Errorf("request %d: %v", i, err)
					}
				}
			})
		}
		all.Wait()
	}
	warm := max(requests/10, 500) // by then buffers have their sizes
	part := requests / 40
	median := func(first int) (heap uint64, goroutines int) {
		var heaps []uint64
		for i := range 5 {
			run(first+i*part, first+(i+1)*part)
			heap, goroutines = held()
			heaps = append(heaps, heap)
		}
		slices.Sort(heaps)
		return heaps[2], goroutines
	}
	run(0, warm)
	heap, goroutines := median(warm)
	run(warm+5*part, requests-5*part)
	heapAfter, goroutinesAfter := median(requests - 5*part)
	t.Logf("%d requests: %d KiB and %d goroutines when warm, %d KiB and %d in the end; %+v",
		requests, heap>>10, goroutines, heapAfter>>10, goroutinesAfter, e.Load())
	// Pools keep more or less of what they were given: that is up to 70 KB, and does not grow with the requests.
	if limit := uint64(96<<10 + 16*requests); heapAfter > heap+limit {
		t.Errorf("%d bytes more, %d are allowed", heapAfter-heap, limit)
	}
	if goroutinesAfter > goroutines {
		t.Errorf("%d goroutines more", goroutinesAfter-goroutines)
	}
	if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
		t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
	}
}

// TestBatchAllocatesNothing holds common steps of several sequences in the steady state to no allocation of their own.
func TestBatchAllocatesNothing(t *testing.T) {
	const seqs, tokens = 4, 150
	e := newEngine(t, engine.Config{Seqs: seqs, Context: 300})
	var all []*engine.Sequence
	for i := range seqs {
		s := sequence(t, e)
		draw(t, s, 0, text(64 + i)[i:])
		all = append(all, s)
	}
	var before, after [2]sync.WaitGroup
	var ended sync.WaitGroup
	for part := range 2 {
		before[part].Add(1)
		after[part].Add(seqs)
	}
	for _, s := range all {
		ended.Go(func() {
			for part := range 2 {
				before[part].Wait()
				for range tokens / 2 {
					if _, err := s.Next(t.Context()); err != nil {
						t.Error(err)
						break
					}
				}
				after[part].Done()
			}
		})
	}
	before[0].Done()
	after[0].Wait()
	var first, last runtime.MemStats
	runtime.ReadMemStats(&first)
	before[1].Done()
	after[1].Wait()
	runtime.ReadMemStats(&last)
	ended.Wait()
	if n := last.Mallocs - first.Mallocs; n > tokens/4 {
		t.Errorf("%d allocations in %d tokens", n, seqs*tokens/2)
	}
}
