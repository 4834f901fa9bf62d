package front_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// answer is a text with everything that must not depend on how it was computed.
type answer struct {
	Tokens []grove.Token
	Finish grove.Finish
}

func answerOf(g *grove.Generation) (a answer, err error) {
	for tok, err := range g.Tokens() {
		if err != nil {
			return a, err
		}
		a.Tokens = append(a.Tokens, tok)
	}
	a.Finish = g.Stats().Finish
	return a, nil
}

// generate computes an answer that must succeed.
func generate(t testing.TB, m *grove.Model, r grove.Request) (answer, grove.Stats) {
	t.Helper()
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	a, err := answerOf(g)
	if err != nil {
		t.Fatal(err)
	}
	return a, g.Stats()
}

// sameBits tells log-probabilities apart that differ in a bit only.
var sameBits = cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })

// request has a prompt of more than a page of the cache.
func request(seed uint64) grove.Request {
	r := grove.Request{
		Prompt: strings.Repeat(fmt.Sprintf("prompt %d: a long, long line; ", seed), 4), MaxTokens: 40,
		Sampling: grove.DefaultSampling(), Seed: &seed,
	}
	r.Sampling.Temperature = 1.3
	return r
}

// TestGenerateBits expects the same tokens and log-probabilities, bit for bit, whatever the prefill
// steps and threads, and with the prompt's beginning found in the cache.
func TestGenerateBits(t *testing.T) {
	for _, cache := range []string{"f32", "f16"} {
		want, _ := generate(t, open(t, goldenModel, grove.Options{CacheType: cache, Threads: 1, Chunk: 1}), request(1))
		for _, chunk := range []int{1, 7, 512} {
			for _, threads := range []int{1, 2} {
				m := open(t, goldenModel, grove.Options{CacheType: cache, Threads: threads, Chunk: chunk, Parallel: 1})
				for _, reused := range []int{0, 64} {
					got, stats := generate(t, m, request(1))
					if d := cmp.Diff(want, got, sameBits); d != "" {
						t.Errorf("%s cache, chunks of %d, %d threads, %d tokens reused (-want +got):\n%s", cache, chunk, threads, reused, d)
					}
					if stats.ReusedTokens != reused {
						t.Errorf("%s cache, chunks of %d, %d threads: %d tokens reused, want %d", cache, chunk, threads, stats.ReusedTokens, reused)
					}
				}
			}
		}
	}
}

// TestGenerateAtOnce runs several generations in turns from several goroutines.
func TestGenerateAtOnce(t *testing.T) {
	alone := open(t, goldenModel, grove.Options{Threads: 1, Parallel: 1})
	m := open(t, goldenModel, grove.Options{Threads: 2, Parallel: 3, Chunk: 16})
	var wants [3]answer
	for i := range wants {
		wants[i], _ = generate(t, alone, request(uint64(i)))
	}
	var all sync.WaitGroup
	for i := range wants {
		all.Go(func() {
			for range 3 {
				g, err := m.Generate(t.Context(), request(uint64(i)))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := answerOf(g)
				if d := cmp.Diff(wants[i], got, sameBits); d != "" || err != nil {
					t.Errorf("request %d: %v (-want +got):\n%s", i, err, d)
				}
			}
		})
	}
	all.Wait()
}

// TestSeed draws seeds, which reproduce their texts.
func TestSeed(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	r := request(0)
	r.Seed = nil
	r.Sampling.Seed = 12345 // ignored
	first, stats := generate(t, m, r)
	second, other := generate(t, m, r)
	if stats.Seed == other.Seed || stats.Seed == 12345 || cmp.Equal(first, second) {
		t.Errorf("two generations without a seed drew %d and %d", stats.Seed, other.Seed)
	}
	r.Seed = &stats.Seed
	if again, s := generate(t, m, r); !cmp.Equal(first, again, sameBits) || s.Seed != stats.Seed {
		t.Error("the reported seed gives another text")
	}
}

// script writes a model that answers by rote: the token behind ids[i] is ids[i+1]. Where rivals names
// a token, it is as likely as the one that it stands for. The vocabulary is the golden model's, in
// which the bytes come first: 'A' is the token of that letter.
func script(t testing.TB, ids []token.ID, rivals map[token.ID]token.ID, drop ...string) string {
	t.Helper()
	const vocab, width = 320, 320
	golden, err := gguf.Open(goldenModel)
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	var metadata []gguf.KV
	for _, kv := range golden.Metadata {
		switch {
		case cmp.Equal(drop, []string{kv.Key}):
			continue
		case kv.Key == "llama.embedding_length":
			kv.Value = gguf.Of(uint32(width))
		case kv.Key == "llama.block_count":
			kv.Value = gguf.Of(uint32(1))
		}
		metadata = append(metadata, kv)
	}
	zeros := func(name string, shape ...int) tensor.View {
		v := tensor.View{Name: name, Type: tensor.F32, Shape: shape}
		v.Data = make([]byte, 4*v.Elems())
		return v
	}
	set := func(v tensor.View, i int, value float32) {
		bits := math.Float32bits(value)
		for b := range 4 {
			v.Data[4*i+b] = byte(bits >> (8 * b))
		}
	}
	embed, norm, out := zeros("token_embd.weight", vocab, width), zeros("output_norm.weight", width), zeros("output.weight", vocab, width)
	for i := range width {
		set(embed, i*width+i, 1)
		set(norm, i, 1)
	}
	for i, id := range ids[1:] {
		set(out, int(id)*width+int(ids[i]), 1)
		if r, ok := rivals[id]; ok {
			set(out, int(r)*width+int(ids[i]), 1)
		}
	}
	tensors := []tensor.View{
		embed, norm, out, zeros("blk.0.attn_norm.weight", width), zeros("blk.0.ffn_norm.weight", width),
		zeros("blk.0.attn_q.weight", 64, width), zeros("blk.0.attn_k.weight", 32, width), zeros("blk.0.attn_v.weight", 32, width),
		zeros("blk.0.attn_output.weight", width, 64), zeros("blk.0.ffn_gate.weight", 96, width),
		zeros("blk.0.ffn_up.weight", 96, width), zeros("blk.0.ffn_down.weight", width, 96),
	}
	path := filepath.Join(t.TempDir(), "script.gguf")
	if err := gguf.WriteFile(path, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	in  token.ID = 256 // the first merges of the golden model's vocabulary
	er  token.ID = 258
	bos token.ID = 317
	eos token.ID = 318
)

func ids(text string, more ...token.ID) (s []token.ID) {
	for i := range len(text) {
		s = append(s, token.ID(text[i]))
	}
	return append(s, more...)
}

// TestSuffix: the tokens of a prompt and a suffix go behind those that say so, and the answer behind that of
// the middle; a vocabulary without them is refused.
func TestSuffix(t *testing.T) {
	const prefix, suffix, middle token.ID = 300, 301, 302
	path := script(t, append([]token.ID{middle}, ids("xyz", eos)...), nil)
	plain := open(t, path, grove.Options{})
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	metadata := f.Metadata
	for key, id := range map[string]token.ID{"fim_pre": prefix, "fim_suf": suffix, "fim_mid": middle} {
		metadata = append(metadata, gguf.KV{Key: "tokenizer.ggml." + key + "_token_id", Value: gguf.Of(uint32(id))})
	}
	fills := filepath.Join(t.TempDir(), "fills.gguf")
	if err := gguf.WriteFile(fills, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	for _, after := range []string{"", "CD"} {
		r := grove.Request{Prompt: "AB", Suffix: &after}
		g, err := open(t, fills, grove.Options{}).Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := g.Text(); text != "xyz" || err != nil {
			t.Errorf("suffix %q: %q, %v, want xyz", after, text, err)
		}
		if got, want := g.Stats().PromptTokens, 6+len(after); got != want { // begin, prefix, A, B, suffix, middle
			t.Errorf("suffix %q: %d tokens of prompt, want %d", after, got, want)
		}
		r.Files = []grove.File{{Name: "a", Text: "bc"}, {Text: "d"}}
		m := open(t, fills, grove.Options{})
		if g, err = m.Generate(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		text, err := m.Detokenize(g.Prompt())
		if i := strings.Index(text, "bc\n\n--- snippet ---\n\nd"); i < 0 || i > strings.Index(text, "AB") || err != nil {
			t.Errorf("suffix %q and files: prompt %q, %v", after, text, err)
		}
		if _, err := m.Generate(t.Context(), grove.Request{Prompt: "AB", Files: r.Files}); err == nil {
			t.Error("files without a suffix are taken")
		}
		option := new(grove.OptionError)
		if _, err := plain.Generate(t.Context(), r); !errors.Is(err, tokenizer.ErrNoInfill) || !errors.As(err, &option) {
			t.Errorf("without tokens for it: %v", err)
		}
	}
}

// respelled writes a copy of a model with other texts of tokens.
func respelled(t *testing.T, path string, texts map[token.ID]string) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var metadata []gguf.KV
	for _, kv := range f.Metadata {
		if kv.Key == "tokenizer.ggml.tokens" {
			tokens := slices.Clone(kv.Value.Any().([]string))
			for id, text := range texts {
				tokens[id] = text
			}
			kv.Value = gguf.ArrayOf(tokens)
		}
		metadata = append(metadata, kv)
	}
	out := filepath.Join(t.TempDir(), "renamed.gguf")
	if err := gguf.WriteFile(out, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGap fills in by CodeGen 2's tokens: the answer ends at <eom>, which is no text, unless ends are ignored.
func TestGap(t *testing.T) {
	const mask, sep, eom, end token.ID = 300, 301, 302, 303
	path := script(t, append([]token.ID{mask}, ids("xyz", eom, 'w', eos)...), nil)
	m := open(t, respelled(t, path, map[token.ID]string{mask: "<mask_1>", sep: "<sep>", eom: "<eom>", end: "<|endoftext|>"}), grove.Options{})
	after := "CD<mask_1>"
	for _, ignore := range []bool{false, true} {
		r := grove.Request{Prompt: "AB", Suffix: &after, IgnoreEnd: ignore, MaxTokens: 5}
		g, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if want := map[bool]string{false: "xyz", true: "xyzw"}[ignore]; !strings.HasPrefix(text, want) || !ignore && text != want || err != nil {
			t.Errorf("ends ignored %v: %q, %v, want %q", ignore, text, err, want)
		}
		if st := g.Stats(); !ignore && (st.Finish != grove.FinishStop || st.StopToken != eom) {
			t.Errorf("it ended by %s, token %d", st.Finish, st.StopToken)
		}
		p := g.Prompt()
		if want := append([]token.ID{bos, 'A', 'B', mask, 'C', 'D'}, append(ids("<mask_1>"), end, sep, mask)...); !slices.Equal(p, want) {
			t.Errorf("prompt %v, want %v", p, want)
		}
	}
}

func TestFinish(t *testing.T) {
	alphabet := script(t, ids("Abcdefghijklmnop", eos), nil)
	merged := script(t, append(ids("A", in, er), ids("\xc3\xa9xyz", eos)...), nil)
	tests := []struct {
		name   string
		model  string
		r      grove.Request
		o      grove.Options
		pieces []string // joined by | below
		finish grove.Finish
	}{
		{"end of text", alphabet, grove.Request{}, grove.Options{}, strings.Split("bcdefghijklmnop", ""), grove.FinishStop},
		{"number of tokens", alphabet, grove.Request{MaxTokens: 3}, grove.Options{}, []string{"b", "c", "d"}, grove.FinishLength},
		{"end of context", alphabet, grove.Request{}, grove.Options{Context: 5}, []string{"b", "c", "d"}, grove.FinishContext},
		{"number of tokens at the end of the context", alphabet, grove.Request{MaxTokens: 3}, grove.Options{Context: 5}, []string{"b", "c", "d"}, grove.FinishLength},
		{"prompt that fills the context", alphabet, grove.Request{}, grove.Options{Context: 2}, nil, grove.FinishContext},
		{"stop string of one token", alphabet, grove.Request{Stop: []string{"d"}}, grove.Options{}, []string{"b", "c", ""}, grove.FinishStop},
		{"stop string at the first token", alphabet, grove.Request{Stop: []string{"b"}}, grove.Options{}, []string{""}, grove.FinishStop},
		{"stop string over several tokens", alphabet, grove.Request{Stop: []string{"def"}}, grove.Options{}, []string{"b", "c", "", "", ""}, grove.FinishStop},
		{"stop string that is not completed", alphabet, grove.Request{Stop: []string{"deX"}, MaxTokens: 5}, grove.Options{},
			[]string{"b", "c", "", "", "def"}, grove.FinishLength},
		{"held back at the number of tokens", alphabet, grove.Request{Stop: []string{"efX"}, MaxTokens: 5}, grove.Options{},
			[]string{"b", "c", "d", "", "", "ef"}, grove.FinishLength},
		{"held back at the end of the context", alphabet, grove.Request{Stop: []string{"dX"}}, grove.Options{Context: 5},
			[]string{"b", "c", "", "d"}, grove.FinishContext},
		{"held back at the end of the text", alphabet, grove.Request{Stop: []string{"opX"}}, grove.Options{},
			append(strings.Split("bcdefghijklmn", ""), "", "", "op"), grove.FinishStop},
		{"overlapping, the later one is completed", alphabet, grove.Request{Stop: []string{"cdeX", "def"}}, grove.Options{},
			[]string{"b", "", "", "", "c"}, grove.FinishStop},
		{"overlapping, both completed", alphabet, grove.Request{Stop: []string{"def", "cdef"}}, grove.Options{},
			[]string{"b", "", "", "", ""}, grove.FinishStop},
		{"one within another", alphabet, grove.Request{Stop: []string{"cde", "d"}}, grove.Options{}, []string{"b", "", "c"}, grove.FinishStop},
		{"empty stop string", alphabet, grove.Request{Stop: []string{"", "c"}}, grove.Options{}, []string{"b", ""}, grove.FinishStop},
		{"tokens of several letters", merged, grove.Request{MaxTokens: 2}, grove.Options{}, []string{"in", "er"}, grove.FinishLength},
		{"stop string within tokens", merged, grove.Request{Stop: []string{"ne"}}, grove.Options{}, []string{"i", ""}, grove.FinishStop},
		{"stop string within one token", merged, grove.Request{Stop: []string{"r"}}, grove.Options{}, []string{"in", "e"}, grove.FinishStop},
		{"rune of two tokens", merged, grove.Request{MaxTokens: 5}, grove.Options{}, []string{"in", "er", "", "é", "x"}, grove.FinishLength},
		{"stop string is a rune", merged, grove.Request{Stop: []string{"é"}}, grove.Options{}, []string{"in", "er", "", ""}, grove.FinishStop},
		{"half a rune at the end", merged, grove.Request{MaxTokens: 3}, grove.Options{}, []string{"in", "er", "", "\uFFFD"}, grove.FinishLength},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Prompt = "A"
			got, stats := generate(t, open(t, tt.model, tt.o), tt.r)
			var pieces []string
			for _, tok := range got.Tokens {
				pieces = append(pieces, tok.Text)
			}
			if d := cmp.Diff(tt.pieces, pieces); d != "" {
				t.Errorf("texts of the tokens (-want +got):\n%s", d)
			}
			if got.Finish != tt.finish {
				t.Errorf("finish %q, want %q", got.Finish, tt.finish)
			}
			if stats.PromptTokens != 2 {
				t.Errorf("%d tokens of prompt, want 2", stats.PromptTokens)
			}
			if n := tt.r.MaxTokens; got.Finish == grove.FinishLength && stats.Tokens != n {
				t.Errorf("%d tokens, want %d", stats.Tokens, n)
			}
		})
	}
}

// TestGreedyTies makes two tokens equally likely: the lower id is taken.
func TestGreedyTies(t *testing.T) {
	for _, rival := range []token.ID{'a', 'z'} {
		m := open(t, script(t, ids("Am"), map[token.ID]token.ID{'m': rival}), grove.Options{})
		got, _ := generate(t, m, grove.Request{Prompt: "A", MaxTokens: 1})
		if want := min('m', rival); got.Tokens[0].ID != want {
			t.Errorf("token %d of %d and %d", got.Tokens[0].ID, 'm', rival)
		}
	}
}

func TestRequestErrors(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Context: 6})
	nan := grove.Sampling{Temperature: float32(math.NaN())}
	for _, tt := range []struct {
		name string
		r    grove.Request
		want string
	}{
		{"prompt too long", grove.Request{Prompt: "ZQXJKVW"}, "grove: the prompt has 8 tokens and the context holds 6: the context is full"},
		{"negative number of tokens", grove.Request{MaxTokens: -1}, "grove: Request.MaxTokens is -1; it must be 0 (no bound) or more"},
		{"sampling", grove.Request{Sampling: nan}, "sample: temperature is NaN; it must be a number from 0 up"},
	} {
		if _, err := m.Generate(t.Context(), tt.r); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v; want %s", tt.name, err, tt.want)
		}
	}
	if got, stats := generate(t, m, grove.Request{MaxTokens: 1}); stats.PromptTokens != 1 || len(got.Tokens) == 0 {
		t.Errorf("an empty prompt: %+v", stats)
	}
	m = open(t, script(t, ids("Ab"), nil, "tokenizer.ggml.bos_token_id"), grove.Options{})
	const want = "grove: the prompt is empty, and the model has no token that begins a text"
	if _, err := m.Generate(t.Context(), grove.Request{}); err == nil || err.Error() != want {
		t.Errorf("an empty prompt without a begin token: %v; want %s", err, want)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, tt := range []struct {
		o    grove.Options
		want string
	}{
		{grove.Options{CacheType: "q4_0"}, `grove: cache type "q4_0" is not known; f32, f16 and q8_0 are`},
		{grove.Options{CacheType: "q8_0"}, "kv: cache type Q8_0 needs heads of a multiple of 32 values; layer 0 has 16 (use --cache-type f16 or f32)"},
		{grove.Options{Context: 513}, "engine: a context of 513 tokens; the model was trained for 512 (random weights, seed 1)"},
		{grove.Options{Chunk: -1}, "grove: chunk is -1"},
	} {
		_, err := grove.Open(goldenModel, tt.o)
		var option *grove.OptionError
		if !errors.As(err, &option) || err.Error() != tt.want {
			t.Errorf("%+v: %v; want %s", tt.o, err, tt.want)
		}
	}
}

// countdown is a context that is cancelled when it has been asked n times.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelGeneration cancels at every layer of a prompt and of the tokens behind it: the generation
// ends with the context's error, gives its room back, and leaves no trace in later ones.
func TestCancelGeneration(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 1, Chunk: 50})
	r := request(3)
	r.MaxTokens = 4
	want, _ := generate(t, m, r)
	m = open(t, goldenModel, grove.Options{Parallel: 1, Chunk: 50})
	steps := 0
	for n := 0; ; n++ {
		g, err := m.Generate(&countdown{t.Context(), n}, r)
		if errors.Is(err, context.Canceled) && n < 6 {
			continue // while the prompt is tokenised
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := answerOf(g)
		if err == nil {
			break
		}
		steps++
		if !errors.Is(err, context.Canceled) || g.Stats().Finish != grove.FinishNone {
			t.Fatalf("cancelled after %d layers: %v, finish %q", n, err, g.Stats().Finish)
		}
		if k := len(got.Tokens); !cmp.Equal(got.Tokens, want.Tokens[:k:k], sameBits) && k > 0 {
			t.Fatalf("cancelled after %d layers: %d tokens differ", n, k)
		}
	}
	if steps < 6 {
		t.Errorf("cancelled at %d places only", steps)
	}
	if got, _ := generate(t, m, r); !cmp.Equal(want, got, sameBits) {
		t.Error("cancelled generations left a trace")
	}
}

// TestLeaveEarly leaves the loop over an answer, which gives its room back.
func TestLeaveEarly(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 1})
	for range 3 {
		g, err := m.Generate(t.Context(), request(4))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range g.Tokens() {
			if err != nil {
				t.Fatal(err)
			}
			if g.Stats().Tokens == 3 {
				break
			}
		}
		if s := g.Stats(); s.Tokens != 3 || s.Finish != grove.FinishNone {
			t.Errorf("%+v", s)
		}
		if _, err := answerOf(g); err == nil || err.Error() != "grove: a generation's tokens are computed once" {
			t.Errorf("a second use: %v", err)
		}
	}
}

// TestBusy opens more generations than there is room for.
func TestBusy(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 1, Queue: grove.NoQueue})
	g, err := m.Generate(t.Context(), request(5))
	if err != nil {
		t.Fatal(err)
	}
	for range g.Tokens() {
		other, err := m.Generate(t.Context(), request(6))
		if err != nil {
			t.Fatal(err)
		}
		_, err = answerOf(other)
		if want := "grove: Options.Queue: 1 answers run and 0 wait, as many as Options.Parallel and Options.Queue allow: too many sequences are open"; !errors.Is(err, engine.ErrBusy) || err.Error() != want {
			t.Fatalf("%v; want %s", err, want)
		}
		break
	}
	if a, _ := generate(t, m, request(6)); len(a.Tokens) == 0 {
		t.Error("no tokens")
	}
}
