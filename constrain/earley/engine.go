package earley

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// Errors of engines. Those of budgets are also an [ErrBudget].
var (
	ErrIllegal = errors.New("earley: the text cannot go on so") // ErrIllegal is a token or a byte that may not follow.
	ErrBudget  = errors.New("earley: budget spent")             // ErrBudget is any budget that is spent.

	ErrRow    = fmt.Errorf("%w: items of a row", ErrBudget)                             // ErrRow is Limits.RowItems.
	ErrItems  = fmt.Errorf("%w: items of a call", ErrBudget)                            // ErrItems is Limits.CallItems.
	ErrLexer  = fmt.Errorf("%w: states of the lexer of a call", ErrBudget)              // ErrLexer is Limits.LexerStates.
	ErrWalk   = fmt.Errorf("%w: nodes of the vocabulary that a call visits", ErrBudget) // ErrWalk is Limits.WalkNodes.
	ErrMemory = fmt.Errorf("%w: memory of a call", ErrBudget)                           // ErrMemory is 20 MiB beyond Limits.Bytes.
	ErrRegex  = fmt.Errorf("%w: regular expressions", ErrBudget)                        // ErrRegex is a budget of the store of lexemes.
)

// Limits bound what an engine may spend. Zero means the default.
type Limits struct {
	RowItems    int // items of one row. Default: 2,000
	CallItems   int // items of the rows that a mask, or a byte, makes. Default: 50,000
	LexerStates int // states of the lexer that a mask, or a byte, makes. Default: 250,000
	WalkNodes   int // nodes of the trie that the walks of a mask visit. Default: 20,000,000, about a tenth of a second
	Bytes       int // memory of the grammar and all that is kept to be used again, about. Beyond it, and a quarter of it besides the grammar, all is forgotten before the next call. Default: 32 MiB
	MaskBytes   int // memory of the masks that are kept. Default: 16 MiB
}

func (l Limits) orDefault() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.RowItems, 2000}, {&l.CallItems, 50_000}, {&l.LexerStates, 250_000}, {&l.WalkNodes, 20_000_000}, {&l.Bytes, 32 << 20}, {&l.MaskBytes, 16 << 20}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return l
}

// A Mask is a set of tokens: token t is bit t%64 of word t/64. It is shared and must not be changed.
type Mask []uint64

// Has reports whether a token is in the mask.
func (m Mask) Has(id token.ID) bool {
	return id >= 0 && int(id>>6) < len(m) && m[id>>6]>>(id&63)&1 != 0
}

// A State stands for a text that the grammar allows so far. It belongs to one engine. Copies are equal; two texts that can go
// on in the same ways mostly have equal states. The zero State is of no engine.
type State struct{ p *state }

// Valid reports whether the state is of an engine.
func (s State) Valid() bool { return s.p != nil }

// An Engine says what may follow a text of one grammar, in tokens of one vocabulary. It is safe for concurrent use: calls wait
// for each other. The grammar and its store of lexemes belong to it.
type Engine struct {
	mu     sync.Mutex
	src    grammar.Source
	store  *regex.Store
	vocab  *vocab.Vocabulary
	limits Limits

	greedy   bool
	ignored  regex.ID
	noSlices bool // walk all tokens: tests compare
	tables
	scratch
	ids  uint32 // rows, states of the lexer and texts made; never used twice
	top  *row   // where the text begins
	done *state // behind an end token

	held   atomic.Int64 // what Held found
	calls  int
	stays  int   // bytes of what lasts, at the last count
	born   int   // and at first
	err    error // of this call
	items  int   // of the rows of this call
	lexed  int   // states of the lexer of this call
	work   int   // steps of this call
	walked int   // nodes of this call
}

// New returns an engine. The source and its store belong to it from now on, and may be used by one engine at a time. Errors:
// those of Start.
func New(src grammar.Source, v *vocab.Vocabulary, l Limits) (*Engine, error) {
	e := &Engine{src: src, store: src.Store(), vocab: v, limits: l.orDefault(), greedy: src.Greedy(), ignored: src.Ignored()}
	e.top = &row{}
	e.done = &state{done: true}
	e.forget()
	e.stack = make([]config, vocab.MaxBytes+1)
	e.stateStack = make([]*state, vocab.MaxBytes+1)
	if _, err := e.Start(); err != nil {
		return nil, err
	}
	e.count()
	e.born = e.stays
	return e, nil
}

// begin starts a call: it takes the lock, and forgets what is kept where that is too much. It returns the state that stands for
// s from now on, nil for the zero State.
func (e *Engine) begin(s State) *state {
	e.mu.Lock()
	e.err, e.items, e.lexed, e.work, e.walked = nil, 0, 0, 0, 0
	e.store.Refuel()
	if e.bytes > max(e.limits.Bytes/4, e.limits.Bytes-e.stays) {
		e.forget()
	}
	if e.calls++; e.calls%countEvery == 0 {
		e.count()
	}
	return e.renew(s.p)
}

// Worn reports whether the store of lexemes, or the source, has spent more than half of its budgets, or has grown by more than half of
// Limits.Bytes, which no call gives back. An engine that serves many texts is replaced by a new one then, for the texts to come.
func (e *Engine) Worn() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if src, ok := e.src.(interface{ Worn() bool }); ok && src.Worn() {
		return true
	}
	return e.store.Worn() || e.lasting() > e.born+e.limits.Bytes/2
}

// failure returns the error of a call.
func (e *Engine) failure() error {
	if e.err == nil {
		if cause := e.store.Err(); cause != nil {
			e.err = fmt.Errorf("%w: %w", ErrRegex, cause)
		}
	}
	return e.err
}

// fail makes the call's error, once.
func (e *Engine) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// visit counts a node of a walk and reports whether the walk may go on.
func (e *Engine) visit() bool {
	if e.walked++; e.walked > e.limits.WalkNodes {
		e.fail(ErrWalk)
		return false
	}
	return true
}

// failed reports whether nothing that this call finds from now on means anything.
func (e *Engine) failed() bool { return e.err != nil || e.store.Err() != nil }

// Start returns the state of the empty text. Errors: budgets, and those of the source.
func (e *Engine) Start() (State, error) {
	e.begin(State{})
	defer e.mu.Unlock()
	p := e.start()
	if err := e.failure(); err != nil {
		return State{}, err
	}
	return State{p}, nil
}

// Next returns the state behind a token. Behind an end token only end tokens may follow. Errors: [ErrIllegal] where the mask
// of s forbids the token; budgets, and those of the source.
func (e *Engine) Next(s State, id token.ID) (State, error) {
	p := e.begin(s)
	defer e.mu.Unlock()
	p = e.token(p, id)
	if err := e.failure(); err != nil {
		return State{}, err
	}
	if p == nil {
		return State{}, fmt.Errorf("%w: token %d", ErrIllegal, id)
	}
	return State{p}, nil
}

// Allows reports whether a token may follow: its bit of the mask. Errors: budgets, and those of the source.
func (e *Engine) Allows(s State, id token.ID) (bool, error) {
	p := e.begin(s)
	defer e.mu.Unlock()
	legal := p != nil && p.mask.Has(id)
	if p != nil && p.mask == nil {
		legal = e.token(p, id) != nil
	}
	return legal, e.failure()
}

// Push returns the state behind as many bytes of a text as may follow, and their number. Errors: [ErrIllegal] where that is
// not all; budgets, and those of the source.
func (e *Engine) Push(s State, text []byte) (State, int, error) {
	p := e.begin(s)
	defer e.mu.Unlock()
	p, n := e.push(p, text)
	if err := e.failure(); err != nil {
		return s, 0, err
	}
	if n < len(text) {
		return State{p}, n, fmt.Errorf("%w: byte %d is %q", ErrIllegal, n, text[n])
	}
	return State{p}, n, nil
}

// Ends reports whether the text may end here. Errors of budgets count as no.
func (e *Engine) Ends(s State) bool {
	p := e.begin(s)
	defer e.mu.Unlock()
	return e.ends(p) && e.failure() == nil
}

// Mask returns the tokens that may follow, end tokens among them where the text may end. Errors: budgets, and those of the
// source.
func (e *Engine) Mask(s State) (Mask, error) {
	p := e.begin(s)
	defer e.mu.Unlock()
	m := e.mask(p)
	return m, e.failure()
}

// token returns the state behind a token, or nil where it may not follow.
func (e *Engine) token(p *state, id token.ID) *state {
	switch e.vocab.Kind(id) {
	case vocab.End:
		if e.ends(p) {
			return e.done
		}
	case vocab.Ordinary, vocab.Special:
		text := e.vocab.Bytes(id)
		if next, n := e.push(p, text); n == len(text) && next != nil && !next.done {
			return next
		}
	}
	return nil
}
