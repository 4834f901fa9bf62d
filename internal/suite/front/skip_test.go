package front_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
)

// TestSkipLayers: an answer whose tokens skip layers is labelled, and where they skip none it is that of plain decoding.
func TestSkipLayers(t *testing.T) {
	m := open(t, "gopher-target", grove.Options{Parallel: 1, Forget: true})
	r := request(2)
	r.Method = grove.MethodOff
	want, _ := generate(t, m, r)
	for _, c := range []struct {
		skips string
		same  bool
	}{{"to=4,over=3", true}, {"from=4,to=1,first=1,over=8", false}, {"to=2,first=2,over=1", false}} {
		for _, method := range []string{"", grove.MethodAuto, grove.MethodOff} {
			r.SkipLayers, r.Method = c.skips, method
			got, stats := generate(t, m, r)
			if stats.Grade != grove.Lossy || stats.Drafting.Rounds != 0 {
				t.Errorf("%s, method %q: %+v", c.skips, method, stats)
			}
			if same := cmp.Equal(got, want); same != c.same {
				t.Errorf("%s, method %q: %v; %v of all layers", c.skips, method, got, want)
			}
		}
	}
}

// TestSkipLayersConversation: the next turn of a conversation is as one computed anew, whose prompt runs all layers.
func TestSkipLayersConversation(t *testing.T) {
	seed := uint64(7)
	r := grove.Request{MaxTokens: 12, Seed: &seed, SkipLayers: "to=1,first=0,over=3"}
	m := talker(t, grove.Options{Parallel: 2})
	c := m.NewConversation()
	defer c.Close()
	messages := []grove.Message{{Role: "user", Content: "func main"}}
	for turn := range 3 {
		g, err := c.Chat(t.Context(), messages, grove.ChatOptions{}, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := answerOf(g)
		if err != nil {
			t.Fatal(err)
		}
		if g, err = talker(t, grove.Options{}).Chat(t.Context(), messages, grove.ChatOptions{}, r); err != nil {
			t.Fatal(err)
		}
		want, err := answerOf(g)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameBits); diff != "" {
			t.Errorf("turn %d differs from one computed anew:\n%s", turn, diff)
		}
		answer := ""
		for _, tok := range got.Tokens {
			answer += tok.Text
		}
		messages = append(messages, grove.Message{Role: "assistant", Content: answer}, grove.Message{Role: "user", Content: "and then"})
	}
}

// TestSkipLayersWrong: what cannot skip layers is refused by name.
func TestSkipLayersWrong(t *testing.T) {
	m := open(t, "gopher-target", grove.Options{Parallel: 2, Forget: true})
	for _, c := range []struct {
		r    grove.Request
		want string
	}{
		{grove.Request{SkipLayers: "6"}, `option "6" is not known`},
		{grove.Request{SkipLayers: "to=5"}, "to=5: it must be 1 to 4, the layers at the first place"},
		{grove.Request{SkipLayers: "to=2,first=3"}, "first=3: it must be 0 to 2"},
		{grove.Request{SkipLayers: "to=2", Method: "sam"}, "leave the method to auto or off"},
		{grove.Request{SkipLayers: "to=2", Search: "ffs,n=2"}, "beside a method or a search"},
	} {
		c.r.Prompt = "x"
		var option *grove.OptionError
		if _, err := m.Generate(t.Context(), c.r); !errors.As(err, &option) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
}

// TestSubstitutedLayers: an answer of whose tokens adapters stand for layers, by a period, is labelled, the same alone and beside others, with a session too, and that of plain decoding where the period is 1.
func TestSubstitutedLayers(t *testing.T) {
	const adapters = "../../../internal/gopher/testdata/substitutes/gopher-deep-lora-drop"
	o := grove.Options{Parallel: 1, Forget: true, SkipAdapters: adapters}
	m := open(t, "../../../internal/gopher/testdata/gopher-deep/gopher-deep.q8_0.gguf", o)
	r := request(2)
	r.Method = grove.MethodOff
	plain, _ := generate(t, m, r)
	r.SkipLayers = "period=4"
	want, stats := generate(t, m, r)
	if stats.Grade != grove.Lossy || stats.Drafting.Rounds != 0 || cmp.Equal(want, plain) {
		t.Errorf("%+v, %v", stats, want)
	}
	for _, c := range []struct {
		skips, session string
		want           answer
	}{{"period=1", "", plain}, {"", "", plain}, {"period=4", "", want}, {"period=4", t.TempDir() + "/s", want}} {
		for range 2 {
			r.SkipLayers, r.Session = c.skips, c.session
			if got, _ := generate(t, m, r); !cmp.Equal(got, c.want) {
				t.Errorf("%+v: %v", c, got)
			}
		}
	}
	var option *grove.OptionError
	for _, c := range []struct {
		r    grove.Request
		want string
	}{
		{grove.Request{SkipLayers: "period=0"}, "it must be 1 to 1024 places"},
		{grove.Request{SkipLayers: "period=4,to=3"}, "stands alone"},
		{grove.Request{SkipLayers: "period=4", Method: "sam"}, "leave the method to auto or off"},
	} {
		c.r.Prompt = "x"
		if _, err := m.Generate(t.Context(), c.r); !errors.As(err, &option) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
	if _, err := open(t, "gopher-nano", grove.Options{}).Generate(t.Context(), grove.Request{Prompt: "x", SkipLayers: "period=4"}); !errors.As(err, &option) || !strings.Contains(err.Error(), "--skip-adapters") {
		t.Errorf("without adapters: %v", err)
	}
	if _, err := grove.Open("gopher-target", o); !errors.As(err, &option) || !strings.Contains(err.Error(), adapters) {
		t.Errorf("adapters of another model: %v", err)
	}
}
