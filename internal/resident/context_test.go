package resident

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"grove/internal/gopher"
	"grove/internal/machine"
	"grove/internal/weights/gguf"
)

// long is the gopher model as if it had been trained for context tokens.
func long(t *testing.T, context uint32) *gguf.File {
	t.Helper()
	f, err := OpenFile(gopher.Name)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(f.Metadata, func(kv gguf.KV) bool { return strings.HasSuffix(kv.Key, ".context_length") })
	f.Metadata[i].Value = gguf.Of(context)
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	f, err = gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestContext opens a model trained for long texts with and without a bound of memory: the context is the model's own where its cache takes half of the
// memory at most, else the most that does, and up to 4096 tokens what fits.
func TestContext(t *testing.T) {
	const own = 1 << 16
	open := func(o Options) (*Model, string) {
		t.Helper()
		var log bytes.Buffer
		o.Threads, o.Forget = 1, true
		m, err := Open(long(t, own), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		m.LogContext(slog.New(slog.NewTextHandler(&log, nil)))
		return m, log.String()
	}
	m, log := open(Options{Parallel: 1})
	if m.Engine.Context() != own || !strings.Contains(log, "level=INFO msg=context tokens=65536 trained=65536") {
		t.Fatalf("%d tokens, %s", m.Engine.Context(), log)
	}
	weights, cache := uint64(m.Model.Info().Bytes), uint64(m.Engine.CacheBytes())
	few, _ := open(Options{Parallel: 1, Context: 4096})
	least := uint64(few.Engine.CacheBytes())
	for _, c := range []struct {
		name     string
		parallel int
		room     uint64 // besides the weights
		low      int    // the least context that is right
		high     int
	}{
		{"twice the cache", 1, 2 * cache, own, own}, {"a byte less", 1, 2*cache - 1, own - 1024, own - 1}, {"two texts", 2, 2 * cache, own/2 - 1024, own/2 + 1024},
		{"what 4096 need", 1, least, 4096, 4096}, {"twice that", 1, 2 * least, 4096, 4096}, {"less than that", 1, least - 1, 2048, 4095},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, log := open(Options{Parallel: c.parallel, Memory: weights + c.room})
			if got := m.Engine.Context(); got < c.low || got > c.high {
				t.Errorf("%d tokens, want %d to %d", got, c.low, c.high)
			}
			if uint64(m.Engine.CacheBytes()) > c.room {
				t.Errorf("the cache takes %d bytes of %d", m.Engine.CacheBytes(), c.room)
			}
			if short := m.Engine.Context() < own; short != strings.Contains(log, "level=WARN") || short != strings.Contains(log, "reason=") {
				t.Errorf("logged: %s", log)
			}
		})
	}
	if machine.Memory() > 0 {
		before := taken.Load()
		m.Close()
		if got := before - taken.Load(); got != weights+cache {
			t.Errorf("a closed model gives %d bytes back, want %d", got, weights+cache)
		}
	}
}

// TestContextAbove asks for more than a model was trained for: the error names it.
func TestContextAbove(t *testing.T) {
	_, err := Open(long(t, 1000), Options{Threads: 1, Parallel: 1, Context: 1001})
	if err == nil || !strings.Contains(err.Error(), "a context of 1001 tokens; the model was trained for 1000 (gopher") {
		t.Error(err)
	}
}
