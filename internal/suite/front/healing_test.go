package front_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/constrain"
	"grove/internal/gopher"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/search/bytewise"
)

// code is a text whose beginnings are prompts.
const code = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tif len(os.Args) != 2 {\n\t\tfmt.Println(\"usage: cat file\")\n\t\tos.Exit(1)\n\t}\n\tdata, err := os.ReadFile(os.Args[1])\n\tif err != nil {\n\t\tfmt.Fprintln(os.Stderr, err)\n\t\tos.Exit(1)\n\t}\n\tfmt.Print(string(data))\n}\n"

// viewBehind returns a view behind a request's prompt, and what closes it.
func viewBehind(t testing.TB, m *grove.Model, r grove.Request) (*grove.ByteView, func()) {
	t.Helper()
	s, err := m.NewSequence(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.Bytes(s)
	if err != nil {
		t.Fatal(err)
	}
	return v, func() {
		if err := errors.Join(v.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestHealExactLaw draws many answers to prompts that are cut in the middle of a word: their first bytes come as often as the distribution behind the prompt's bytes says,
// which is that of a view whose tokens begin far before the end.
func TestHealExactLaw(t *testing.T) {
	m := openNano(t)
	for _, prompt := range []string{"package main\n\nfunc ma", "package main\n\nimport (\n\t\"f", "package main\n\nfunc f() error {\n\treturn er"} {
		start := 12 // behind "package main"
		v, done := viewBehind(t, m, grove.Request{Prompt: prompt[:start]})
		for _, b := range []byte(prompt[start:]) {
			if err := v.Push(b); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, m, grove.Request{Prompt: prompt, HealExact: true, MaxTokens: 5, Sampling: grove.Sampling{Temperature: 1}}, v)
		if c := v.Cost(); c.Bytes != len(prompt)-start || c.Forwards < 1 || c.Rows < c.Forwards {
			t.Errorf("the cost is %+v", c)
		}
		done()
	}
}

// TestHealExactGap fills a gap behind a text that is cut in the middle of a word: the first bytes come as often as the distribution behind the whole prompt and
// the word's first bytes says.
func TestHealExactGap(t *testing.T) {
	const prefix, suffix, middle token.ID = 300, 301, 302
	file, err := gguf.Parse(gopher.Named(gopher.NanoName))
	if err != nil {
		t.Fatal(err)
	}
	text, err := tokenizer.FromGGUF(file)
	if err != nil {
		t.Fatal(err)
	}
	metadata := file.Metadata
	for key, id := range map[string]token.ID{"fim_pre": prefix, "fim_suf": suffix, "fim_mid": middle} {
		metadata = append(metadata, gguf.KV{Key: "tokenizer.ggml." + key + "_token_id", Value: gguf.Of(uint32(id))})
	}
	path := filepath.Join(t.TempDir(), "fills.gguf")
	if err := gguf.WriteFile(path, metadata, file.Tensors); err != nil {
		t.Fatal(err)
	}
	m := open(t, path, grove.Options{})
	behind := "() {\n}\n"
	r := grove.Request{Prompt: "package main\n\nfunc ma", Suffix: &behind, HealExact: true, MaxTokens: 5, Sampling: grove.Sampling{Temperature: 1}}
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	begin, err := m.Tokenize("", true, true)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(ids []token.ID, part string) []token.ID {
		ids, err := text.Encode(ids, part, tokenizer.Options{Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	const left = "package main\n\nfunc"
	want := append(encode(append(encode(append(begin, prefix), left), suffix), behind), middle)
	if d := cmp.Diff(want, g.Prompt()); d != "" {
		t.Fatalf("the prompt (-want +got):\n%s", d)
	}
	words, err := bytewise.New(text, m.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSequence(t.Context(), grove.Request{PromptIDs: want})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := words.New(bytewise.NewTree(s), nil)
	for _, b := range []byte(r.Prompt[len(left):]) {
		if err := v.Push(b); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, m, r, v)
}

// expect draws many answers to a request, and compares how often bytes begin them with the distribution of a view. Bytes that are no ASCII count as
// one: a random model writes characters that are not whole, which the text shows as U+FFFD.
func expect(t *testing.T, m *grove.Model, r grove.Request, v interface {
	Next(context.Context) (bytewise.Distribution, error)
}) {
	t.Helper()
	want, err := v.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seeds := uint64(200)
	if long {
		seeds = 400
	}
	counts := [bytewise.End + 1]float64{}
	for seed := range seeds {
		r.Seed = &seed
		a, _ := generate(t, m, r)
		next := bytewise.End
		if len(a.text()) > 0 {
			next = min(int(a.text()[0]), 128)
		}
		counts[next]++
	}
	for b := 129; b < bytewise.End; b++ {
		want.P[128] += want.P[b]
		want.P[b] = 0
	}
	for symbol, p := range want.P {
		if got := counts[symbol] / float64(seeds); math.Abs(got-p) > 4*math.Sqrt(p*(1-p)/float64(seeds))+.01 {
			t.Errorf("behind %q symbol %d comes with frequency %v, want %v", r.Prompt, symbol, got, p)
		}
	}
}

// TestHealExact: answers to a text that is cut at any byte are the same with drafts and without, begin with no part of the prompt, and the same seed gives the same.
func TestHealExact(t *testing.T) {
	m := openNano(t)
	seed := uint64(3)
	for at := 30; at < len(code); at += 7 {
		r := grove.Request{Prompt: code[:at], HealExact: true, MaxTokens: 12, Seed: &seed, Method: grove.MethodOff, Top: 2}
		if at%2 == 0 {
			r.Sampling = grove.Sampling{Temperature: .8, TopP: .9}
		}
		want, _ := generate(t, m, r)
		for _, method := range []string{"auto", "lookup", "recycle"} {
			r.Method = method
			if got, _ := generate(t, m, r); !cmp.Equal(want, got, sameBits) {
				t.Errorf("%q with method %s (-want +got):\n%s", r.Prompt, method, cmp.Diff(want, got, sameBits))
			}
		}
		all := ""
		for _, tok := range want.Tokens {
			all += tok.Text
		}
		if all != want.text() {
			t.Errorf("%q: the tokens' texts are %q, the answer %q", r.Prompt, all, want.text())
		}
	}
	m = openGopher(t)
	for prompt, want := range map[string]string{"package main\n\nfunc mai": "n() {", "package main\n\nimport (\n\t\"fm": "t\"", "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Pri": "ntf("} {
		if got, _ := generate(t, m, grove.Request{Prompt: prompt, HealExact: true, MaxTokens: 12}); !strings.HasPrefix(got.text(), want) {
			t.Errorf("%q goes on with %q, want %q", prompt, got.text(), want)
		}
	}
	if l := m.Load(); l.Open != 0 || l.Pages.Used != 0 {
		t.Errorf("behind the answers there are %+v", l)
	}
}

// TestHealExactRefused expects requests whose end cannot be healed exactly to be refused by name.
func TestHealExactRefused(t *testing.T) {
	m := openNano(t)
	for want, r := range map[string]grove.Request{
		"the prompt is tokens": {PromptIDs: []token.ID{5}},
		"see what is before":   {Prompt: "func ma", Prefix: true},
	} {
		option := new(grove.OptionError)
		r.HealExact = true
		if _, err := m.Generate(t.Context(), r); !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestHealExactMean cuts Go code at every byte and compares the probability of the bytes behind the cut: by the prompt's own tokens, by those that Heal leaves, and by
// the exact distribution, which is the best in the mean.
func TestHealExactMean(t *testing.T) {
	m := openGopher(t)
	file, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	text, err := tokenizer.FromGGUF(file)
	if err != nil {
		t.Fatal(err)
	}
	words, err := bytewise.New(text, m.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	// behind returns the logarithm of the probability of bytes behind tokens of a prompt, whether a tokenizer writes the two so or not.
	behind := func(ids []token.ID, rest string) float64 {
		s, err := m.NewSequence(t.Context(), grove.Request{PromptIDs: ids})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		v := words.New(bytewise.NewTree(s), nil)
		for _, b := range []byte(rest) {
			if err := v.Push(b); err != nil {
				t.Fatal(err)
			}
		}
		p, err := v.LogProb(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const bytes = 8 // that are compared
	begin, err := m.Tokenize("", true, true)
	if err != nil {
		t.Fatal(err)
	}
	exactly, done := viewBehind(t, m, grove.Request{PromptIDs: begin})
	defer done()
	logs := []float64{0} // of the text up to each byte
	for _, b := range []byte(code) {
		if err := exactly.Push(b); err != nil {
			t.Fatal(err)
		}
		p, err := exactly.LogProb(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, p)
	}
	healer, err := constrain.NewVocabulary(text, m.Vocabulary(), sample.Thinking{})
	if err != nil {
		t.Fatal(err)
	}
	var plain, healed, exact, n float64
	for at := 40; at+bytes < len(code); at++ {
		ids, err := m.Tokenize(code[:at], true, true)
		if err != nil {
			t.Fatal(err)
		}
		rest := code[at : at+bytes]
		left, head := healer.Heal(ids)
		plain += behind(ids, rest)
		healed += behind(ids[:left], string(head)+rest) - behind(ids[:left], string(head))
		exact += logs[at+bytes] - logs[at]
		n += bytes
	}
	t.Logf("%v bytes behind cuts; nats a byte: plain %.4f, heal %.4f, exact %.4f", n, plain/n, healed/n, exact/n)
	if exact <= plain || exact <= healed {
		t.Error("the exact distribution is not the best")
	}
}

// BenchmarkHeal reports how often the greedy answer to a Go program that is cut at any byte goes on with its next six bytes, with each way to heal the cut.
func BenchmarkHeal(b *testing.B) {
	m, err := grove.Open(gopher.Name, threaded(grove.Options{Forget: true}))
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	right, cuts := [3]float64{}, 0.0
	for b.Loop() {
		for at := 20; at+6 <= len(code); at++ {
			cuts++
			for i, r := range []grove.Request{{}, {Heal: true}, {HealExact: true}} {
				r.Prompt, r.MaxTokens = code[:at], 8
				g, err := m.Generate(b.Context(), r)
				if err != nil {
					b.Fatal(err)
				}
				text, err := g.Text()
				if err != nil {
					b.Fatal(err)
				}
				if strings.HasPrefix(text, code[at:at+6]) {
					right[i]++
				}
			}
		}
	}
	for i, name := range []string{"plain", "heal", "exact"} {
		b.ReportMetric(100*right[i]/cuts, name+"-%")
	}
}
