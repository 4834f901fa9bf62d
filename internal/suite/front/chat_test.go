package front_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/engine"
	"grove/internal/gopher"
	"grove/internal/text/chat"
	"grove/internal/weights/gguf"
)

// goTemplate makes questions comments and answers functions.
const goTemplate = `{% for m in messages %}{{ 'func' if m.role == 'assistant' else '// ' }}{{ m.content }}{{ eos_token }}
{% endfor %}{% if add_generation_prompt %}func{% endif %}`

// talker is the embedded model with a template.
func talker(t testing.TB, o grove.Options) *grove.Model {
	t.Helper()
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	metadata := append(f.Metadata[:len(f.Metadata):len(f.Metadata)], gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of(goTemplate)})
	if err := gguf.Write(&b, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenBytes(b.Bytes(), threaded(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestConversation: turns that go on from what is computed give the bits of turns that do not.
func TestConversation(t *testing.T) {
	m := talker(t, grove.Options{Parallel: 2})
	c := m.NewConversation()
	defer c.Close()
	seed := uint64(7)
	r := grove.Request{MaxTokens: 12, Seed: &seed}
	var messages []grove.Message
	say := func(text string) (kept int) {
		t.Helper()
		messages = append(messages, grove.Message{Role: "user", Content: text})
		g, err := c.Chat(t.Context(), messages, grove.ChatOptions{}, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := answerOf(g)
		if err != nil {
			t.Fatal(err)
		}
		fresh := talker(t, grove.Options{})
		g2, err := fresh.Chat(t.Context(), messages, grove.ChatOptions{}, r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := answerOf(g2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameBits); diff != "" {
			t.Errorf("turn %q differs from one computed anew:\n%s", text, diff)
		}
		answer := ""
		for _, tok := range got.Tokens {
			answer += tok.Text
		}
		messages = append(messages, grove.Message{Role: "assistant", Content: answer})
		return g.Stats().ReusedTokens
	}
	if kept := say("func main"); kept != 0 {
		t.Errorf("the first turn reused %d tokens", kept)
	}
	first := promptLen(t, m, messages[:1])
	if kept := say("and then"); kept < first {
		t.Errorf("the second turn reused %d tokens, and the first had %d", kept, first)
	}
	messages = messages[:2] // take a turn back
	say("or else")
	r.Sampling, seed = grove.DefaultSampling(), 8 // other draws need another sequence
	say("once more")
	say("and more")
	messages = nil
	if kept := say("quite another text"); kept != 0 {
		t.Errorf("another conversation reused %d tokens", kept)
	}
}

func promptLen(t *testing.T, m *grove.Model, messages []grove.Message) int {
	t.Helper()
	p, err := m.ApplyTemplate(messages, grove.ChatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(p.Tokens)
}

// TestConversationStopped goes on after an answer that was cut short.
func TestConversationStopped(t *testing.T) {
	m := talker(t, grove.Options{Parallel: 1})
	c := m.NewConversation()
	messages := []grove.Message{{Role: "user", Content: "func main"}}
	r := grove.Request{MaxTokens: 40}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, err := c.Chat(ctx, messages, grove.ChatOptions{}, r)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range g.Tokens() {
		if n++; n == 5 {
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if n >= r.MaxTokens { // the rest of a step may come, not the rest of the answer
		t.Errorf("%d tokens came after the end", n-5)
	}
	g, err = c.Chat(t.Context(), messages, grove.ChatOptions{}, r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := answerOf(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	g, err = m.Chat(t.Context(), messages, grove.ChatOptions{}, r)
	if err != nil {
		t.Fatal(err)
	}
	want, err := answerOf(g)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, sameBits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestChatRefused: what has no template, or no room.
func TestChatRefused(t *testing.T) {
	plain, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	hello := []grove.Message{{Role: "user", Content: "hello"}}
	if _, err := plain.ApplyTemplate(hello, grove.ChatOptions{}); !errors.Is(err, chat.ErrNone) {
		t.Errorf("without a template: %v", err)
	}
	tmpl, err := plain.Templates().New("test", "<<{{ messages[0].content }}>>")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := plain.ApplyTemplate(hello, grove.ChatOptions{Template: tmpl}); err != nil || p.Text != "<<hello>>" {
		t.Errorf("with a template: %q, %v", p.Text, err)
	}
	m := talker(t, grove.Options{Context: 60})
	long := []grove.Message{{Role: "user", Content: strings.Repeat("word ", 100)}}
	_, err = m.Chat(t.Context(), long, grove.ChatOptions{}, grove.Request{})
	var full *grove.PromptError
	if !errors.Is(err, engine.ErrContext) || !errors.As(err, &full) || full.Context != 60 || full.Tokens < 100 || !strings.Contains(err.Error(), "tokens and the context holds 60") {
		t.Errorf("without room: %v", err)
	}
}

// TestSessionUnwritable: a session that cannot be written, or is the model's file, is an error before the answer. Where its
// place goes meanwhile, it is one behind the answer, and nobody's when the loop was left.
func TestSessionUnwritable(t *testing.T) {
	m, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, leave := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "folder")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		g, err := m.Generate(t.Context(), grove.Request{Prompt: "func", MaxTokens: 3, Session: filepath.Join(dir, "session")})
		if err != nil {
			t.Fatal(err)
		}
		tokens, failed := 0, error(nil)
		for _, err := range g.Tokens() {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if failed = err; err == nil {
				tokens++
			}
			if leave {
				break
			}
		}
		if want := map[bool]int{false: 3, true: 1}[leave]; tokens != want || errors.Is(failed, engine.ErrSession) == leave {
			t.Errorf("left %v: %d tokens, %v", leave, tokens, failed)
		}
	}
	path := onDisk(t)
	if m, err = grove.Open(path, threaded(grove.Options{})); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, session := range []string{path, filepath.Dir(path), filepath.Join(path, "session"), filepath.Join(t.TempDir(), "none", "session")} {
		g, err := m.Generate(t.Context(), grove.Request{Prompt: "func", MaxTokens: 3, Session: session})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := g.Text(); text != "" || !errors.Is(err, grove.ErrSession) || !strings.Contains(err.Error(), "Request.Session") {
			t.Errorf("session %s: %q, %v", session, text, err)
		}
	}
}

// TestSessionForged: a file whose pages are not numbers is named as the fault. It stays as it is, and so does one whose request ends
// before its answer begins; nobody else's answer changes.
func TestSessionForged(t *testing.T) {
	m, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{CacheType: "f32"}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	path := filepath.Join(t.TempDir(), "session")
	prompt := strings.Repeat("func f(x int) int { return x }\n", 16)
	ask := func(ctx context.Context, m *grove.Model, session string) (string, error) {
		g, err := m.Generate(ctx, grove.Request{Prompt: prompt, MaxTokens: 5, Session: session})
		if err != nil {
			t.Fatal(err)
		}
		return g.Text()
	}
	want, err := ask(t.Context(), m, path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(file) - 4096; i < len(file)-sha256.Size; i++ {
		file[i] = 0xff
	}
	sum := sha256.Sum256(file[:len(file)-sha256.Size])
	file = append(file[:len(file)-sha256.Size], sum[:]...)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := grove.OpenBytes(gopher.Model(), threaded(grove.Options{CacheType: "f32"}))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if text, err := ask(t.Context(), other, path); text != "" || !errors.Is(err, grove.ErrSessionFile) || !errors.Is(err, grove.ErrNotFinite) {
		t.Errorf("a forged session: %q, %v", text, err)
	}
	if text, err := ask(t.Context(), other, ""); err != nil || text != want {
		t.Errorf("beside a forged session: %q, want %q: %v", text, want, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, err := other.Generate(ctx, grove.Request{Prompt: prompt, MaxTokens: 5, Session: path})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := g.Text(); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, file) {
		t.Errorf("the session has changed: %v", err)
	}
}
