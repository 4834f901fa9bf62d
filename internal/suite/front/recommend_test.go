package front_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/weights/gguf"
)

// advised opens the smallest embedded model with other recommendations: keys of general.sampling and their values.
func advised(t *testing.T, values map[string]gguf.Value) *grove.Model {
	t.Helper()
	f, err := gguf.Parse(gopher.Named(gopher.NanoName))
	if err != nil {
		t.Fatal(err)
	}
	var metadata []gguf.KV
	for _, kv := range f.Metadata {
		if !strings.HasPrefix(kv.Key, "general.sampling.") {
			metadata = append(metadata, kv)
		}
	}
	for name, v := range values {
		metadata = append(metadata, gguf.KV{Key: "general.sampling." + name, Value: v})
	}
	var b strings.Builder
	if err := gguf.Write(&b, metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenBytes([]byte(b.String()), threaded(grove.Options{Forget: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestAdvice: what a file recommends becomes the model's defaults; the rest stays as it is.
func TestAdvice(t *testing.T) {
	type values map[string]gguf.Value
	plain := grove.DefaultSampling()
	with := func(change func(s *grove.Sampling)) grove.Sampling {
		s := plain
		change(&s)
		return s
	}
	for _, c := range []struct {
		name      string
		values    values
		sampling  grove.Sampling
		penalties grove.Penalties
		text      string
	}{
		{"nothing", nil, plain, grove.Penalties{}, ""},
		{"usual", values{"temp": gguf.Of(float32(0.6)), "top_k": gguf.Of(int32(20)), "top_p": gguf.Of(0.5), "min_p": gguf.Of(float32(0))},
			with(func(s *grove.Sampling) { s.Temperature, s.TopK, s.TopP, s.MinP = 0.6, 20, 0.5, 0 }), grove.Penalties{},
			"temperature 0.6, top-k 20, top-p 0.5, min-p 0"},
		{"integers", values{"temp": gguf.Of(uint8(1)), "top_k": gguf.Of(uint64(7))}, with(func(s *grove.Sampling) { s.Temperature, s.TopK = 1, 7 }), grove.Penalties{},
			"temperature 1, top-k 7"},
		{"penalties", values{"penalty_repeat": gguf.Of(float32(1.5))}, plain, grove.Penalties{Repeat: 1.5, RepeatWindow: 64, Window: 64}, "repeat penalty 1.5, of the last 64"},
		{"window", values{"penalty_repeat": gguf.Of(float32(1.5)), "penalty_last_n": gguf.Of(int32(-1))}, plain, grove.Penalties{Repeat: 1.5, RepeatWindow: -1, Window: -1},
			"repeat penalty 1.5, of the last -1"},
		{"no window", values{"penalty_repeat": gguf.Of(float32(1.5)), "penalty_last_n": gguf.Of(int32(0))}, plain, grove.Penalties{}, ""},
		{"XTC", values{"xtc_probability": gguf.Of(float32(0.5))}, with(func(s *grove.Sampling) { s.XTC = grove.XTC{Probability: 0.5, Threshold: 0.1} }), grove.Penalties{}, "XTC 0.5 at 0.1"},
		{"mirostat", values{"mirostat": gguf.Of(int32(2)), "mirostat_tau": gguf.Of(float32(4))},
			with(func(s *grove.Sampling) { s.Mirostat = grove.Mirostat{Version: 2, Tau: 4, Eta: 0.1} }), grove.Penalties{}, "mirostat 2 (4, 0.1)"},
		{"sequence", values{"sequence": gguf.Of("temperature;top_p")},
			with(func(s *grove.Sampling) { s.Order, s.TopK, s.MinP = grove.TemperFirst, 0, 0 }), grove.Penalties{}, "top-k 0, min-p 0, order temper-first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := advised(t, c.values)
			if d := cmp.Diff(c.sampling, m.DefaultSampling()); d != "" {
				t.Errorf("sampling (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.penalties, m.DefaultPenalties()); d != "" {
				t.Errorf("penalties (-want +got):\n%s", d)
			}
			if a := m.Info().Sampling; a.String() != c.text || a.Ignored != nil {
				t.Errorf("%q, ignored %q; want %q", a, a.Ignored, c.text)
			}
		})
	}
}

// TestAdviceIgnored: values that make no sense are not used, and named with the reason.
func TestAdviceIgnored(t *testing.T) {
	many := map[string]gguf.Value{}
	for i := range 100 {
		many["x"+strings.Repeat("y", i)] = gguf.Of(int32(1))
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		values map[string]gguf.Value
		want   string
	}{
		{"NaN", map[string]gguf.Value{"temp": gguf.Of(nan)}, "general.sampling.temp is NaN: temperature is NaN; it must be a number from 0 up"},
		{"negative", map[string]gguf.Value{"temp": gguf.Of(float32(-1))}, "general.sampling.temp is -1: temperature is -1; it must be a number from 0 up"},
		{"infinite", map[string]gguf.Value{"temp": gguf.Of(math.Inf(1))}, "general.sampling.temp is +Inf: temperature is +Inf; it must be a number from 0 up"},
		{"beyond", map[string]gguf.Value{"top_p": gguf.Of(float32(1.5))}, "general.sampling.top_p is 1.5: top-p is 1.5; it must be from 0 to 1 (0 or 1: off)"},
		{"a text", map[string]gguf.Value{"top_k": gguf.Of("40")}, "general.sampling.top_k is a string: it must be a number"},
		{"broken", map[string]gguf.Value{"top_k": gguf.Of(float32(1.5))}, "general.sampling.top_k is 1.5: it must be a whole number of 32 bits"},
		{"NaN tokens", map[string]gguf.Value{"top_k": gguf.Of(nan)}, "general.sampling.top_k is NaN: it must be a whole number of 32 bits"},
		{"huge", map[string]gguf.Value{"penalty_last_n": gguf.Of(uint64(1 << 63))}, "general.sampling.penalty_last_n is 9.223372036854776e+18: it must be a whole number of 32 bits"},
		{"window", map[string]gguf.Value{"penalty_last_n": gguf.Of(int32(-2))}, "general.sampling.penalty_last_n is -2: it must be -1 (all) or more"},
		{"order", map[string]gguf.Value{"sequence": gguf.Of("top_p;top_k")}, "general.sampling.sequence is top_p;top_k: the orders are penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature, " +
			"or penalties;dry;temperature;top_n_sigma;min_p;top_k;typ_p;top_p;xtc, or parts of them"},
		{"stage", map[string]gguf.Value{"sequence": gguf.Of("infill")}, "general.sampling.sequence is infill: the orders are"},
		{"no text", map[string]gguf.Value{"sequence": gguf.Of(int32(3))}, "general.sampling.sequence is a int32: it must be a text"},
		{"contradiction", map[string]gguf.Value{"mirostat": gguf.Of(int32(1)), "xtc_probability": gguf.Of(float32(0.5))},
			"general.sampling.mirostat is 1: mirostat replaces truncation and cannot go with XTC; turn one of them off"},
		{"unknown", map[string]gguf.Value{"dry_multiplier": gguf.Of(float32(1))}, "general.sampling.dry_multiplier is not known"},
		{"many", many, "84 further keys are not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := advised(t, c.values)
			ignored := m.Advice().Ignored
			if len(ignored) == 0 || !strings.HasPrefix(ignored[len(ignored)-1], c.want) || len(ignored) > 17 {
				t.Errorf("ignored: %q, want %q", ignored, c.want)
			}
			if err := m.DefaultSampling().Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}
