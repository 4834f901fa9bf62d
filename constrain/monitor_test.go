package constrain

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// monitorWords is a vocabulary of texts; the last token ends.
func monitorWords(t testing.TB, texts ...string) *vocab.Vocabulary {
	var tokens []vocab.Token
	for i, text := range texts {
		tokens = append(tokens, vocab.Token{ID: token.ID(i), Bytes: []byte(text), Kind: vocab.Ordinary})
	}
	tokens = append(tokens, vocab.Token{ID: token.ID(len(texts)), Kind: vocab.End})
	v, err := vocab.New(tokens, len(texts)+1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// after returns the state behind tokens.
func after(s *MonitorStage, v *vocab.Vocabulary, texts []string) sample.StageState {
	at := s.Start(nil)
	for _, text := range texts {
		for id := range token.ID(v.Size()) {
			if string(v.Bytes(id)) == text {
				at = s.Next(at, id)
				break
			}
		}
	}
	return at
}

// legal returns the texts of the tokens that may follow, by Apply, and holds Allows to it.
func legal(t *testing.T, s *MonitorStage, v *vocab.Vocabulary, at sample.StageState) (all []string) {
	t.Helper()
	logits := make([]float32, v.Size())
	s.Apply(at, logits)
	for id := range token.ID(v.Size()) {
		ok := !math.IsInf(float64(logits[id]), -1)
		if ok != s.Allows(at, id) {
			t.Errorf("token %q is in the mask: %v, and is allowed: %v", v.Bytes(id), ok, !ok)
		}
		switch {
		case ok && v.Kind(id) == vocab.End:
			all = append(all, "END")
		case ok:
			all = append(all, string(v.Bytes(id)))
		}
	}
	return all
}

// TestMonitorWorked has the numbers of the paper's rule: the list is {getName, getAge}.
func TestMonitorWorked(t *testing.T) {
	texts := []string{"x", ".", "get", "g", "getAge(", "getX", "Name", "Age", "N", "(", "getName", "getNames", ".get", "x.getX", "x.getAge", "."}
	v := monitorWords(t, texts...)
	s := NewMonitor(v, &MonitorWords{Trigger: "x.", List: []string{"getName", "getAge"}})
	for _, tt := range []struct {
		text string // tokens with blanks between
		want string
	}{
		{"x .", "get g getAge( getName"},
		{"x . get", "Name Age N"},
		{"x . getName", ". ( .get . END"},
		{"x . get Age", ". ( .get . END"},
		{"x .get Name (", "x . get g getAge( getX Name Age N ( getName getNames .get x.getAge . END"},
		{"x . getAge(", "x . get g getAge( getX Name Age N ( getName getNames .get x.getAge . END"},
		{"x", "x . get g getAge( getX Name Age N ( getName getNames .get x.getAge . END"},
	} {
		got := legal(t, s, v, after(s, v, strings.Fields(tt.text)))
		if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" {
			t.Errorf("behind %q:\n%s", tt.text, diff)
		}
	}
	at := after(s, v, []string{"x", ".", "get"})
	if diff := cmp.Diff([]string{"Age", "Name"}, s.nodes[at].bound.left()); diff != "" {
		t.Errorf("behind get the list is\n%s", diff)
	}
	empty := NewMonitor(v, &MonitorWords{Trigger: "x."})
	if got := legal(t, empty, v, after(empty, v, []string{"x", "."})); len(got) != v.Size() {
		t.Errorf("with an empty list %q may follow", got)
	}
}

// TestBound compares bounds with the rule read off the list: a token may follow if it begins a text of the list, or a
// text of the list begins it and a byte that ends names stands behind.
func TestBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(alphabet string, most int) string {
		var b strings.Builder
		for range 1 + rng.IntN(most) {
			b.WriteByte(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 2000 {
		var list []string
		for range 1 + rng.IntN(5) {
			list = append(list, text("ab", 4))
		}
		token := text("ab(", 6)
		want := slices.ContainsFunc(list, func(s string) bool {
			return strings.HasPrefix(s, token) || strings.HasPrefix(token, s) && token[len(s)] == '('
		})
		b, got := newBound(list), true
		for i := 0; i < len(token) && got; i++ {
			b, got = b.step(token[i], func(b byte) bool { return !isName(b) })
		}
		if got != want {
			t.Fatalf("%q behind %q is legal: %v, want %v", token, list, got, want)
		}
	}
}

// TestForkKeep goes on in a fork and behind Keep.
func TestForkKeep(t *testing.T) {
	v := monitorWords(t, "x.", "ge", "t", "q")
	s := NewMonitor(v, &MonitorWords{Trigger: "x.", List: []string{"get"}})
	at := s.Next(s.Next(s.Start([]token.ID{3}), 0), 1)
	f, fat := s.Fork(at)
	at = s.Keep(at)
	for name, stage := range map[string]struct {
		s  *MonitorStage
		at sample.StageState
	}{"kept": {s, at}, "forked": {f.(*MonitorStage), fat}} {
		if got := legal(t, stage.s, v, stage.at); !slices.Equal(got, []string{"t"}) {
			t.Errorf("%s: %q, want t", name, got)
		}
		if text := string(stage.s.nodes[stage.at].text); text != "qx.ge" {
			t.Errorf("%s: the text is %q", name, text)
		}
	}
}
