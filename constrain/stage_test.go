package constrain

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// language says of a text whether a legal one begins with it, and whether it is legal itself.
type language func(text string) (viable, legal bool)

func choicesOf(all []string) language {
	return func(text string) (viable, legal bool) {
		for _, c := range all {
			viable, legal = viable || strings.HasPrefix(c, text), legal || c == text
		}
		return viable, legal
	}
}

// behindTrigger is the language in which any text may stand before a trigger, with which the legal text begins unless behind is set.
func behindTrigger(trigger string, behind, required bool, l language) language {
	return func(text string) (viable, legal bool) {
		_, rest, found := strings.Cut(text, trigger)
		switch {
		case !found:
			return true, !required
		case behind:
			return l(rest)
		}
		return l(trigger + rest)
	}
}

// repeated is behindTrigger where another trigger may follow a legal text.
func repeated(trigger string, all []string) language {
	return func(text string) (viable, legal bool) {
		for {
			_, rest, found := strings.Cut(text, trigger)
			if !found {
				return true, true
			}
			i := slices.IndexFunc(all, func(c string) bool { return strings.HasPrefix(rest, c) })
			if i < 0 {
				return choicesOf(all)(rest)
			}
			text = rest[len(all[i]):]
		}
	}
}

// closing says whether a text ends with what makes it legal for repeated.
func closing(trigger string, all []string) func(text string) bool {
	return func(text string) bool {
		for {
			_, rest, found := strings.Cut(text, trigger)
			i := slices.IndexFunc(all, func(c string) bool { return strings.HasPrefix(rest, c) })
			if !found || i < 0 || rest == all[i] {
				return found && i >= 0
			}
			text = rest[len(all[i]):]
		}
	}
}

func thoughtful(v *Vocabulary, inside bool, l language) language {
	return func(text string) (viable, legal bool) {
		if !inside {
			rest, begun := strings.CutPrefix(text, v.begin)
			if !begun {
				if strings.HasPrefix(v.begin, text) && text != "" {
					return true, false
				}
				return l(text)
			}
			text = rest
		}
		_, rest, ended := strings.Cut(text, v.end)
		if !ended {
			return true, false
		}
		return l(rest)
	}
}

func startingWith(head string, l language) language {
	return func(text string) (viable, legal bool) {
		if rest, ok := strings.CutPrefix(text, head); ok {
			return l(rest)
		}
		return strings.HasPrefix(head, text), false
	}
}

func anything(string) (viable, legal bool) { return true, true }

// subject is a constraint and what it must allow.
type subject struct {
	name   string
	spec   Spec
	head   string
	prompt []token.ID
	l      func(v *Vocabulary) language
	closes func(text string) bool // no token goes beyond such a text; nil: there is none
	slack  bool                   // white space behind thoughts is legal, too: it is not compared
}

func subjects() []subject {
	list := []string{"abc", "ab12", " abc", "é", "e\u0301b", "\n\nc", "order"}
	plain := func(l language) func(*Vocabulary) language { return func(*Vocabulary) language { return l } }
	return []subject{
		{name: "choices", spec: Spec{Choices: list}, prompt: []token.ID{bos, firstByte + 'x'}, l: plain(choicesOf(list))},
		{name: "choices at the beginning", spec: Spec{Choices: list}, prompt: []token.ID{bos}, l: plain(choicesOf(list))},
		{name: "behind a trigger", spec: Spec{Choices: list, Triggers: []string{"call"}, Behind: true}, prompt: []token.ID{bos},
			l: plain(behindTrigger("call", true, false, choicesOf(list)))},
		{name: "with a trigger", spec: Spec{Choices: []string{"abc1", "ab12"}, Triggers: []string{"ab"}, Required: true}, prompt: []token.ID{bos},
			l: plain(behindTrigger("ab", false, true, choicesOf([]string{"abc1", "ab12"})))},
		{name: "behind a token", spec: Spec{Choices: list, Triggers: []string{"<tool>a"}, Behind: true}, prompt: []token.ID{bos},
			l: func(v *Vocabulary) language {
				return behindTrigger(vocab.Spelling(tool)+"a", true, false, choicesOf(list))
			}},
		{name: "again", spec: Spec{Choices: []string{"abc", "12"}, Triggers: []string{"order"}, Behind: true, Repeat: true}, prompt: []token.ID{firstByte + 'x'},
			l: plain(repeated("order", []string{"abc", "12"})), closes: closing("order", []string{"abc", "12"})},
		{name: "again, once at least", spec: Spec{Choices: []string{"abc", "12"}, Triggers: []string{"order"}, Behind: true, Repeat: true, Required: true}, prompt: []token.ID{firstByte + 'x'},
			l: plain(func(text string) (viable, legal bool) {
				viable, legal = repeated("order", []string{"abc", "12"})(text)
				return viable, legal && strings.Contains(text, "order")
			}), closes: closing("order", []string{"abc", "12"})},
		{name: "thoughts that go on", spec: Spec{Choices: list, Thoughts: true}, prompt: []token.ID{bos, think}, slack: true,
			l: func(v *Vocabulary) language { return thoughtful(v, true, choicesOf(list)) }},
		{name: "thoughts", spec: Spec{Choices: list, Thoughts: true}, prompt: []token.ID{bos, firstByte + 'x'}, slack: true,
			l: func(v *Vocabulary) language { return thoughtful(v, false, choicesOf(list)) }},
		{name: "a head", spec: Spec{Choices: list}, head: "orderN", prompt: []token.ID{bos}, l: plain(startingWith("orderN", choicesOf(list)))},
		{name: "a head alone", head: "a\"", prompt: []token.ID{bos, firstByte + 'x'}, l: plain(startingWith("a\"", anything))},
		{name: "a head before a trigger", spec: Spec{Choices: list, Triggers: []string{"call"}, Behind: true}, head: "orderI", prompt: []token.ID{bos},
			l: plain(startingWith("orderI", behindTrigger("call", true, false, choicesOf(list))))},
	}
}

func (s *subject) compile(t testing.TB, v *Vocabulary) *Constraint {
	t.Helper()
	c, err := Free(v), error(nil)
	if len(s.spec.Choices) > 0 {
		c, err = Compile(s.spec, v, Limits{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStage walks through texts by legal tokens and compares the mask of every state with what the language says of each token's text, and
// the tests of single tokens with the mask, before and after states are kept and forked.
func TestStage(t *testing.T) {
	for _, spm := range []bool{true, false} {
		v := words(t, spm)
		for _, s := range subjects() {
			t.Run(fmt.Sprintf("%s, blanks %v", s.name, spm), func(t *testing.T) {
				c, l, r := s.compile(t, v), s.l(v), rand.New(rand.NewPCG(1, 2))
				masks := 0
				for range 60 {
					stage := c.Stages([]byte(s.head))[0].(*Stage)
					at, text := stage.Start(s.prompt), []token.ID(nil)
					for len(text) < 14 {
						legal := s.compare(t, v, l, stage, at, text)
						if masks++; len(legal) == 0 {
							break
						}
						id := legal[r.IntN(len(legal))]
						if text = append(text, id); v.trie.Kind(id) == vocab.End {
							break
						}
						if at = stage.Next(at, id); r.IntN(3) == 0 {
							stage.Next(at, legal[0])
							at = stage.Keep(at)
						}
						if r.IntN(4) == 0 {
							fork, state := stage.Fork(at)
							stage.Next(at, legal[0])
							stage, at = fork.(*Stage), state
						}
					}
				}
				if masks < 60 {
					t.Errorf("%d masks were compared", masks)
				}
			})
		}
	}
}

// TestChannels does the same for a model that writes in channels, whose prompt has begun the answer, and whose has not.
func TestChannels(t *testing.T) {
	v := inChannels(t)
	list := []string{"abc", "ab12"}
	final := v.spellIDs(v.final)
	for _, s := range []subject{
		{name: "before the answer", prompt: []token.ID{bos}, slack: true, l: func(*Vocabulary) language { return behindTrigger(final, true, true, choicesOf(list)) }},
		{name: "behind thoughts", prompt: []token.ID{bos, channel, firstByte + 'a', message}, slack: true, l: func(*Vocabulary) language { return behindTrigger(final, true, true, choicesOf(list)) }},
		{name: "in the answer", prompt: append([]token.ID{bos}, v.final...), l: func(*Vocabulary) language { return choicesOf(list) }},
	} {
		t.Run(s.name, func(t *testing.T) {
			s.spec = Spec{Choices: list, Thoughts: true}
			stage := s.compile(t, v).Stages(nil)[0].(*Stage)
			l := s.l(v)
			at, text := stage.Start(s.prompt), []token.ID(nil)
			for _, id := range append(slices.Clip(v.final), v.id(t, "\n"), v.id(t, "ab"), v.id(t, "12"), eos) {
				if legal := s.compare(t, v, l, stage, at, text); legal != nil && !slices.Contains(legal, id) {
					continue
				}
				if stage.nodes[at].mode == gap && id == v.id(t, "\n") {
					continue
				}
				at, text = stage.Next(at, id), append(text, id)
			}
			if !stage.Ended(at) || text[len(text)-1] != eos {
				t.Errorf("the text %v is not complete", text)
			}
		})
	}
}

// compare compares a state's mask with the language, and returns the tokens that may follow.
func (s *subject) compare(t *testing.T, v *Vocabulary, l language, stage *Stage, at sample.StageState, text []token.ID) (legal []token.ID) {
	t.Helper()
	prev := s.prompt[len(s.prompt)-1]
	if s.slack && stage.nodes[at].mode == gap {
		return nil
	}
	var alone [512]bool
	for id := range token.ID(v.size + 2) {
		alone[id] = stage.Allows(at, id) // before there is a mask
	}
	logits := make([]float32, v.size)
	stage.Apply(at, logits)
	now := v.textBehind(prev, text)
	for id := range token.ID(v.size) {
		var want bool
		switch v.trie.Kind(id) {
		case vocab.End:
			_, want = l(now)
		case vocab.Unused:
			want = stage.nodes[at].mode == waiting || stage.nodes[at].mode == free // all is legal there
		default:
			with := v.textBehind(prev, append(slices.Clip(text), id))
			want, _ = l(with)
			for n := len(now) + 1; n < len(with) && s.closes != nil; n++ {
				want = want && !s.closes(with[:n])
			}
			want = want && (with != now || stage.nodes[at].mode == waiting || stage.nodes[at].mode == free)
		}
		if got := !math.IsInf(float64(logits[id]), -1); got != want || alone[id] != want || stage.Allows(at, id) != want {
			t.Fatalf("token %d (%q) behind %q: the mask says %v, a test %v, the language %v", id, v.trie.Bytes(id), now, got, alone[id], want)
		}
		if want && v.trie.Kind(id) != vocab.Unused {
			legal = append(legal, id)
		}
	}
	if alone[v.size] || stage.Allows(at, -1) {
		t.Fatal("an id beyond the vocabulary is legal")
	}
	return legal
}

// TestStageErrors expects a token that may not follow, and a text that no token goes on with, to be errors of their states alone.
func TestStageErrors(t *testing.T) {
	v := words(t, false)
	c, err := Compile(Spec{Choices: []string{"ab", "bx"}}, v, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stage := c.Stages(nil)[0].(*Stage)
	at := stage.Start([]token.ID{bos})
	good, bad := stage.Next(at, v.id(t, "a")), stage.Next(at, v.id(t, "c"))
	if err := stage.Err(bad); !errors.Is(err, ErrConstraint) || !strings.Contains(err.Error(), "byte 0") {
		t.Errorf("behind an illegal token: %v", err)
	}
	if stage.Allows(bad, v.id(t, "a")) || stage.Err(good) != nil || stage.Ended(good) || stage.Ended(bad) {
		t.Error("an illegal token changes other states, or the text is complete")
	}
	done := stage.Next(good, v.id(t, "b"))
	if !stage.Ended(done) || stage.Err(done) != nil {
		t.Error("the text is not complete behind ab")
	}
	if over := stage.Next(done, eos); !stage.Ended(over) || stage.Err(over) == nil {
		t.Error("the text goes on behind its end")
	}
	logits := make([]float32, v.size)
	stage.Apply(bad, logits)
	for id, l := range logits {
		if l == 0 {
			t.Fatalf("token %d is legal behind an illegal one", id)
		}
	}
	unspelled, err := Compile(Spec{Source: func() (grammar.Source, error) {
		store := regex.New(regex.Limits{})
		return grammar.Lexeme(store, store.Literal("a\xff[999]"))
	}}, v, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stage = unspelled.Stages(nil)[0].(*Stage)
	at = stage.Next(stage.Start([]token.ID{bos}), v.id(t, "a"))
	if err := stage.Err(at); !errors.Is(err, ErrConstraint) || !strings.Contains(err.Error(), "byte 1: no token of the vocabulary may follow; expected") {
		t.Errorf("a text that the vocabulary cannot spell: %v", err)
	}
}

// TestForced expects the tokens that the tokenizer writes for bytes that must follow, without those in which a longer token can begin: the
// card's two hazards.
func TestForced(t *testing.T) {
	for _, spm := range []bool{true, false} {
		v := words(t, spm)
		for _, c := range []struct {
			choices []string
			behind  string
			want    []string
		}{
			{[]string{"{\"orderId\":1}", "{\"orderName\":1}"}, "{\"", nil},
			{[]string{"{\"orderId\":1}", "{\"orderId\":2}"}, "{\"", []string{"orderId", "\":"}},
			{[]string{"\"name_of_the_person\":", "\"name_of_the_person\","}, "\"", []string{"name_of_the_person"}},
			{[]string{"abc"}, "a", []string{"bc"}},
			{[]string{"abc", "abd"}, "a", nil}, // bc is a token
			{[]string{"ab", "ac"}, "a", nil},
		} {
			spec, err := Compile(Spec{Choices: c.choices}, v, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			stage := spec.Stages(nil)[0].(*Stage)
			at := stage.Start([]token.ID{firstByte + 'x'})
			at = stage.Next(at, v.id(t, c.behind))
			var got []string
			for _, id := range stage.Forced(at) {
				got = append(got, string(v.trie.Bytes(id)))
				if !stage.Allows(at, id) {
					t.Errorf("%q behind %q is forced and not legal", v.trie.Bytes(id), c.behind)
				}
				at = stage.Next(at, id)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q behind %q: %q is forced, want %q", c.choices, c.behind, got, c.want)
			}
		}
	}
}

// TestApplyAllocates holds the stage to no allocation where masks are known.
func TestApplyAllocates(t *testing.T) {
	v := words(t, true)
	c, err := Compile(Spec{Choices: []string{"abcabcabc"}}, v, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stage := c.Stages(nil)[0].(*Stage)
	at := stage.Start([]token.ID{bos})
	logits := make([]float32, v.size)
	id := v.id(t, "ab")
	if n := testing.AllocsPerRun(100, func() {
		stage.Apply(at, logits)
		stage.Next(at, id)
		at = stage.Keep(at)
	}); n > 0 {
		t.Errorf("%v allocations a token", n)
	}
}

// TestSpecErrors expects specs that make no sense to be refused with a reason.
func TestSpecErrors(t *testing.T) {
	v := words(t, true)
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, "says nothing"},
		{Spec{Choices: []string{"a"}, Regex: "a"}, "several kinds (Regex, Choices)"},
		{Spec{Regex: "a", FreeOrder: true}, "FreeOrder"},
		{Spec{Schema: []byte(`{"enum": []}`)}, "#"},
		{Spec{Schema: []byte(`{`)}, "no JSON"},
		{Spec{Schema: []byte(`{}`), Whitespace: "much"}, "Whitespace"},
		{Spec{Grammar: "root ::= x"}, "x"},
		{Spec{Grammar: "start: x"}, "x"},
		{Spec{Regex: "a("}, "regular expression"},
		{Spec{Regex: "[^\\s\\S]"}, "no text"},
		{Spec{Choices: []string{"a"}, Behind: true}, "there is none"},
		{Spec{Choices: []string{"a"}, Triggers: []string{""}}, "a trigger is empty"},
		{Spec{Choices: []string{"ab"}, Triggers: []string{"ac"}}, "but for its first 1 bytes"},
		{Spec{Choices: []string{"ab"}, Triggers: slices.Repeat([]string{"a"}, 65)}, "65 triggers"},
	} {
		if _, err := Compile(c.spec, v, Limits{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.spec, err, c.want)
		}
	}
}
