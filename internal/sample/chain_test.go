package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/kernel"
	"grove/internal/text/token"
)

// naivePenalties is the definition: penalties by a look at the whole text, of which the first prompt tokens are not the
// answer's.
func naivePenalties(p Penalties, logits []float32, text []token.ID, prompt int) []float32 {
	out := slices.Clone(logits)
	for _, b := range p.Bias {
		out[b.ID] += b.Add
	}
	window := func(n int) []token.ID {
		switch {
		case n < 0:
			return text
		case n == 0:
			return text[prompt:]
		}
		return text[max(0, len(text)-n):]
	}
	for id := range out {
		in := func(text []token.ID) (n int) {
			for _, t := range text {
				if int(t) == id {
					n++
				}
			}
			return n
		}
		if p.repeats() && in(window(p.RepeatWindow)) > 0 {
			if out[id] > 0 {
				out[id] /= p.Repeat
			} else {
				out[id] *= p.Repeat
			}
		}
		if n := in(window(p.Window)); n > 0 && p.counts() {
			out[id] -= float32(float32(n)*p.Frequency) + p.Presence
		}
	}
	if d := p.DRY; d.Multiplier > 0 {
		naiveDRY(d, out, window(d.Window))
	}
	if len(text)-prompt < p.MinTokens {
		for _, id := range p.Ends {
			out[id] = -inf
		}
	}
	return out
}

// naiveDRY compares every place of a text with its end.
func naiveDRY(d DRY, logits []float32, text []token.ID) {
	most := min(len(text), d.AllowedLength+maxDRYMatch)
	limit := most
	for from := range text {
		behind := len(text) + 1
		for _, b := range d.Breakers {
			if from+len(b) <= len(text) && slices.Equal(b, text[from:from+len(b)]) {
				behind = min(behind, len(text)-from-len(b))
			}
		}
		if behind <= len(text) {
			limit = min(behind, most)
		}
	}
	longest := map[token.ID]int{}
	for end := 1; end < len(text); end++ {
		n := 0
		for n < limit && n < end && text[end-1-n] == text[len(text)-1-n] {
			n++
		}
		if n >= d.AllowedLength {
			longest[text[end]] = max(longest[text[end]], n)
		}
	}
	for id, n := range longest {
		if slices.ContainsFunc(d.Breakers, func(b []token.ID) bool { return len(b) == 1 && b[0] == id }) {
			continue
		}
		p := float64(d.Multiplier) * kernel.Pow64(float64(d.Base), float64(n-d.AllowedLength))
		logits[id] -= float32(min(p, maxBias))
	}
}

func anyPenalties(t *rapid.T, vocab int) Penalties {
	window := rapid.SampledFrom([]int{-1, 0, 1, 3, 8, 100})
	id := rapid.Custom(func(t *rapid.T) token.ID { return token.ID(rapid.IntRange(0, vocab-1).Draw(t, "id")) })
	on := func(name string) bool { return rapid.Bool().Draw(t, name) }
	var p Penalties
	if on("repeat") {
		p.Repeat, p.RepeatWindow = 1.5, window.Draw(t, "repeat window")
	}
	if on("counts") {
		p.Presence, p.Frequency, p.Window = 0.2, 0.1, window.Draw(t, "window")
	}
	if on("minimum") {
		p.MinTokens, p.Ends = rapid.IntRange(0, 12).Draw(t, "minimum"), []token.ID{0}
	}
	if on("bias") {
		p.Bias = rapid.Permutation([]Bias{{0, -inf}, {1, 0.5}, {2, -inf}}).Draw(t, "biases")[:rapid.IntRange(1, 3).Draw(t, "of them")]
	}
	if on("DRY") {
		p.DRY = DRY{Multiplier: 0.8, Base: 1.75, AllowedLength: rapid.IntRange(1, 4).Draw(t, "allowed"), Window: window.Draw(t, "DRY's window"),
			Breakers: rapid.SliceOfN(rapid.SliceOfN(id, 1, 3), 0, 2).Draw(t, "breakers")}
	}
	return p
}

// TestStatesAreTexts moves a chain about a tree of drafts, keeps some, appends, forks, and expects of each state the
// penalties of its text by the definition.
func TestStatesAreTexts(t *testing.T) {
	const vocab = 3
	logits := []float32{1, -0.5, 0.25}
	ids := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) token.ID { return token.ID(rapid.IntRange(0, vocab-1).Draw(t, "id")) }), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		p := anyPenalties(t, vocab)
		c, err := NewChain(Settings{Penalties: p}, vocab)
		if err != nil {
			t.Fatal(err)
		}
		prompt := ids.Draw(t, "prompt")
		c.Begin(ids.Draw(t, "an earlier text"))
		c.Begin(prompt)
		trunk, answer := slices.Clone(prompt), len(prompt)
		states, texts := []State{0}, [][]token.ID{trunk}
		reset := func() { states, texts = []State{0}, [][]token.ID{trunk} }
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			at := rapid.IntRange(0, len(states)-1).Draw(t, "at")
			switch rapid.IntRange(0, 9).Draw(t, "move") {
			case 0:
				c.Keep(states[at])
				trunk = texts[at]
				reset()
			case 1:
				more, further := ids.Draw(t, "more"), rapid.Bool().Draw(t, "prompt")
				c.Append(more, further)
				if trunk = append(slices.Clone(trunk), more...); further {
					answer = len(trunk)
				}
				reset()
			case 2:
				c = c.Fork()
				reset()
			default:
				id := token.ID(rapid.IntRange(0, vocab-1).Draw(t, "id"))
				s := c.Next(states[at], id)
				if again := c.Next(states[at], id); again != s {
					t.Fatalf("state %d, then %d", s, again)
				}
				states, texts = append(states, s), append(texts, append(slices.Clone(texts[at]), id))
			}
			at = rapid.IntRange(0, len(states)-1).Draw(t, "looked at")
			want := naivePenalties(p, logits, texts[at], answer)
			if d := cmp.Diff(want, c.Process(states[at], logits)); d != "" {
				t.Fatalf("%v behind %v, prompt %d (-want +got):\n%s", p, texts[at], answer, d)
			}
			for id := range want {
				if c.Allows(states[at], token.ID(id)) != (want[id] > -inf) {
					t.Fatalf("Allows(%d) is not what the logits %v say", id, want)
				}
			}
		}
	})
}

func TestPenaltiesWorkedNumbers(t *testing.T) {
	p := Penalties{Repeat: 1.5, Frequency: 0.1, Presence: 0.2, RepeatWindow: -1, Window: -1}
	c := newChain(t, Settings{Params: Params{Temperature: 1}, Penalties: p}, 5)
	c.Begin([]token.ID{4, 0, 4})
	near(t, "logits", c.Process(0, five), []float32{1.0333, 1, .5, 0, -1.9}, 1e-4)
	near(t, "probabilities", probsOf(t, c, 0, five), []float32{.3375, .3264, .1980, .1201, .0180}, 6e-5)
}

func near(t testing.TB, what string, got, want []float32, by float64) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || math.Abs(float64(got[i]-want[i])) > by {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

// probsOf returns the probabilities behind a state, in float32.
func probsOf(t testing.TB, c *Chain, s State, logits []float32) []float32 {
	t.Helper()
	p, out := make([]float64, len(logits)), make([]float32, len(logits))
	if err := c.Probs(p, s, logits, 0); err != nil {
		t.Fatal(err)
	}
	for i, v := range p {
		out[i] = float32(v)
	}
	return out
}

func TestDRYWorkedNumbers(t *testing.T) {
	d := DRY{Multiplier: 0.8, Base: 1.75, AllowedLength: 2, Window: -1}
	with := func(breakers ...[]token.ID) DRY {
		d := d
		d.Breakers = breakers
		return d
	}
	for _, tt := range []struct {
		name string
		dry  DRY
		text []token.ID
		want float32 // the penalty of token 8
	}{
		{"three tokens", d, []token.ID{5, 6, 7, 8, 5, 6, 7}, 1.4},
		{"two tokens", d, []token.ID{6, 7, 8, 6, 7}, 0.8},
		{"one token", d, []token.ID{7, 8, 7}, 0},
		{"the longest counts", d, []token.ID{6, 7, 8, 5, 6, 7, 8, 5, 6, 7}, 0.8 * 1.75 * 1.75 * 1.75 * 1.75},
		{"a breaker inside", with([]token.ID{6}), []token.ID{5, 6, 7, 8, 5, 6, 7}, 0},
		{"a breaker before", with([]token.ID{5}), []token.ID{5, 6, 7, 8, 5, 6, 7}, 0.8},
		{"a breaker of two tokens", with([]token.ID{8, 5}), []token.ID{5, 6, 7, 8, 5, 6, 7}, 0.8},
		{"a breaker is never penalized", with([]token.ID{8}), []token.ID{5, 6, 7, 8, 5, 6, 7}, 0},
	} {
		c := newChain(t, Settings{Penalties: Penalties{DRY: tt.dry}}, 10)
		c.Begin(tt.text)
		got := c.Process(0, make([]float32, 10))
		want := make([]float32, 10)
		want[8] = -tt.want
		near(t, tt.name, got, want, 1e-6)
	}
}

// TestDRYLimits holds the limits that the documentation names.
func TestDRYLimits(t *testing.T) {
	same := make([]token.ID, 600)
	for base, want := range map[float32]float64{1: 0.8, 1.01: 0.8 * math.Pow(1.01, 256), 1.75: 1e6, 100: 1e6} {
		c := newChain(t, Settings{Penalties: Penalties{DRY: DRY{Multiplier: 0.8, Base: base, AllowedLength: 3, Window: -1}}}, 2)
		c.Begin(same)
		if got := -float64(c.Process(0, make([]float32, 2))[0]); math.Abs(got-want) > 1e-4*want {
			t.Errorf("base %v: the penalty is %v, want %v", base, got, want)
		}
	}
}

// wordStage allows only the tokens of a list, at most once each; its store is a list of sets.
type wordStage struct {
	words []token.ID
	used  [][]token.ID
}

func (w *wordStage) String() string { return "words" }

func (w *wordStage) Start([]token.ID) StageState {
	w.used = [][]token.ID{nil}
	return 0
}

func (w *wordStage) Next(s StageState, id token.ID) StageState {
	w.used = append(w.used, append(slices.Clone(w.used[s]), id))
	return StageState(len(w.used) - 1)
}

func (w *wordStage) Apply(s StageState, logits []float32) {
	for id := range logits {
		if !w.Allows(s, token.ID(id)) {
			logits[id] = -inf
		}
	}
}

func (w *wordStage) Allows(s StageState, id token.ID) bool {
	return slices.Contains(w.words, id) && !slices.Contains(w.used[s], id)
}

func (w *wordStage) Forced(s StageState) (ids []token.ID) {
	if i := len(w.used[s]); i == len(w.words)-1 {
		for _, id := range w.words {
			if w.Allows(s, id) {
				return []token.ID{id}
			}
		}
	}
	return nil
}

func (w *wordStage) Keep(s StageState) StageState {
	w.used = [][]token.ID{w.used[s]}
	return 0
}

func (w *wordStage) Fork(s StageState) (Stage, StageState) {
	return &wordStage{w.words, [][]token.ID{w.used[s]}}, 0
}

func TestCustomStage(t *testing.T) {
	c := newChain(t, Settings{Params: Params{Temperature: 1, Seed: 4}, Stages: []Stage{&wordStage{words: []token.ID{1, 3, 4}}}}, 5)
	c.Begin([]token.ID{1, 2})
	fork := c
	var text []token.ID
	for i := range 3 {
		got, err := c.Draw(0, five, i)
		if err != nil || !c.Allows(0, got.ID) || slices.Contains(text, got.ID) {
			t.Fatalf("%v, %v after %v", got, err, text)
		}
		if forced := c.Forced(nil, 0); (i == 2) != slices.Equal(forced, []token.ID{got.ID}) {
			t.Errorf("after %v %v is forced", text, forced)
		}
		if want := c.Logprob(five, got.ID); got.Logprob != want {
			t.Errorf("log-probability %v, the model's is %v", got.Logprob, want)
		}
		c.Next(0, 4)
		c.Keep(c.Next(0, got.ID))
		text = append(text, got.ID)
		if i == 0 {
			fork = c.Fork()
		}
	}
	_, err := c.Draw(0, five, 3)
	if !errors.Is(err, ErrAllMasked) || !strings.Contains(err.Error(), "stage words") {
		t.Errorf("a mask that forbids every token: %v", err)
	}
	for i := 1; i < 3; i++ {
		got, err := fork.Draw(0, five, i)
		if err != nil || got.ID != text[i] {
			t.Errorf("the fork draws %v, %v; the chain drew %d", got, err, text[i])
		}
		fork.Keep(fork.Next(0, got.ID))
	}
	if _, err := c.Draw(0, []float32{-inf, -inf, -inf, -inf, -inf}, 3); err == nil || err.Error() != ErrAllMasked.Error() {
		t.Errorf("logits without a token: %v", err)
	}
	all := Settings{Penalties: Penalties{Bias: []Bias{{0, -inf}, {1, -inf}}}}
	if _, err := newChain(t, all, 2).Draw(0, five[:2], 0); err == nil || !strings.Contains(err.Error(), "stage logit bias") {
		t.Errorf("biases that forbid every token: %v", err)
	}
}

func TestThinking(t *testing.T) {
	const begin, end1, end2, a = 1, 2, 3, 4
	settings := func(budget int) Settings {
		return Settings{Thinking: Thinking{Budget: budget, Begin: []token.ID{begin}, End: []token.ID{end1, end2}}}
	}
	for _, tt := range []struct {
		name    string
		budget  int
		prompt  []token.ID
		answer  []token.ID
		forced  []token.ID
		thought int
	}{
		{"before the marker", 0, nil, []token.ID{a}, nil, 0},
		{"no budget", 0, nil, []token.ID{a, begin}, []token.ID{end1, end2}, 0},
		{"no budget, the prompt begins", 0, []token.ID{begin, a}, nil, []token.ID{end1, end2}, 0},
		{"some is left", 2, nil, []token.ID{begin, a}, nil, 1},
		{"spent", 2, nil, []token.ID{begin, a, a}, []token.ID{end1, end2}, 2},
		{"half of the marker is there", 2, nil, []token.ID{begin, a, a, end1}, []token.ID{end2}, 3},
		{"closed", 2, nil, []token.ID{begin, a, a, end1, end2, a, a}, nil, 2},
		{"closed early", 9, nil, []token.ID{begin, a, end1, end1, end2, a}, nil, 2},
		{"a second part", 2, nil, []token.ID{begin, a, end1, end2, begin, a}, []token.ID{end1, end2}, 2},
		{"what the prompt thought does not count", 2, []token.ID{begin, a, a, a, a}, []token.ID{a}, nil, 1},
		{"no bound", -1, nil, []token.ID{begin, a, a, a}, nil, 3},
	} {
		c := newChain(t, settings(tt.budget), 5)
		c.Begin(tt.prompt)
		count := settings(tt.budget).Thinking.Count(tt.prompt)
		s := State(0)
		for _, id := range tt.answer {
			s = c.Next(s, id)
			count.Add(id)
		}
		if got := c.Forced(nil, s); !slices.Equal(got, tt.forced) {
			t.Errorf("%s: %v is forced, want %v", tt.name, got, tt.forced)
		}
		got, err := c.Draw(s, []float32{0, 1, 2, 3, 4}, 0)
		if want := append(slices.Clone(tt.forced), a); err != nil || got.ID != want[0] {
			t.Errorf("%s: %v, %v, want token %d", tt.name, got, err, want[0])
		}
		for id := range token.ID(5) {
			if want := len(tt.forced) == 0 || tt.forced[0] == id; c.Allows(s, id) != want {
				t.Errorf("%s: Allows(%d) is %v", tt.name, id, !want)
			}
		}
		if count.Tokens() != tt.thought {
			t.Errorf("%s: %d tokens were thought, want %d", tt.name, count.Tokens(), tt.thought)
		}
	}
	if !newChain(t, settings(-1), 5).Plain() {
		t.Error("thinking without a bound changes logits")
	}
	none := Thinking{}.Count(nil)
	if none.Add(1); none.Tokens() != 0 {
		t.Error("tokens are counted without markers")
	}
}

// TestMarker expects the marker to be found wherever it stands.
func TestMarker(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) token.ID { return token.ID(rapid.IntRange(0, 1).Draw(t, "id")) })
	rapid.Check(t, func(t *rapid.T) {
		m := newMarker(rapid.SliceOfN(id, 1, 6).Draw(t, "marker"))
		text, matched := rapid.SliceOfN(id, 1, 40).Draw(t, "text"), 0
		for i := range text {
			matched = m.next(matched, text[i])
			want := len(m.ids)
			for !slices.Equal(m.ids[:want], text[max(0, i+1-want):i+1]) {
				want--
			}
			if matched != want {
				t.Fatalf("%d tokens match behind %v, want %d", matched, text[:i+1], want)
			}
			if matched == len(m.ids) {
				matched = 0
				text = append(slices.Repeat([]token.ID{2}, i+1), text[i+1:]...) // a found marker is used up
			}
		}
	})
}

func TestChainRefuses(t *testing.T) {
	dry := func(d DRY) Settings { return Settings{Penalties: Penalties{DRY: d}} }
	nan := float32(math.NaN())
	m := Mirostat{Version: 2, Tau: 5, Eta: .1}
	for want, s := range map[string]Settings{
		"typical-p is 1.5; it must be from 0 to 1":     {Params: Params{TypicalP: 1.5}},
		"top-n-sigma is NaN":                           {Params: Params{TopNSigma: nan}},
		"XTC's probability is -1; it must be from 0":   {Params: Params{XTC: XTC{Probability: -1}}},
		"XTC's threshold is 2; it must be from 0 to 1": {Params: Params{XTC: XTC{Threshold: 2}}},
		"range of the dynamic temperature is NaN":      {Params: Params{DynamicTemperature: DynamicTemperature{Range: nan}}},
		"exponent of the dynamic temperature is -1":    {Params: Params{DynamicTemperature: DynamicTemperature{Exponent: -1}}},
		"min-keep is -2":                               {Params: Params{MinKeep: -2}},
		"mirostat's version is 3":                      {Params: Params{Mirostat: Mirostat{Version: 3}}},
		"mirostat's tau is 0; it must be above 0":      {Params: Params{Mirostat: Mirostat{Version: 2}}},
		"mirostat's eta is NaN":                        {Params: Params{Mirostat: Mirostat{Version: 1, Tau: 5, Eta: nan}}},
		"cannot go with typical-p":                     {Params: Params{Mirostat: m, TypicalP: .5}},
		"cannot go with top-n-sigma":                   {Params: Params{Mirostat: m, TopNSigma: 1}},
		"cannot go with XTC":                           {Params: Params{Mirostat: m, XTC: XTC{.5, .1}}},
		"cannot go with min-keep":                      {Params: Params{Mirostat: m, MinKeep: 2}},
		"DRY's multiplier is -1":                       dry(DRY{Multiplier: -1}),
		"DRY's base is 0.5; it must be from 1":         dry(DRY{Multiplier: 1, Base: .5}),
		"DRY's allowed length is 0":                    dry(DRY{Multiplier: 1, Base: 1}),
		"DRY's window is -2 tokens":                    dry(DRY{Multiplier: 1, Base: 1, AllowedLength: 1, Window: -2}),
		"breaker 0 of DRY has 0 tokens":                dry(DRY{Multiplier: 1, Base: 1, AllowedLength: 1, Breakers: [][]token.ID{{}}}),
		"breaker 1 of DRY holds token 5":               dry(DRY{Multiplier: 1, Base: 1, AllowedLength: 1, Breakers: [][]token.ID{{1}, {5}}}),
		"markers of 1 and 0 tokens":                    {Thinking: Thinking{Begin: []token.ID{1}}},
		"the thinking budget is 7, and there are no":   {Thinking: Thinking{Budget: 7}},
		"marker of thinking holds token 9":             {Thinking: Thinking{Begin: []token.ID{1}, End: []token.ID{9}}},
		"stage 0 is nil":                               {Stages: []Stage{nil}},
	} {
		if _, err := NewChain(s, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ok := Settings{Params: Params{TopK: 40, TopP: .95, MinP: .05, Mirostat: m, XTC: XTC{1, .6}, TopNSigma: -1, TypicalP: 1}}
	if _, err := NewChain(ok, 5); err != nil {
		t.Error(err) // what defaults turn on, or what is off
	}
}

func TestChainAllocatesNothing(t *testing.T) {
	const vocab = 1000
	logits := noise(vocab, 7)
	all := Penalties{Repeat: 1.1, RepeatWindow: 64, Presence: 1, Window: -1, MinTokens: 1000, Ends: []token.ID{3},
		DRY: DRY{Multiplier: .8, Base: 1.75, AllowedLength: 2, Window: -1, Breakers: [][]token.ID{{5}}}}
	thinking := Thinking{Budget: 3, Begin: []token.ID{1}, End: []token.ID{2}}
	for i, s := range []Settings{
		{}, {Params: DefaultParams()}, {Params: DefaultParams(), Penalties: all, Thinking: thinking},
		{Params: Params{Temperature: 1, Mirostat: Mirostat{2, 5, .1}}}, {Params: Params{Temperature: 1, Mirostat: Mirostat{1, 5, .1}}},
		{Params: Params{Temperature: 1, TypicalP: .9, XTC: XTC{1, .001}, TopNSigma: 2, DynamicTemperature: DynamicTemperature{.5, 1}}},
	} {
		c := newChain(t, s, vocab)
		index := 0
		step := func() {
			at := State(0)
			for range 4 {
				c.Draw(at, logits, index)
				at = c.Next(at, token.ID(index*7%vocab))
				index++
			}
			c.Keep(at)
		}
		for range 300 {
			step()
		}
		c.text, c.repetitions = slices.Grow(c.text, 1000), growPlaces(c.repetitions)
		if n := testing.AllocsPerRun(50, step); n != 0 {
			t.Errorf("settings %d: %v allocations", i, n)
		}
	}
}

// growPlaces makes room for a longer text.
func growPlaces(r *repetitions) *repetitions {
	if r != nil {
		r.before = slices.Grow(r.before, 1000)
	}
	return r
}

func BenchmarkProcess(b *testing.B) {
	const vocab = 128 << 10
	logits, text := noise(vocab, 7), make([]token.ID, 8000)
	for i := range text {
		text[i] = token.ID(kernel.Uniform(kernel.Key{A: 3}, uint32(i)) * 500)
	}
	for name, p := range map[string]Penalties{
		"bias":      {Bias: []Bias{{1, 1}}},
		"penalties": {Repeat: 1.1, RepeatWindow: -1, Presence: 1, Window: -1},
		"dry":       {DRY: DRY{Multiplier: .8, Base: 1.75, AllowedLength: 2, Window: -1}},
	} {
		b.Run(fmt.Sprintf("vocab=128k/text=8000/stages=%s", name), func(b *testing.B) {
			c := newChain(b, Settings{Penalties: p}, vocab)
			c.Begin(text)
			one, two := c.Next(c.Next(0, 1), 2), c.Next(0, 3)
			b.ReportAllocs()
			for b.Loop() {
				c.Process(one, logits)
				c.Process(two, logits)
			}
		})
	}
}

// TestPickIsADraw counts what is picked at many indices, at five standard deviations.
func TestPickIsADraw(t *testing.T) {
	p := []float64{0.5, 0, 0.3, 0.2}
	c, err := NewChain(Settings{Params: Params{Temperature: 1, Seed: 7}}, len(p))
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 4000
	counts := make([]float64, len(p))
	for i := range rounds {
		counts[c.Pick(p, i, 3)]++
	}
	for id, n := range counts {
		if d := math.Abs(n - rounds*p[id]); d > 5*math.Sqrt(rounds*p[id]*(1-p[id])) {
			t.Errorf("token %d was picked %v times of %d, with probability %v", id, n, rounds, p[id])
		}
	}
	if id := c.Pick(make([]float64, len(p)), 0, 3); id != token.None {
		t.Errorf("token %d was picked of none", id)
	}
}
