package front_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/gopher"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// adapterOf writes a random adapter of a model inside the program, and returns its path.
func adapterOf(t *testing.T, name string, seed uint64, invocation []int32) string {
	t.Helper()
	base, err := gguf.Parse(gopher.Named(name))
	if err != nil {
		t.Fatal(err)
	}
	picks := func(name string) bool { return strings.Contains(name, "attn_q") || strings.Contains(name, "ffn_down") }
	metadata, tensors, err := synthetic.Adapter(base, seed, 8, tensor.F32, picks, invocation)
	path := filepath.Join(t.TempDir(), fmt.Sprintf("lora-%d.gguf", seed))
	if err == nil {
		err = gguf.WriteFile(path, metadata, tensors)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// adapted asks for a text longer than a page with adapters.
func adapted(list ...grove.AdapterScale) grove.Request {
	r := grove.Request{Prompt: strings.Repeat("func main() {\n\treturn 1\n}\n", 20), MaxTokens: 12, Adapters: list, Method: grove.MethodOff}
	if r.Adapters == nil {
		r.Adapters = []grove.AdapterScale{}
	}
	return r
}

// scored is a token and the bits of its probability.
type scored struct {
	ID      int32
	Logprob float32
}

func tokensOf(t *testing.T, m *grove.Model, r grove.Request) (all []scored) {
	t.Helper()
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Error(err)
		return nil
	}
	for d, err := range g.Tokens() {
		if err != nil {
			t.Error(err)
		}
		all = append(all, scored{int32(d.ID), d.Logprob})
	}
	return all
}

// TestAdapters runs requests with several sets of adapters, one after the other and together, drafting and not: each has the tokens and
// probabilities that it has in a model of its own, whatever others computed before.
func TestAdapters(t *testing.T) {
	one, two := adapterOf(t, gopher.Name, 1, nil), adapterOf(t, gopher.Name, 2, nil)
	files := []grove.AdapterFile{{Path: one}, {Path: two, Name: "two"}}
	sets := [][]grove.AdapterScale{
		nil, {{ID: 0, Scale: 1}}, {{Name: "two", Scale: 0.5}}, {{ID: 1, Scale: -1}, {ID: 0, Scale: 0.5}}, {{ID: 0, Scale: 0.5}, {ID: 1, Scale: -1}},
	}
	var want [][]scored
	for i, set := range sets {
		want = append(want, tokensOf(t, open(t, gopher.Name, grove.Options{Adapters: files}), adapted(set...)))
		for j := range i {
			if i < 4 && cmp.Equal(want[i], want[j]) {
				t.Errorf("sets %d and %d give one answer", j, i)
			}
		}
	}
	plain := open(t, gopher.Name, grove.Options{})
	if diff := cmp.Diff(want[0], tokensOf(t, plain, adapted())); diff != "" {
		t.Errorf("a model without adapters, and one whose request asks for none:\n%s", diff)
	}
	m := open(t, gopher.Name, grove.Options{Adapters: files})
	for round := range 2 {
		for i, set := range sets {
			r := adapted(set...)
			if round == 1 {
				r.Method = "lookup,recycle,swift"
			}
			if diff := cmp.Diff(want[i], tokensOf(t, m, r)); diff != "" {
				t.Errorf("round %d, set %d:\n%s", round, i, diff)
			}
		}
	}
	var all sync.WaitGroup
	for i, set := range sets {
		all.Go(func() {
			if diff := cmp.Diff(want[i], tokensOf(t, m, adapted(set...))); diff != "" {
				t.Errorf("beside others, set %d:\n%s", i, diff)
			}
		})
	}
	all.Wait()
}

// TestAdaptersChange opens, scales and closes adapters while the model is in use, and refuses what makes no sense by name.
func TestAdaptersChange(t *testing.T) {
	one := adapterOf(t, gopher.Name, 1, nil)
	m := open(t, gopher.Name, grove.Options{})
	r := adapted()
	r.Adapters = nil // as the model says
	bare := tokensOf(t, m, r)
	a, err := m.LoadAdapter(grove.AdapterFile{Path: one, Name: "one", Scale: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a.ID != 0 || a.Rank != 8 || a.Pairs == 0 || a.Bytes == 0 {
		t.Errorf("the adapter is %+v", a)
	}
	with := tokensOf(t, m, r)
	if cmp.Equal(bare, with) {
		t.Error("the adapter changes nothing")
	}
	if err := m.ScaleAdapters(nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(bare, tokensOf(t, m, r)); diff != "" {
		t.Errorf("with scale 0:\n%s", diff)
	}
	if err := m.ScaleAdapters([]grove.AdapterScale{{ID: 0, Scale: 1}}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(with, tokensOf(t, m, r)); diff != "" {
		t.Errorf("with scale 1 again:\n%s", diff)
	}
	for name, err := range map[string]error{
		"a name that is taken": second(m.LoadAdapter(grove.AdapterFile{Path: one, Name: "one"})),
		"an unknown number":    m.ScaleAdapters([]grove.AdapterScale{{ID: 7, Scale: 1}}),
		"an unknown name":      m.UnloadAdapter("two"),
	} {
		if !errors.Is(err, grove.ErrAdapter) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var option *grove.OptionError
	for name, err := range map[string]error{
		"another base":  second(m.LoadAdapter(grove.AdapterFile{Path: adapterOf(t, gopher.NanoName, 3, nil)})),
		"an odd scale":  second(m.LoadAdapter(grove.AdapterFile{Path: one, Name: "x", Scale: 1e30})),
		"asked twice":   second(m.Generate(t.Context(), adapted(grove.AdapterScale{Scale: 1}, grove.AdapterScale{Name: "one", Scale: 2}))),
		"no such file":  second(m.LoadAdapter(grove.AdapterFile{Path: one + "x"})),
		"a huge factor": m.ScaleAdapters([]grove.AdapterScale{{ID: 0, Scale: 1e9}}),
	} {
		if !errors.As(err, &option) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.UnloadAdapter("one"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(bare, tokensOf(t, m, r)); diff != "" {
		t.Errorf("without the adapter:\n%s", diff)
	}
}

func second[T any](_ T, err error) error { return err }

// TestAdapterSessions: a session that was computed with an adapter is refused without it, and with another scale.
func TestAdapterSessions(t *testing.T) {
	m := open(t, gopher.Name, grove.Options{Adapters: []grove.AdapterFile{{Path: adapterOf(t, gopher.Name, 1, nil)}}})
	session := filepath.Join(t.TempDir(), "session")
	ask := func(scale float64) ([]scored, error) {
		r := adapted(grove.AdapterScale{Scale: scale})
		r.Session = session
		g, err := m.Generate(t.Context(), r)
		if err != nil {
			return nil, err
		}
		var all []scored
		for d, err := range g.Tokens() {
			if err != nil {
				return nil, err
			}
			all = append(all, scored{int32(d.ID), d.Logprob})
		}
		return all, nil
	}
	first, err := ask(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, scale := range []float64{0, 0.5} {
		if _, err := ask(scale); !errors.Is(err, grove.ErrSessionFile) {
			t.Errorf("scale %v: %v", scale, err)
		}
	}
	again, err := ask(1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("from the session:\n%s", diff)
	}
}

// TestActivatedAdapter: an adapter with an invocation works from its last place in the prompt on. What comes before is shared with texts
// without adapters, and a prompt without the invocation is answered as by the model.
func TestActivatedAdapter(t *testing.T) {
	const call = "// call\n"
	m := open(t, gopher.Name, grove.Options{})
	ids, err := m.Tokenize(call, false, false)
	if err != nil {
		t.Fatal(err)
	}
	var invocation []int32
	for _, id := range ids {
		invocation = append(invocation, int32(id))
	}
	if _, err := m.LoadAdapter(grove.AdapterFile{Path: adapterOf(t, gopher.Name, 1, invocation)}); err != nil {
		t.Fatal(err)
	}
	before, err := m.Tokenize(adapted().Prompt, true, false)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(called bool, list ...grove.AdapterScale) ([]scored, grove.Stats) {
		r := adapted(list...)
		r.Prompt, r.PromptIDs = "", before
		if called {
			r.PromptIDs = append(before[:len(before):len(before)], ids...)
		}
		g, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var all []scored
		for d, err := range g.Tokens() {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, scored{int32(d.ID), d.Logprob})
		}
		return all, g.Stats()
	}
	on := grove.AdapterScale{Scale: 1}
	bare, _ := ask(false)
	if got, _ := ask(false, on); !cmp.Equal(bare, got) {
		t.Error("the adapter works in a prompt without its invocation")
	}
	called, _ := ask(true)
	got, st := ask(true, on)
	if cmp.Equal(called, got) {
		t.Error("the adapter does not work behind its invocation")
	}
	if st.ReusedTokens < grove.PageTokens {
		t.Errorf("%d tokens before the invocation were found in the cache", st.ReusedTokens)
	}
	again, _ := ask(true, on)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("from the cache:\n%s", diff)
	}
	if other, _ := ask(true); !cmp.Equal(called, other) {
		t.Error("the model's own answer changed")
	}
}
