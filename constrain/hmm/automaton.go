package hmm

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"grove/constrain/vocab"
	"grove/internal/kernel"
	"grove/internal/text/token"
)

// Machine is a finite automaton over bytes: where Step reports true, some text leads on from next to a final state. Its
// first state is 0.
type Machine interface {
	// Step returns the state behind a byte that follows a state.
	Step(state int, b byte) (next int, alive bool)
	// Final reports whether the text may end at a state.
	Final(state int) bool
}

// ErrTooLarge means that a machine has more states behind tokens, or a table more cells, than are computed.
var ErrTooLarge = errors.New("the automaton is too large")

// The bounds of an automaton: its states, its edges token by token, the cells of its table.
const (
	MaxAutomaton = 1 << 13
	maxEdges     = 1 << 25
	maxTable     = 1 << 25
)

// Automaton is a machine over the tokens of a vocabulary, and of each state, how likely a model is to end a text from
// there within so many tokens. It is immutable and safe for concurrent use.
type Automaton struct {
	vocab   *vocab.Vocabulary
	machine Machine
	model   *Model // nil: masks alone
	states  []int  // of the machine
	numbers map[int]int32
	rows    [][]edge
	horizon int
	usable  []float64   // of each hidden state: how likely it is to emit a token of a text, or its end
	ends    []float64   // and its end
	sums    [][]float64 // by row and edge, then by hidden state: the emissions of the edge's tokens
	levels  []level     // by the tokens that are left
}

// An edge is the tokens that lead from one state to another.
type edge struct {
	to     int32
	tokens []token.ID
}

// A level says of each state, and of the hidden state before it, how likely the text is to end legally within so many
// tokens. Values are relative to the state's largest, whose logarithm is kept: texts may be very unlikely.
type level struct {
	value []float32 // by state and hidden state
	scale []float64 // by state; minus infinity: it cannot
}

// Compile returns the automaton of a machine for texts of horizon tokens, the end among them: a text that is legal as it
// stands when they are spent counts as ended. Without a model horizon has no meaning. Errors: [ErrTooLarge]; a model of
// another vocabulary; a machine that no text leads through.
func Compile(v *vocab.Vocabulary, machine Machine, model *Model, horizon int) (*Automaton, error) {
	a := &Automaton{vocab: v, machine: machine, model: model, numbers: map[int]int32{}, horizon: horizon}
	if err := a.addStates(); err != nil {
		return nil, err
	}
	if model == nil {
		return a, nil
	}
	switch {
	case model.vocab > v.Size():
		return nil, fmt.Errorf("hmm: the model has %d tokens, the vocabulary %d: it was made of another one", model.vocab, v.Size())
	case horizon < 1:
		return nil, fmt.Errorf("hmm: a horizon of %d tokens; at least 1", horizon)
	}
	a.addSums()
	return a, a.addLevels()
}

// addStates finds the states that tokens lead to, and their edges.
func (a *Automaton) addStates() error {
	aliases := a.aliases()
	a.number(0)
	entries := 0
	for n := 0; n < len(a.states); n++ {
		if len(a.states) > MaxAutomaton {
			return fmt.Errorf("hmm: more than %d states: %w", MaxAutomaton, ErrTooLarge)
		}
		row := a.row(a.states[n], aliases)
		for _, e := range row {
			entries += len(e.tokens)
		}
		if entries > maxEdges {
			return fmt.Errorf("hmm: more than %d edges of tokens: %w", maxEdges, ErrTooLarge)
		}
		a.rows = append(a.rows, row)
	}
	if len(a.rows[0]) == 0 && !a.machine.Final(0) {
		return errors.New("hmm: no token leads into the automaton: the vocabulary cannot spell its texts")
	}
	return nil
}

// number returns the number of a state of the machine.
func (a *Automaton) number(state int) int32 {
	n, ok := a.numbers[state]
	if !ok {
		n = int32(len(a.states))
		a.numbers[state], a.states = n, append(a.states, state)
	}
	return n
}

// aliases returns the tokens that have the bytes of another, by that one.
func (a *Automaton) aliases() map[token.ID][]token.ID {
	inTrie := make([]bool, a.vocab.Size())
	first := map[string]token.ID{}
	for _, n := range a.vocab.Trie() {
		if id := n.Token(); id != vocab.None {
			inTrie[id] = true
			first[string(a.vocab.Bytes(token.ID(id)))] = token.ID(id)
		}
	}
	all := map[token.ID][]token.ID{}
	for i := range inTrie {
		id := token.ID(i)
		if of, ok := first[string(a.vocab.Bytes(id))]; ok && !inTrie[i] && a.vocab.Kind(id) == vocab.Ordinary {
			all[of] = append(all[of], id)
		}
	}
	return all
}

// row returns the edges of a state of the machine, in the order in which the trie meets their ends.
func (a *Automaton) row(state int, aliases map[token.ID][]token.ID) (row []edge) {
	at := map[int32]int{}
	way := []int{state}
	trie := a.vocab.Trie()
	for i := 1; i < len(trie); {
		depth := trie[i].Depth()
		next, alive := a.machine.Step(way[depth-1], trie[i].Byte())
		if !alive {
			i += trie[i].Size()
			continue
		}
		way = append(way[:depth], next)
		if id := token.ID(trie[i].Token()); id != vocab.None && a.vocab.Kind(id) == vocab.Ordinary {
			to := a.number(next)
			k, ok := at[to]
			if !ok {
				k = len(row)
				at[to], row = k, append(row, edge{to: to})
			}
			row[k].tokens = append(append(row[k].tokens, id), aliases[id]...)
		}
		i++
	}
	return row
}

// emissions returns how likely each hidden state is to emit a token; none for tokens that the model has not.
func (a *Automaton) emissions(id token.ID) []float32 {
	n := a.model.states
	if int(id) >= a.model.vocab {
		return nil
	}
	return a.model.emit[int(id)*n : int(id)*n+n]
}

// addSums sums the emissions of edges, of ends and of all usable tokens. Special tokens are no part of a text: each hidden
// state's emissions are relative to those of the others.
func (a *Automaton) addSums() {
	n := a.model.states
	a.usable, a.ends = make([]float64, n), make([]float64, n)
	sum := func(dst []float64, id token.ID) {
		for z, p := range a.emissions(id) {
			dst[z] += float64(p)
		}
	}
	for i := range a.vocab.Size() {
		switch id := token.ID(i); a.vocab.Kind(id) {
		case vocab.Ordinary:
			sum(a.usable, id)
		case vocab.End:
			sum(a.usable, id)
			sum(a.ends, id)
		}
	}
	for z, u := range a.usable {
		if u == 0 {
			a.usable[z] = 1
		}
		a.ends[z] /= a.usable[z]
	}
	for _, row := range a.rows {
		all := make([]float64, n*len(row))
		for k, e := range row {
			for _, id := range e.tokens {
				sum(all[n*k:n*k+n], id)
			}
			for z := range n {
				all[n*k+z] /= a.usable[z]
			}
		}
		a.sums = append(a.sums, all)
	}
}

// addLevels makes the table, until a level equals the one before.
func (a *Automaton) addLevels() error {
	if cells := len(a.rows) * a.model.states; cells*min(a.horizon, 8) > maxTable {
		return fmt.Errorf("hmm: a table of %d states, %d hidden states and %d tokens; at most %d cells: %w",
			len(a.rows), a.model.states, a.horizon, maxTable, ErrTooLarge)
	}
	last := level{make([]float32, len(a.rows)*a.model.states), make([]float64, len(a.rows))}
	for d, state := range a.states {
		if last.scale[d] = math.Inf(-1); a.machine.Final(state) {
			last.scale[d] = 0
			for z := range a.model.states {
				last.value[d*a.model.states+z] = 1
			}
		}
	}
	a.levels = append(a.levels, last)
	for t := 1; t < a.horizon; t++ {
		if len(a.levels)*len(last.value) > maxTable {
			return fmt.Errorf("hmm: a table of more than %d cells: %w", maxTable, ErrTooLarge)
		}
		next := level{make([]float32, len(last.value)), make([]float64, len(a.rows))}
		for d := range a.rows {
			c, scale := a.complete(last, d)
			next.scale[d] = a.move(next.value[d*a.model.states:(d+1)*a.model.states], c, scale)
		}
		if slices.Equal(next.value, last.value) && slices.EqualFunc(next.scale, last.scale, almost) {
			break
		}
		a.levels = append(a.levels, next)
		last = next
	}
	return nil
}

func almost(x, y float64) bool { return x == y || math.Abs(x-y) < 1e-7 }

// complete returns how likely a text is to end legally from a state within one token more than those of a level, by the
// hidden state that emits the next token, and the logarithm by which these values are to be scaled.
func (a *Automaton) complete(l level, d int) (c []float64, scale float64) {
	n := a.model.states
	final := a.machine.Final(a.states[d])
	scale = math.Inf(-1)
	if final {
		scale = 0
	}
	for _, e := range a.rows[d] {
		scale = max(scale, l.scale[e.to])
	}
	c = make([]float64, n)
	if math.IsInf(scale, -1) {
		return c, scale
	}
	for k, e := range a.rows[d] {
		factor := kernel.Exp64(l.scale[e.to] - scale)
		if factor == 0 {
			continue
		}
		for z, s := range a.sums[d][n*k : n*k+n] {
			c[z] += float64(float64(s*factor) * float64(l.value[int(e.to)*n+z]))
		}
	}
	if final {
		for z, e := range a.ends {
			c[z] += float64(e * kernel.Exp64(-scale))
		}
	}
	return c, scale
}

// move writes what c means for the hidden state before, relative to the largest, and returns the logarithm of that.
func (a *Automaton) move(dst []float32, c []float64, scale float64) float64 {
	n := a.model.states
	before := make([]float64, n)
	largest := 0.0
	for z := range n {
		for y, m := range a.model.move[n*z : n*z+n] {
			before[z] += float64(float64(m) * c[y])
		}
		largest = max(largest, before[z])
	}
	if largest == 0 {
		return math.Inf(-1)
	}
	for z, v := range before {
		dst[z] = float32(v / largest)
	}
	return scale + kernel.Log64(largest)
}

// level returns the level of so many tokens.
func (a *Automaton) level(left int) level { return a.levels[min(max(left, 0), len(a.levels)-1)] }

// LogProbability returns the logarithm of the probability that the model ends a text legally within the horizon; 0
// without a model.
func (a *Automaton) LogProbability() float64 {
	if a.model == nil {
		return 0
	}
	c, scale := a.complete(a.level(a.horizon-1), 0)
	sum := 0.0
	for z, p := range a.model.start {
		sum += float64(float64(p) * c[z])
	}
	if sum == 0 {
		return math.Inf(-1)
	}
	return kernel.Log64(sum) + scale
}

// States returns the number of states that tokens lead to.
func (a *Automaton) States() int { return len(a.rows) }
