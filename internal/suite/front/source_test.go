package front_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/suite/modeltest"
	"grove/internal/text/chat"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// openEditor opens the folder of an encoder-decoder that edits a text.
func openEditor(t *testing.T, o grove.Options) *grove.Model {
	t.Helper()
	h, err := modeltest.Editor(false)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	m, err := grove.Open(dir, threaded(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestEditorDrafts: without a setting, an encoder-decoder drafts from its source, and writes what it writes without drafts.
func TestEditorDrafts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := openEditor(t, grove.Options{Context: 600})
	words := modeltest.EditorWords()
	prompt := strings.Join(words[:100], " ") + " colour " + strings.Join(words[100:180], " ")
	want := strings.Replace(prompt, "colour", "color", 1)
	answer := func(method string) (ids []token.ID, logprobs []float32, text string, st grove.Stats) {
		g, err := m.Generate(t.Context(), grove.Request{Prompt: prompt, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		for tok, err := range g.Tokens() {
			if err != nil {
				t.Fatal(err)
			}
			ids, logprobs, text = append(ids, tok.ID), append(logprobs, tok.Logprob), text+tok.Text
		}
		return ids, logprobs, text, g.Stats()
	}
	plain, logprobs, text, _ := answer(grove.MethodOff)
	if text != want {
		t.Fatalf("the answer is %q, want %q", text, want)
	}
	ids, drafted, _, st := answer("")
	if !slices.Equal(ids, plain) || !slices.Equal(drafted, logprobs) {
		t.Error("with drafts the answer is another one")
	}
	t.Logf("%d tokens in %d rounds, %d of %d drafts accepted", st.Tokens, st.Drafting.Rounds, st.Drafting.Accepted, st.Drafting.Drafted)
	if st.Drafting.Accepted == 0 || st.Tokens <= st.Drafting.Rounds {
		t.Errorf("%d tokens in %d rounds, %d drafts accepted; the source holds all but one", st.Tokens, st.Drafting.Rounds, st.Drafting.Accepted)
	}
}

// TestEditorConversation: each turn of a conversation is a source of its own, whatever it begins with.
func TestEditorConversation(t *testing.T) {
	m := openEditor(t, grove.Options{})
	all, err := chat.New("all", "{% for m in messages %}{{ m.content }} {% endfor %}{{ eos_token }}", chat.Tokens{EOS: "</s>"})
	if err != nil {
		t.Fatal(err)
	}
	c := m.NewConversation()
	defer c.Close()
	messages := []grove.Message{{Role: "user", Content: "fix: The colour"}}
	for _, want := range []string{"fix: The color", "fix: The color of our neighbor"} {
		g, err := c.Chat(t.Context(), messages, grove.ChatOptions{Template: all}, grove.Request{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Text()
		if err != nil || got != want {
			t.Errorf("%v: %q, want %q (%v)", messages, got, want, err)
		}
		messages = []grove.Message{{Role: "user", Content: "fix: The colour"}, {Role: "user", Content: "of our neighbour"}}
	}
}

// TestEncoderProjection: an encoder of T5 with a projection, as CodeT5+ of 110 M is, gives the first token's state projected, as a unit vector.
func TestEncoderProjection(t *testing.T) {
	metadata, tensors, err := synthetic.Spec{Arch: "t5encoder", KVHeads: 4, Context: 100, Vocab: 300, Vocabulary: true}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	embed := func(o grove.EmbedOptions) []float32 {
		t.Helper()
		var b bytes.Buffer
		if err := gguf.Write(&b, metadata, tensors); err != nil {
			t.Fatal(err)
		}
		m, err := grove.OpenBytes(b.Bytes(), threaded(grove.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		got, err := m.Embed(t.Context(), "def f(x):", o)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	state := embed(grove.EmbedOptions{Pooling: "cls", Raw: true})
	const out = 24
	rng := rand.New(rand.NewPCG(5, 5))
	values := func(shape ...int) tensor.View {
		v := tensor.View{Type: tensor.F32, Shape: shape}
		v.Data = make([]byte, v.Bytes())
		x := make([]float32, v.Elems())
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		if err := tensor.Pack(v.Type, v.Data, x); err != nil {
			t.Fatal(err)
		}
		return v
	}
	w, bias := values(out, len(state)), values(out)
	w.Name, bias.Name = "dense_2.weight", "dense_2.bias"
	tensors, metadata = append(tensors, w, bias), append(metadata, gguf.KV{Key: "t5encoder.pooling_type", Value: gguf.Of(uint32(2))})
	matrix, offsets := make([]float32, out*len(state)), make([]float32, out)
	if err := errors.Join(tensor.Unpack(w.Type, matrix, w.Data), tensor.Unpack(bias.Type, offsets, bias.Data)); err != nil {
		t.Fatal(err)
	}
	want, length := make([]float64, out), 0.0
	for i := range want {
		want[i] = float64(offsets[i])
		for j, x := range state {
			want[i] += float64(matrix[i*len(state)+j]) * float64(x)
		}
		length += want[i] * want[i]
	}
	got := embed(grove.EmbedOptions{})
	if len(got) != out {
		t.Fatalf("%d values, want %d", len(got), out)
	}
	for i := range want {
		if d := float64(got[i]) - want[i]/math.Sqrt(length); !(math.Abs(d) < 1e-5) {
			t.Errorf("value %d is %v, want %v", i, got[i], want[i]/math.Sqrt(length))
		}
	}
}

// BenchmarkEditor writes a text of 400 tokens with one edit of 20, by a model of Flan-T5 small's sizes, without a setting and without drafts.
func BenchmarkEditor(b *testing.B) {
	b.Setenv("XDG_CACHE_HOME", b.TempDir())
	const vocab, length = 32128, 400
	ids := rand.New(rand.NewPCG(1, 2)).Perm(vocab - 2)
	c := synthetic.Copier{
		Vocab: vocab, Context: 512, Start: 0, End: vocab - 1, Like: vocab - 1, Edits: map[int]int{}, Code: 256, Layers: 8, FFN: 1024, Type: tensor.Q8_0, Vocabulary: true,
	}
	var prompt []token.ID
	for i, id := range ids[:length] {
		prompt = append(prompt, token.ID(id+1))
		if i%20 == 10 {
			c.Edits[id+1] = ids[length+i] + 1
		}
	}
	prompt = append(prompt, token.ID(c.End))
	metadata, tensors, err := c.Parts()
	if err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if err := gguf.Write(&file, metadata, tensors); err != nil {
		b.Fatal(err)
	}
	m, err := grove.OpenBytes(file.Bytes(), threaded(grove.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for _, method := range []string{grove.MethodAuto, grove.MethodOff} {
		b.Run(method, func(b *testing.B) {
			var st grove.Stats
			for b.Loop() {
				g, err := m.Generate(b.Context(), grove.Request{PromptIDs: prompt, Method: method, Private: true})
				if err == nil {
					_, err = g.Text()
				}
				if st = g.Stats(); err != nil || st.Tokens != length+1 {
					b.Fatalf("%d tokens: %v", st.Tokens, err)
				}
			}
			b.ReportMetric(float64(st.Tokens)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			if n := st.Drafting.Rounds; n > 0 {
				b.ReportMetric(float64(st.Tokens)/float64(n), "tokens/round")
			}
		})
	}
}
