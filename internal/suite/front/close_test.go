package front_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"grove"
	"grove/internal/gopher"
)

// onDisk writes the smallest embedded model to a file, whose bytes are mapped and so gone behind Close.
func onDisk(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nano.gguf")
	if err := os.WriteFile(path, gopher.Named(gopher.NanoName), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// verbs are the calls that compute or begin an answer.
func verbs(m *grove.Model) map[string]func(ctx context.Context) error {
	text := func(g *grove.Generation, err error) error {
		if err == nil {
			_, err = g.Text()
		}
		return err
	}
	return map[string]func(ctx context.Context) error{
		"generate": func(ctx context.Context) error {
			return text(m.Generate(ctx, grove.Request{Prompt: "func main() {", MaxTokens: 40, Sampling: grove.DefaultSampling()}))
		},
		"chat": func(ctx context.Context) error {
			c := m.NewConversation()
			err := text(c.Chat(ctx, []grove.Message{{Role: "user", Content: "func main() {"}}, grove.ChatOptions{}, grove.Request{MaxTokens: 5}))
			return errors.Join(err, c.Close())
		},
		"sequence": func(ctx context.Context) error {
			s, err := m.NewSequence(ctx, grove.Request{Prompt: "func"})
			if err != nil {
				return err
			}
			for err == nil && s.Len() < 20 {
				_, err = s.Next(ctx)
			}
			return errors.Join(err, s.Close())
		},
		"embed": func(ctx context.Context) error {
			_, err := m.Embed(ctx, "func main() {", grove.EmbedOptions{})
			return err
		},
		"logits": func(ctx context.Context) error {
			return m.Logits(ctx, ids("abcdefgh"), func([]float32) error { return nil })
		},
		"tune": func(ctx context.Context) error {
			_, _, err := m.Tune(ctx)
			return err
		},
	}
}

// TestClose closes models while all verbs run: they end, soon, and all later ones are refused, however the weights are held.
func TestClose(t *testing.T) {
	for _, o := range []grove.Options{{NoRepack: true}, {}, {NoRepack: true, Draft: gopher.NanoName, Eager: true}} {
		t.Run(fmt.Sprintf("NoRepack=%v,Draft=%q", o.NoRepack, o.Draft), func(t *testing.T) {
			o.Threads, o.Forget, o.ChatTemplate = 2, true, "chatml"
			m := open(t, onDisk(t), o)
			held, err := m.NewSequence(t.Context(), grove.Request{Prompt: "func main"})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			var calls atomic.Int32
			for name, call := range verbs(m) {
				all.Go(func() {
					for {
						err := call(t.Context())
						if errors.Is(err, grove.ErrClosed) {
							return
						}
						if calls.Add(1); err != nil {
							t.Errorf("%s: %v", name, err)
							return
						}
					}
				})
			}
			for calls.Load() < 8 {
				time.Sleep(time.Millisecond)
			}
			for range 2 {
				all.Go(func() {
					if err := m.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for name, call := range verbs(m) {
				if err := call(t.Context()); !errors.Is(err, grove.ErrClosed) || !strings.Contains(err.Error(), "model is closed") {
					t.Errorf("%s of a closed model: %v", name, err)
				}
			}
			if _, err := held.Next(t.Context()); !errors.Is(err, grove.ErrClosed) {
				t.Errorf("a sequence of a closed model: %v", err)
			}
			if err := errors.Join(held.Close(), m.Close()); err != nil {
				t.Error(err)
			}
			tokens, err := m.Tokenize("func main() { return nil }", true, false)
			if text, err2 := m.Detokenize(tokens); err != nil || err2 != nil || !strings.Contains(text, "return nil") || m.Info().Context == 0 {
				t.Errorf("what needs no computing: %q, %v, %v", text, err, err2)
			}
		})
	}
}

// TestCloseBetweenTokens closes a model in the loop over its tokens.
func TestCloseBetweenTokens(t *testing.T) {
	m := open(t, onDisk(t), grove.Options{NoRepack: true, Forget: true})
	g, err := m.Generate(t.Context(), grove.Request{Prompt: "func main() {", MaxTokens: 50, Session: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range g.Tokens() {
		if n++; err == nil && n == 3 {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(err, grove.ErrClosed) || n != 4 {
		t.Errorf("the answer ends after %d tokens with %v", n-1, err)
	}
}

// TestQueueDefault: calls beyond Options.Parallel wait, as many as come, also behind answers and conversations that pause.
func TestQueueDefault(t *testing.T) {
	m := open(t, gopher.NanoName, grove.Options{Forget: true})
	if q := m.Info().Queue; q != grove.Unbounded {
		t.Errorf("%d may wait", q)
	}
	paused, err := m.Generate(t.Context(), grove.Request{Prompt: "func", MaxTokens: 3})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	tokens := 0
	for _, err := range paused.Tokens() {
		if tokens++; err != nil {
			t.Fatal(err)
		}
		if tokens > 1 {
			continue
		}
		for i := range 12 { // three of which stay open, as idle conversations do
			all.Go(func() {
				s, err := m.NewSequence(t.Context(), grove.Request{Prompt: "func main() {"})
				if err != nil {
					t.Error(err)
					return
				}
				if i >= 3 {
					defer s.Close()
				}
				if _, err := s.Next(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		inner, err := m.Generate(t.Context(), grove.Request{Prompt: "func", MaxTokens: 3})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inner.Text(); err != nil {
			t.Error(err)
		}
	}
	if tokens != 3 {
		t.Errorf("%d tokens of the answer that paused", tokens)
	}
}

// TestQueueBound: a bound is an option, and the error of a call beyond it names the option.
func TestQueueBound(t *testing.T) {
	for _, c := range []struct {
		o    grove.Options
		want string
	}{
		{grove.Options{Parallel: 1, Queue: grove.NoQueue}, "1 answers run and 0 wait"},
		{grove.Options{Parallel: 2, Queue: 1}, "2 answers run and 1 wait"},
		{grove.Options{Queue: 3}, "4 answers run and 3 wait"},
	} {
		t.Run(c.want, func(t *testing.T) {
			c.o.Forget, c.o.ChatTemplate = true, "chatml"
			m := open(t, gopher.NanoName, c.o)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			stays := make(chan struct{})
			most := m.Info().Parallel + m.Info().Queue
			for i := range most {
				all.Go(func() {
					err := m.Logits(ctx, ids("abcdefgh"), func([]float32) error {
						<-stays
						return errors.New("enough")
					})
					if err == nil {
						t.Errorf("call %d: no error", i)
					}
				})
			}
			for m.Load().Open < most {
				time.Sleep(time.Millisecond)
			}
			for name, call := range verbs(m) {
				if name == "tune" {
					continue // is needed before the first draft, and has a place of its own
				}
				err := call(ctx)
				if !errors.Is(err, grove.ErrBusy) || !strings.Contains(err.Error(), "grove: Options.Queue: "+c.want) {
					t.Errorf("%s: %v", name, err)
				}
			}
			cancel()
			close(stays)
			all.Wait()
		})
	}
	for _, n := range []int{-2, grove.Unbounded + 1, -1 << 31} {
		var option *grove.OptionError
		if _, err := grove.Open(gopher.NanoName, threaded(grove.Options{Queue: n})); !errors.As(err, &option) || !strings.Contains(err.Error(), "Options.Queue") {
			t.Errorf("a queue of %d: %v", n, err)
		}
	}
}
