package sample

import (
	"fmt"
	"math"
	"slices"

	"grove/internal/text/token"
)

// Settings say how the tokens of one text are drawn. The zero value takes the likeliest token each time.
type Settings struct {
	Params      Params
	Penalties   Penalties
	Thinking    Thinking
	SampleIndex int     // the number of the answer in its request
	Stages      []Stage // run in this order behind the built-in logit stages and before truncation
}

// Validate returns an error that names the first setting that is out of range or contradicts another; vocab is the
// number of tokens.
func (s *Settings) Validate(vocab int) error {
	if err := s.Params.Validate(); err != nil {
		return err
	}
	if err := s.Penalties.Validate(vocab); err != nil {
		return err
	}
	if err := s.Thinking.validate(vocab); err != nil {
		return err
	}
	for i, stage := range s.Stages {
		if stage == nil {
			return fmt.Errorf("sample: stage %d is nil; leave it out", i)
		}
	}
	return nil
}

// A State is the state of all stages behind one text. State 0 is the trunk's end; others stand for the texts of draft
// nodes and are good until the next Begin, Append or Keep.
type State int32

// A Chain is the stages and the draw of one sequence. It follows the sequence's text, the trunk, and has a state for
// each node of a tree of drafts behind it. It is not safe for concurrent use. After the first trees of a size nothing
// but Top and TopDrawn allocates, as far as the stages do not.
type Chain struct {
	settings Settings
	vocab    int
	sampler  *sampler
	steps    []step // the logit stages
	stages   []Stage
	legal    []int // places of the stages that are [Legal]
	ahead    ahead
	enders   []int // of those that are [Ender]
	picker   int   // of the one that is a [Picker]; -1: there is none, or there are several
	ranking  Ranking
	banned   []token.ID
	adapts   bool // mirostat is on
	flat     bool // nothing depends on the text: it has one state

	text          []token.ID // the trunk and the path to the cursor
	trunk, prompt int        // tokens of the trunk, and of these the first that are not the answer's
	cursor        State
	repeated      *counter // nil: off
	present       *counter
	repetitions   *repetitions

	nodes  []node
	states []StageState // of the stages, node by node
	way    []State
	seen   []surprise
	logits []float32
}

// A node is one state.
type node struct {
	parent, child, sibling State // child and sibling are 0 where there are none
	id                     token.ID
	depth                  int32
	mu                     float64 // mirostat's, of state 0 only
	seen                   span    // of mirostat's surprises
}

type span struct{ from, to int }

// A step is a logit stage: apply changes the logits behind a state, at which the cursor stands.
type step struct {
	name     string
	apply    func(s State, logits []float32)
	fault    func(s State) error  // nil: it has none of its own
	expected func(s State) string // nil: it says nothing
}

// NewChain returns the chain of a text without tokens, for rows of vocab logits, or the error of [Settings.Validate].
// It keeps the slices of the settings.
func NewChain(s Settings, vocab int) (*Chain, error) {
	if err := s.Validate(vocab); err != nil {
		return nil, err
	}
	c, err := buildChain(s, vocab)
	if err != nil {
		return nil, err
	}
	c.Begin(nil)
	return c, nil
}

// buildChain returns a chain whose stages have not begun a text.
func buildChain(s Settings, vocab int) (*Chain, error) {
	sampler, err := newSampler(s.Params, vocab)
	if err != nil {
		return nil, err
	}
	sampler.sampleIndex, sampler.ends = s.SampleIndex, s.Penalties.Ends
	c := &Chain{settings: s, vocab: vocab, sampler: sampler}
	c.adapts = s.Params.Mirostat.Version != 0 && !s.Params.Greedy()
	c.addPenalties()
	c.addStages()
	c.flat = len(c.steps) == 0 && len(c.stages) == 0 && !c.adapts
	if len(c.steps) > 0 {
		c.logits = make([]float32, vocab)
	}
	return c, nil
}

// addPenalties makes the steps of the penalties that are on.
func (c *Chain) addPenalties() {
	p := &c.settings.Penalties
	if len(p.Bias) > 0 {
		c.steps = append(c.steps, step{name: "logit bias", apply: c.applyBias})
		for _, b := range p.Bias {
			if math.IsInf(float64(b.Add), -1) {
				c.banned = append(c.banned, b.ID)
			}
		}
		slices.Sort(c.banned)
	}
	if p.repeats() {
		c.repeated = newCounter(p.RepeatWindow, c.vocab)
		c.steps = append(c.steps, step{name: "repeat penalty", apply: c.applyRepeat})
	}
	if p.counts() {
		c.present = newCounter(p.Window, c.vocab)
		c.steps = append(c.steps, step{name: "presence and frequency penalties", apply: c.applyCounts})
	}
	if p.DRY.Multiplier > 0 {
		c.repetitions = newRepetitions(p.DRY, c.vocab)
		c.steps = append(c.steps, step{name: "DRY", apply: c.applyDRY})
	}
	if p.MinTokens > 0 && len(p.Ends) > 0 {
		c.steps = append(c.steps, step{name: "minimum length", apply: c.applyMinTokens})
	}
}

// addStages makes the steps of the stages that keep a state of their own.
func (c *Chain) addStages() {
	if t := c.settings.Thinking; t.on() {
		c.stages = append(c.stages, newThinking(t))
	}
	c.stages = append(c.stages, c.settings.Stages...)
	c.picker = -1
	pickers := 0
	for i, stage := range c.stages {
		if _, ok := stage.(Legal); ok {
			c.legal = append(c.legal, i)
		}
		if _, ok := stage.(Preparer); ok {
			c.ahead.stages = append(c.ahead.stages, i)
		}
		if _, ok := stage.(Picker); ok {
			c.picker = i
			pickers++
		}
		if _, ok := stage.(Ender); ok {
			c.enders = append(c.enders, i)
		}
		st := step{name: fmt.Sprintf("%T", stage), apply: func(s State, logits []float32) {
			c.stages[i].Apply(c.state(s, i), logits)
		}}
		if named, ok := stage.(fmt.Stringer); ok {
			st.name = named.String()
		}
		if f, ok := stage.(Failing); ok {
			st.fault = func(s State) error { return f.Err(c.state(s, i)) }
		}
		if f, ok := stage.(Expecting); ok {
			st.expected = func(s State) string { return f.Expected(c.state(s, i)) }
		}
		c.steps = append(c.steps, st)
	}
	if pickers > 1 {
		c.picker = -1
	}
}

// state returns the state of a stage.
func (c *Chain) state(s State, stage int) StageState {
	return c.states[int(s)*len(c.stages)+stage]
}

// Params returns the parameters that the chain draws by.
func (c *Chain) Params() Params { return c.settings.Params }

// SampleIndex returns the number of the answer in its request.
func (c *Chain) SampleIndex() int { return c.settings.SampleIndex }

// SetSampleIndex changes the number of the answer in its request, and with it all random numbers: for a fork that is to
// be another sample.
func (c *Chain) SetSampleIndex(i int) { c.settings.SampleIndex, c.sampler.sampleIndex = i, i }

// Begin begins a text by its prompt and forgets all states.
func (c *Chain) Begin(prompt []token.ID) {
	if !c.flat {
		c.repeated.reset()
		c.present.reset()
		c.repetitions.reset(c.text)
		c.text, c.trunk, c.prompt, c.cursor = c.text[:0], 0, 0, 0
	}
	c.nodes, c.seen = append(c.nodes[:0], node{}), c.seen[:0]
	c.states = slices.Grow(c.states[:0], len(c.stages))[:len(c.stages)]
	c.Append(prompt, true)
}

// Append adds tokens to the trunk that no draw gave, and forgets all states but 0. They are a further prompt, behind
// which a new answer begins, or a part of the answer.
func (c *Chain) Append(ids []token.ID, prompt bool) {
	if c.flat {
		return
	}
	c.settle(0)
	c.states = c.states[:len(c.stages)]
	c.nodes[0].seen, c.seen = span{}, c.seen[:0]
	for _, id := range ids {
		c.push(id)
		if !prompt {
			for i, stage := range c.stages {
				c.states[i] = stage.Next(c.states[i], id)
			}
		}
	}
	c.trunk = len(c.text)
	if !prompt {
		c.keepStages(c.states)
		return
	}
	c.prompt = c.trunk
	for _, n := range []*counter{c.repeated, c.present} {
		if n != nil && n.window == 0 {
			n.reset()
		}
	}
	c.nodes[0].mu = c.firstMu()
	for i, stage := range c.stages {
		c.states[i] = stage.Start(c.text)
	}
}

// keepStages lets the stages forget all states but the given ones, and puts those first.
func (c *Chain) keepStages(kept []StageState) {
	for i, stage := range c.stages {
		s := kept[i]
		if k, ok := stage.(Keeper); ok {
			s = k.Keep(s)
		}
		c.states[i] = s
	}
}

// Next returns the state behind a token that follows s; the same for the same arguments.
func (c *Chain) Next(s State, id token.ID) State {
	if c.flat {
		return 0
	}
	for n := c.nodes[s].child; n != 0; n = c.nodes[n].sibling {
		if c.nodes[n].id == id {
			return n
		}
	}
	n := State(len(c.nodes))
	c.nodes = append(c.nodes, node{parent: s, sibling: c.nodes[s].child, id: id, depth: c.nodes[s].depth + 1})
	c.nodes[s].child = n
	for i, stage := range c.stages {
		c.states = append(c.states, stage.Next(c.state(s, i), id))
	}
	return n
}

// Keep makes s the trunk's end, which is state 0, and forgets all other states.
func (c *Chain) Keep(s State) {
	if c.flat {
		return
	}
	c.settle(s)
	c.keepStages(c.states[int(s)*len(c.stages):])
	c.states = c.states[:len(c.stages)]
}

// settle is Keep without the stages.
func (c *Chain) settle(s State) {
	c.move(s)
	c.trunk, c.cursor = len(c.text), 0
	mu, seen := 0.0, c.nodes[s].seen
	if c.adapts {
		mu = c.mu(s)
	}
	c.seen = c.seen[:copy(c.seen, c.seen[seen.from:seen.to])]
	c.nodes = c.nodes[:1]
	c.nodes[0] = node{mu: mu, seen: span{0, len(c.seen)}}
}

// Fork returns a chain for a copy of the text at the trunk's end. It draws the same tokens; see SetSampleIndex.
func (c *Chain) Fork() *Chain {
	settings := c.settings
	settings.Stages = slices.Clone(settings.Stages)
	states := slices.Clone(c.states[:len(c.stages)])
	first := len(c.stages) - len(settings.Stages)
	for i, stage := range settings.Stages {
		if f, ok := stage.(Forker); ok {
			settings.Stages[i], states[first+i] = f.Fork(states[first+i])
		}
	}
	f, _ := buildChain(settings, c.vocab) // the settings are those of c
	f.states = states
	if !c.flat {
		c.move(0)
	}
	f.text, f.trunk, f.prompt = slices.Clone(c.text), c.trunk, c.prompt
	c.repeated.copyTo(f.repeated)
	c.present.copyTo(f.present)
	c.repetitions.copyTo(f.repetitions)
	root := c.nodes[0]
	f.seen = slices.Clone(c.seen[root.seen.from:root.seen.to])
	f.nodes = []node{{mu: root.mu, seen: span{0, len(f.seen)}}}
	return f
}

// move brings the cursor, and the text with it, to a state: up to the last common node, and down from there.
func (c *Chain) move(s State) {
	c.way = c.way[:0]
	for at := s; at != c.cursor; {
		if c.nodes[at].depth >= c.nodes[c.cursor].depth {
			c.way = append(c.way, at)
			at = c.nodes[at].parent
		} else {
			c.pop()
			c.cursor = c.nodes[c.cursor].parent
		}
	}
	for i := len(c.way) - 1; i >= 0; i-- {
		c.push(c.nodes[c.way[i]].id)
	}
	c.cursor = s
}

// push appends a token to the text.
func (c *Chain) push(id token.ID) {
	c.text = append(c.text, id)
	c.repeated.push(c.text)
	c.present.push(c.text)
	c.repetitions.push(c.text)
}

// pop removes the last token of the text.
func (c *Chain) pop() {
	c.repeated.pop(c.text)
	c.present.pop(c.text)
	c.repetitions.pop(c.text)
	c.text = c.text[:len(c.text)-1]
}
