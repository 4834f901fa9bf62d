package fill_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	filling "grove/diffuse/fill"
	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// bed is a model of random weights, with the embeddings of its tokens as they enter the first layer.
type bed struct {
	m     model.Model
	pool  *par.Pool
	table [][]float32
}

func newBed(t *testing.T, threads int, s modeltest.Spec) *bed {
	t.Helper()
	s.Context = 300
	f := s.File(t)
	pool := par.New(threads)
	t.Cleanup(pool.Close)
	m, err := model.Open(f, pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{m: m, pool: pool}
	v, _ := f.Tensor("token_embd.weight")
	for width := m.Info().Width; len(v.Data) > 0; v.Data = v.Data[4*width:] {
		row := make([]float32, width)
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*i:]))
			if s.Arch == "gemma3" { // which scales its embeddings
				row[i] *= float32(math.Sqrt(float64(width)))
			}
		}
		b.table = append(b.table, row)
	}
	return b
}

func (b *bed) engine(t *testing.T, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(b.m, b.pool, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// embeddings returns copies of those of tokens.
func (b *bed) embeddings(ids []token.ID) (latents [][]float32) {
	for _, id := range ids {
		latents = append(latents, slices.Clone(b.table[id]))
	}
	return latents
}

func words(n int) []token.ID {
	ids := make([]token.ID, n)
	for i := range ids {
		ids[i] = token.ID((i*17 + 5) % 48)
	}
	return ids
}

var sampling = sample.Params{Temperature: 1, Seed: 9}

// open opens a text behind tokens.
func open(t *testing.T, e *engine.Engine, s sample.Settings, ids []token.ID) *filling.LatentText {
	t.Helper()
	x, err := filling.OpenLatent(e, s, engine.Terms{})
	if err == nil {
		err = x.Append(t.Context(), ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func draw(t *testing.T, n int, next func() (sample.Token, error)) (all []sample.Token) {
	t.Helper()
	for range n {
		d, err := next()
		if err != nil {
			t.Error(err)
			return all
		}
		all = append(all, d)
	}
	return all
}

func (b *bed) decode(t *testing.T, e *engine.Engine, a engine.Answer, ids []token.ID, n int) []sample.Token {
	t.Helper()
	a.Sampling = sampling
	s, err := e.NewSequence(a)
	if err == nil {
		err = s.Append(t.Context(), ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return draw(t, n, func() (sample.Token, error) { d, err := s.Next(t.Context()); return d.Token, err })
}

func rest(t *testing.T, x *filling.LatentText, n int) []sample.Token {
	t.Helper()
	return draw(t, n, func() (sample.Token, error) { return x.Next(t.Context()) })
}

var models = []modeltest.Spec{{}, {Arch: "qwen3"}, {Arch: "gemma3", Layers: 7}, {Arch: "gpt2"}}

// TestTokens: without blocks a text has the tokens of a sequence; a causal block of the embeddings of tokens, without steps, is these tokens; and a block at the beginning whose rows see each other
// is a prompt whose tokens do. All bit by bit.
func TestTokens(t *testing.T) {
	for _, spec := range models {
		for _, cache := range []tensor.Type{tensor.F32, tensor.Q8_0} {
			b := newBed(t, 2, spec)
			e := b.engine(t, engine.Config{CacheType: cache, Seqs: 4, Chunk: 48})
			want := b.decode(t, e, engine.Answer{}, words(150), 20)
			settings := sample.Settings{Params: sampling}
			if got := rest(t, open(t, e, settings, words(150)), 20); !slices.Equal(got, want) {
				t.Errorf("%s %v: without blocks %v, want %v", spec.Arch, cache, got, want)
			}
			for _, first := range []int{1, 100, 130} {
				x := open(t, b.engine(t, engine.Config{CacheType: cache}), settings, words(first))
				if err := x.Think(t.Context(), &filling.LatentBlock{Latents: b.embeddings(words(149)[first:]), Causal: true}); err != nil {
					t.Fatal(err)
				}
				if err := x.Append(t.Context(), words(150)[149:]); err != nil {
					t.Fatal(err)
				}
				if got := rest(t, x, 20); !slices.Equal(got, want) {
					t.Errorf("%s %v: a causal block behind %d tokens: %v, want %v", spec.Arch, cache, first, got, want)
				}
			}
			x := open(t, e, settings, nil)
			if err := x.Think(t.Context(), &filling.LatentBlock{Latents: b.embeddings(words(40))}); err != nil {
				t.Fatal(err)
			}
			if got, want := rest(t, x, 20), b.decode(t, e, engine.Answer{Prefix: true}, words(40), 20); !slices.Equal(got, want) || x.Len() != 60 {
				t.Errorf("%s %v: rows that see each other: %v, want %v", spec.Arch, cache, got, want)
			}
		}
	}
}

// pull moves a latent of 7 values, by a fixed projection of its row's state.
func pull(width int) *filling.LatentBlock {
	weight := func(i, j int) float32 { return float32(math.Sin(float64(i*13+j*7+1))) / 4 }
	return &filling.LatentBlock{
		Steps: 5,
		Embed: func(dst, l []float32, time float64) {
			for i := range dst {
				dst[i] = float32(time) * 0.1
				for j, v := range l {
					dst[i] += weight(i, j) * v
				}
			}
		},
		Velocity: func(dst, l, state []float32, time float64) {
			for j := range dst {
				dst[j] = -l[j] * float32(1-time)
				for i, v := range state[:width] {
					dst[j] += weight(i, j) * v
				}
			}
		},
	}
}

// think runs two blocks of noise behind a prompt, with a token between, and returns the latents and the tokens of the answer.
func (b *bed) think(t *testing.T, x *filling.LatentText) (latents [][]float32, answer []sample.Token) {
	t.Helper()
	for range 2 {
		block := pull(b.m.Info().Width)
		block.Latents = x.Noise(6, 7)
		if err := errors.Join(x.Think(t.Context(), block), x.Append(t.Context(), []token.ID{3})); err != nil {
			t.Error(err)
		}
		latents = append(latents, block.Latents...)
	}
	return latents, rest(t, x, 15)
}

// TestThink: latents and answers depend on the request and its seed alone, beside other texts, with any threads and chunks; other seeds and other samples give others.
func TestThink(t *testing.T) {
	for _, spec := range models {
		b := newBed(t, 1, spec)
		answer := func(e *engine.Engine, seed uint64, sampleIndex int) string {
			s := sample.Settings{Params: sample.Params{Temperature: 1, Seed: seed}, SampleIndex: sampleIndex}
			latents, all := b.think(t, open(t, e, s, words(70)))
			return fmt.Sprint(latents, all)
		}
		e := b.engine(t, engine.Config{Seqs: 5})
		var want []string
		for seed := range uint64(4) {
			want = append(want, answer(e, seed, int(seed%2)))
		}
		want = append(want, answer(e, 3, 0))
		slices.Sort(want)
		if len(slices.Compact(slices.Clone(want))) != len(want) {
			t.Errorf("%s: two seeds or samples give the same", spec.Arch)
		}
		more := newBed(t, 3, spec)
		beside := more.engine(t, engine.Config{Seqs: 6, Chunk: 16})
		got := make([]string, 5)
		var all sync.WaitGroup
		for seed := range uint64(4) {
			all.Go(func() { got[seed] = answer(beside, seed, int(seed%2)) })
		}
		all.Go(func() { got[4] = answer(beside, 3, 0) })
		all.Go(func() { more.decode(t, beside, engine.Answer{}, words(90), 30) })
		all.Wait()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: beside others: %v, want %v", spec.Arch, got, want)
		}
	}
}

// TestStates: the velocity reads the state behind the final norm of a row that sees all of its block.
func TestStates(t *testing.T) {
	b := newBed(t, 1, modeltest.Spec{})
	e := b.engine(t, engine.Config{CacheType: tensor.F32})
	var want, got [][]float32
	if err := e.States(t.Context(), words(20), reading.Reading{Mask: reading.Full}, func(row []float32) error {
		want = append(want, slices.Clone(row))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var times []float64
	block := &filling.LatentBlock{Latents: b.embeddings(words(20)), Steps: 1, Velocity: func(_, _, state []float32, time float64) {
		got, times = append(got, slices.Clone(state)), append(times, time)
	}}
	x := open(t, e, sample.Settings{}, nil)
	if err := x.Think(t.Context(), block); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || slices.Max(times) != 0 {
		t.Errorf("states %v at times %v, want %v", got, times, want)
	}
}

// TestSteps: the latents move by the velocities times the steps of time, which is 1 in all; the last pass runs what became of them.
func TestSteps(t *testing.T) {
	b := newBed(t, 1, modeltest.Spec{})
	var times []float64
	block := &filling.LatentBlock{
		Latents: [][]float32{{1, 2}, {3, 4}}, Steps: 4,
		Embed:    func(dst, l []float32, time float64) { dst[0], times = l[0], append(times, time) },
		Velocity: func(dst, _, _ []float32, time float64) { dst[0], dst[1] = 8, float32(time) },
	}
	if err := open(t, b.engine(t, engine.Config{}), sample.Settings{}, words(3)).Think(t.Context(), block); err != nil {
		t.Fatal(err)
	}
	if want := [][]float32{{9, 2.375}, {11, 4.375}}; fmt.Sprint(block.Latents) != fmt.Sprint(want) {
		t.Errorf("latents %v, want %v", block.Latents, want)
	}
	if want := []float64{0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1}; !slices.Equal(times, want) {
		t.Errorf("times %v, want %v", times, want)
	}
}

// TestNoise: the latents are standard normal: mean 0, variance 1, and the share of |x| below 1 that a normal distribution has.
func TestNoise(t *testing.T) {
	b := newBed(t, 1, modeltest.Spec{})
	const n = 100 * 1000
	var sum, squares, within float64
	for _, row := range open(t, b.engine(t, engine.Config{}), sample.Settings{Params: sampling}, words(3)).Noise(100, 1000) {
		for _, v := range row {
			x := float64(v)
			sum, squares = sum+x, squares+x*x
			if math.Abs(x) < 1 {
				within++
			}
		}
	}
	if mean, variance, share := sum/n, squares/n, within/n; math.Abs(mean) > 0.016 || math.Abs(variance-1) > 0.023 || math.Abs(share-math.Erf(math.Sqrt2/2)) > 0.008 { // five standard errors
		t.Errorf("mean %g, variance %g, share %g", mean, variance, share)
	}
}

// TestRefused: a block that is none, or has no room, is named, and the text is as before.
func TestRefused(t *testing.T) {
	b := newBed(t, 1, modeltest.Spec{})
	e := b.engine(t, engine.Config{Chunk: 32})
	x := open(t, e, sample.Settings{Params: sampling}, words(30))
	width := b.m.Info().Width
	nan := make([]float32, width)
	nan[3] = float32(math.NaN())
	still := func(_, _, _ []float32, _ float64) {}
	long := make([][]float32, 33)
	for i := range long {
		long[i] = make([]float32, width)
	}
	for _, c := range []struct {
		block filling.LatentBlock
		want  string
	}{
		{filling.LatentBlock{}, "a block has no latents; give one or more"},
		{filling.LatentBlock{Latents: long[:2], Steps: -1}, "-1 steps of a block; there may be 0 to 65536"},
		{filling.LatentBlock{Latents: long[:2], Steps: 2}, "2 steps, and no velocity that moves the latents"},
		{filling.LatentBlock{Latents: [][]float32{{1}, {1}}}, fmt.Sprintf("latents of 1 values, and the model's width is %d", width)},
		{filling.LatentBlock{Latents: [][]float32{{1, 2}, {1}}}, "latent 1 has 1 values, and the first 2"},
		{filling.LatentBlock{Latents: [][]float32{nan}}, "the input of row 0 at time 1 has a value of NaN"},
		{filling.LatentBlock{Latents: long, Velocity: still}, "it has 33 tokens, and a step 32 rows at most"},
	} {
		if err := x.Think(t.Context(), &c.block); err == nil || !strings.Contains(err.Error(), c.want) || x.Len() != 30 {
			t.Errorf("%v, want %s; %d rows", err, c.want, x.Len())
		}
	}
	if got, want := rest(t, x, 9), b.decode(t, b.engine(t, engine.Config{}), engine.Answer{}, words(30), 9); !slices.Equal(got, want) {
		t.Errorf("behind errors %v, want %v", got, want)
	}
	if err := x.Append(t.Context(), words(255)); err != nil {
		t.Fatal(err)
	}
	if err := x.Think(t.Context(), &filling.LatentBlock{Latents: long[:7]}); !errors.Is(err, engine.ErrContext) {
		t.Errorf("no room: %v", err)
	}
	if err := x.Append(t.Context(), []token.ID{48 << 10}); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("no token: %v", err)
	}
	if rest(t, x, 6); x.Len() != 300 {
		t.Errorf("%d rows", x.Len())
	}
	if _, err := x.Next(t.Context()); !errors.Is(err, engine.ErrContext) {
		t.Errorf("a full text: %v", err)
	}
	for arch, want := range map[string]string{"sdar": "sdar fills a canvas by diffusion", "bert": "is an encoder", "t5": "a text with latents has none"} {
		if _, err := filling.OpenLatent(newBed(t, 1, modeltest.Spec{Arch: arch}).engine(t, engine.Config{}), sample.Settings{}, engine.Terms{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arch, err, want)
		}
	}
	recurrent := open(t, newBed(t, 1, modeltest.Spec{Arch: "mamba2"}).engine(t, engine.Config{}), sample.Settings{}, words(5))
	if err := recurrent.Think(t.Context(), &filling.LatentBlock{Latents: long[:2]}); !errors.Is(err, engine.ErrPrefix) {
		t.Errorf("a recurrent model: %v", err)
	}
}
