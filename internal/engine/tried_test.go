package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/forest"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
	"grove/method/layers"
)

// tries are models of which rows are tried.
var tries = map[string]modeltest.Spec{
	"llama": {Context: 300}, "positions are added": {Arch: "gpt2", KVHeads: 4, Context: 300}, "embeddings are scaled": {Arch: "gemma2", Context: 300}, "recurrent": {Arch: "mamba", Context: 300}, "further streams": {Arch: "gemma3n", Context: 300}, "windows": {Arch: "gemma3", Context: 300},
	"layers that share": {Arch: "sambay", Context: 300}, "masks ask": {Arch: "sdar", Context: 300},
}

// lastState returns the final state of a text's last token, and the logits behind it, of a run of its own.
func lastState(t *testing.T, e *engine.Engine, ids []token.ID) (state, logits []float32) {
	t.Helper()
	err := errors.Join(
		e.States(t.Context(), ids, reading.Reading{}, func(row []float32) error { state = append(state[:0], row...); return nil }),
		e.Logits(t.Context(), ids, len(ids)-1, func(row []float32) error { logits = append(logits[:0], row...); return nil }))
	if err != nil {
		t.Fatal(err)
	}
	return state, logits
}

// behind opens a sequence behind a prompt.
func behind(t *testing.T, e *engine.Engine, ids []token.ID) *engine.Sequence {
	t.Helper()
	s, err := e.NewSequence(engine.Answer{})
	if err == nil {
		err = s.Append(t.Context(), ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTry compares the states of rows that are tried, and the logits behind those that stay, with runs of their own, also where the text's pages are taken between two.
func TestTry(t *testing.T) {
	for name, spec := range tries {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, few(), spec.File(t))
			alone := b.engine(t, engine.Config{CacheType: tensor.F16})
			e := b.engine(t, engine.Config{CacheType: tensor.F16, Seqs: 3, Context: 200, Tokens: 200, Chunk: 16})
			e.Impatient()
			ids := text(75)
			s := behind(t, e, ids)
			for n := range 12 {
				if n == 6 {
					others := []*engine.Sequence{behind(t, e, text(190)[1:]), behind(t, e, text(192)[2:])}
					if err := errors.Join(others[0].Close(), others[1].Close()); err != nil || e.Load().Preempted == 0 && name == "llama" {
						t.Fatalf("no pages are taken, %v", err)
					}
				}
				list, err := s.Likeliest(t.Context(), 4)
				if err != nil {
					t.Fatal(err)
				}
				var tried []token.ID
				for _, l := range list {
					tried = append(tried, l.ID)
				}
				d, err := s.Try(t.Context(), tried, func(states [][]float32) int {
					for i, id := range tried {
						if want, _ := lastState(t, alone, append(ids[:len(ids):len(ids)], id)); !slices.Equal(states[i], want) {
							t.Errorf("token %d, row %d: another state than alone", n, i)
						}
					}
					return n % 4
				})
				if err != nil || d.ID != tried[n%4] || d.Logprob != list[n%4].Logprob {
					t.Fatalf("%+v, %v; want %+v", d, err, list[n%4])
				}
				ids = append(ids, d.ID)
				logits, err := s.Logits(t.Context())
				if _, want := lastState(t, alone, ids); err != nil || !slices.Equal(logits, want) || !slices.Equal(s.Tokens(), ids) {
					t.Fatalf("token %d: other logits than alone, %v", n, err)
				}
				if _, live, _ := e.Held(); live != 0 {
					t.Fatalf("%d rows live on", live)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestExits compares the logits of exits with rows that run so many layers alone; and the text that is drawn from the model's own ones with that of plain decoding.
func TestExits(t *testing.T) {
	for name, spec := range tries {
		t.Run(name, func(t *testing.T) {
			spec.Layers = 4
			b := newBed(t, few(), spec.File(t))
			want := draw(t, sequence(t, b.engine(t, engine.Config{CacheType: tensor.F16})), 12, text(75))
			r := modeltest.NewFor(t, b.m, b.pool, modeltest.Config{Context: 300, CacheType: tensor.F16})
			trunk := r.NewSeq("")
			for _, id := range text(75)[:74] {
				n := r.Add(forest.Row{Seq: trunk, ID: id})
				r.Forward()
				r.Commit(trunk, n)
			}
			s := sequence(t, b.engine(t, engine.Config{CacheType: tensor.F16, Chunk: 16}))
			draw(t, s, 0, text(75))
			exits := []int{0, 1, 3, 4}
			for i, last := 0, text(75)[74]; i < len(want); i++ {
				var own []float32
				err := s.Exits(t.Context(), exits, func(logits [][]float32) {
					for k, l := range exits {
						row := forest.Row{Seq: trunk, ID: last, To: l, Want: forest.Want{Logits: true}}
						if l == 0 {
							row.Skip = forest.LayerRange(0, 4)
						}
						r.Add(row)
						r.Forward()
						if name != "masks ask" && !slices.Equal(logits[k], r.Exec.Result(0).Logits) { // that one gives the token of its own place
							t.Errorf("token %d: behind %d layers there are other logits than alone", i, l)
						}
						r.Drop(trunk, forest.Trunk)
					}
					own = slices.Clone(logits[len(exits)])
					if !slices.Equal(own, logits[3]) {
						t.Errorf("token %d: behind all layers there are other logits than the model's", i)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				d, err := s.DrawFrom(t.Context(), own)
				if err != nil || d.Token != want[i] {
					t.Fatalf("token %d: %+v, %v; want %+v", i, d, err, want[i])
				}
				n := r.Add(forest.Row{Seq: trunk, ID: last})
				r.Forward()
				r.Commit(trunk, n)
				last = d.ID
			}
		})
	}
}

// TestStatesAnew compares the states of a sequence's own text with those of a text alone; the sequence goes on as if nobody had asked.
func TestStatesAnew(t *testing.T) {
	for name, spec := range tries {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, few(), spec.File(t))
			ids, alone := text(75), b.engine(t, engine.Config{CacheType: tensor.F16})
			var want [][]float32
			if err := alone.States(t.Context(), ids, reading.Reading{}, func(row []float32) error { want = append(want, slices.Clone(row)); return nil }); err != nil {
				t.Fatal(err)
			}
			drawn := draw(t, sequence(t, alone), 10, ids)
			for _, from := range []int{0, 40, 74, 75} {
				s := sequence(t, b.engine(t, engine.Config{CacheType: tensor.F16, Chunk: 16}))
				draw(t, s, 0, ids)
				got := make([][]float32, len(ids))
				if err := s.States(t.Context(), from, func(at int, state []float32) { got[at] = slices.Clone(state) }); err != nil {
					t.Fatal(err)
				}
				for i := from; i < len(ids); i++ {
					if !slices.Equal(got[i], want[i]) {
						t.Fatalf("from %d on, token %d has another state than alone", from, i)
					}
				}
				if got := draw(t, s, 10); !slices.Equal(got, drawn) {
					t.Errorf("from %d on: %v, want %v", from, got, drawn)
				}
			}
		})
	}
}

// TestTriedRefused names what cannot be tried, and leaves the text as it is.
func TestTriedRefused(t *testing.T) {
	e := newEngine(t, engine.Config{Context: 40, Chunk: 8, Seqs: 2})
	first := func([][]float32) int { return 0 }
	none := func([][]float32) {}
	s := behind(t, e, text(39))
	skips, err := e.NewSequence(engine.Answer{Places: layers.Places{From: 2, To: 1, First: 1, Over: 4}})
	if err == nil {
		err = skips.Append(t.Context(), text(5))
	}
	if err != nil {
		t.Fatal(err)
	}
	for want, do := range map[string]func() error{
		"trying 0 tokens":   func() error { _, err := s.Try(t.Context(), nil, first); return err },
		"a step has 1 to 8": func() error { _, err := s.Try(t.Context(), make([]token.ID, 9), first); return err },
		"token id 999":      func() error { _, err := s.Try(t.Context(), []token.ID{1, 999}, first); return err },
		"none is chosen": func() error {
			_, err := s.Try(t.Context(), []token.ID{1, 2}, func([][]float32) int { return 2 })
			return err
		},
		"an exit behind 99":  func() error { return s.Exits(t.Context(), []int{99}, none) },
		"an exit behind -1":  func() error { return s.Exits(t.Context(), []int{-1}, none) },
		"8 exits":            func() error { return s.Exits(t.Context(), make([]int, 8), none) },
		"stop early besides": func() error { return skips.Exits(t.Context(), []int{1}, none) },
		"panic": func() error {
			_, err := s.Try(t.Context(), []token.ID{1}, func([][]float32) int { panic("panic") })
			return err
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), want) || s.Len() != 39 {
			t.Errorf("%v, and %d tokens; want %s", err, s.Len(), want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = s.Try(ctx, []token.ID{1, 2}, func([][]float32) int { cancel(); return 1 })
	if s.Len() != 39 && err != nil {
		t.Errorf("cancelled: %v, and %d tokens", err, s.Len())
	}
	if err := s.Truncate(39); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Try(t.Context(), []token.ID{1, 2}, first); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Try(t.Context(), []token.ID{1, 2}, first); !errors.Is(err, engine.ErrContext) {
		t.Errorf("behind the context: %v", err)
	}
	if _, err := s.DrawFrom(t.Context(), make([]float32, 48)); !errors.Is(err, engine.ErrContext) {
		t.Errorf("a draw behind the context: %v", err)
	}
	if err := s.Truncate(20); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DrawFrom(t.Context(), make([]float32, 3)); err == nil || s.Len() != 20 {
		t.Errorf("logits of another vocabulary: %v", err)
	}
	if err := errors.Join(s.Close(), skips.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Try(t.Context(), []token.ID{1}, first); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestTriedKinds: behind a source, and behind a prompt whose tokens see each other, the first candidate of each step and the logits of all layers give the greedy answer; the last row of such a
// prompt cannot run alone.
func TestTriedKinds(t *testing.T) {
	for name, c := range map[string]struct {
		spec   modeltest.Spec
		answer engine.Answer
	}{"source": {spec: modeltest.Spec{Arch: "t5", Context: 300}}, "prefix": {modeltest.Spec{Context: 300}, engine.Answer{Prefix: true}}} {
		t.Run(name, func(t *testing.T) {
			e := newBed(t, 1, c.spec.File(t)).engine(t, engine.Config{Seqs: 4})
			open := func() *engine.Sequence {
				s, err := e.NewSequence(c.answer)
				if err == nil {
					err = s.Append(t.Context(), text(40))
				}
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			plain, tried, exits := open(), open(), open()
			told := 0
			if err := tried.States(t.Context(), 0, func(at int, state []float32) { told++ }); err != nil || told != tried.Len() {
				t.Fatalf("the states of %d of %d tokens, %v", told, tried.Len(), err)
			}
			none := func([][]float32) {}
			if err := exits.Exits(t.Context(), []int{1}, none); (err == nil) == (name == "prefix") {
				t.Fatal(err)
			}
			for i := range 8 {
				want, err := plain.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				list, err := tried.Likeliest(t.Context(), 3)
				if err != nil {
					t.Fatal(err)
				}
				got, err := tried.Try(t.Context(), []token.ID{list[0].ID, list[1].ID, list[2].ID}, func([][]float32) int { return 0 })
				if err != nil || got.Token != want.Token {
					t.Fatalf("token %d: %+v, %v; want %+v", i, got, err, want)
				}
				own := func(logits [][]float32) { told = len(logits) }
				if i > 0 || name == "source" {
					if err := exits.Exits(t.Context(), []int{0, 1}, own); err != nil || told != 3 {
						t.Fatalf("token %d: %v", i, err)
					}
				}
				logits, err := exits.Logits(t.Context())
				if err == nil {
					got, err = exits.DrawFrom(t.Context(), slices.Clone(logits))
				}
				if err != nil || got.Token != want.Token {
					t.Fatalf("token %d by exits: %+v, %v; want %+v", i, got, err, want)
				}
			}
		})
	}
}
