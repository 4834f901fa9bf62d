package speculate

import (
	"fmt"
	"sort"
	"unsafe"

	"grove/internal/compute"
	"grove/internal/engine/plan"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/method"
)

// wider is how many times more drafts a tree has room for than are run: of these the planner runs the best.
const wider = maxDrafts / plan.MaxDraft

// Rounds returns what the rounds of a text take with any method: trees of so many drafts that run, and what the model's rows give.
func Rounds(drafts int, model method.Size) MemoryBytes {
	room := wider * drafts
	const place = int(unsafe.Sizeof(forest.Node(0)) + unsafe.Sizeof(int32(0)) + 2*unsafe.Sizeof(int32(0)))
	return MemoryBytes{Trees: method.TreeBytes(room, 0) + room*place, Logits: model.RowBytes(1 + drafts)}
}

// need returns what the text's rounds of so many drafts take at most.
func (x *Text) need(drafts int, model method.Size, p sample.Params) MemoryBytes {
	all := Rounds(drafts, model)
	for _, i := range x.set.Infos {
		if i.Provides.Distributions {
			all.Trees += method.TreeBytes(0, drafts+1)
		}
	}
	if x.Watched {
		floats, tops, hidden := kept1(x.Wants.Rows, x.Wants.Probs, model)
		all.Kept = (1 + drafts) * (int(unsafe.Sizeof(method.RowResult{})) + 4*floats + tops*int(unsafe.Sizeof(compute.TopEntry{})) + hidden*int(unsafe.Sizeof([]float32{})))
	}
	for _, d := range x.drafters {
		if s, ok := d.(method.Sized); ok {
			r := s.MemoryFor(drafts, p)
			all.Add(1, MemoryBytes{Trees: r.Trees, Distributions: r.Distributions, Logits: r.Logits})
		}
	}
	return all
}

// kept1 returns how many values, entries of tops and hidden states are kept of a row that gives what w says, and a distribution with probs.
func kept1(w forest.Want, probs bool, model method.Size) (floats, tops, hidden int) {
	if w.Logits {
		floats += model.Vocabulary
	}
	if probs {
		floats += model.Vocabulary
	}
	if w.State {
		floats += model.Width
	}
	return floats + w.Hidden.Len()*model.Width, min(w.Top, model.Vocabulary), w.Hidden.Len()
}

// Fit makes the rounds of the text, which is drawn by p, as large as limits allow, and makes their room. It returns an error where the
// limit leaves no room for one draft.
func (x *Text) Fit(limits MemoryLimits, model method.Size, p sample.Params) error {
	drafts := limits.Drafts
	if limits.Bytes > 0 {
		drafts = sort.Search(limits.Drafts, func(n int) bool { return x.need(n+1, model, p).Total() > limits.Bytes })
	}
	if drafts < 1 {
		return &MemoryError{x.set.name(), x.need(1, model, p).Total(), limits.Bytes}
	}
	x.drafts = drafts
	x.Tree = method.NewTree(wider*drafts, model.Vocabulary)
	x.Tree.MaxDrafts, x.Plan.MaxDrafts, x.Plan.Layers = drafts, drafts, model.Layers
	x.Plan.Reserve(wider * drafts)
	x.Nodes, x.Rows = make([]forest.Node, wider*drafts), make([]int32, wider*drafts)
	if x.model = model; x.Watched {
		x.reserve()
	}
	x.needs = x.need(drafts, model, p)
	return nil
}

// reserve makes room for what the rows of a round give.
func (x *Text) reserve() {
	rows := 1 + x.drafts
	floats, tops, hidden := kept1(x.Wants.Rows, x.Wants.Probs, x.model)
	x.kept = make([]method.RowResult, 0, rows)
	x.store.Reserve(rows*floats, rows*tops, rows*hidden)
}

// Needs returns what the text's rounds take at most.
func (x *Text) Needs() MemoryBytes { return x.needs }

// Drafts returns how many drafts a round runs at most.
func (x *Text) Drafts() int { return x.drafts }

// Held returns what the text and its drafters have made. The logits of steps and passes, which the models have, are not among it.
func (x *Text) Held() MemoryBytes {
	all := MemoryBytes{
		Trees: x.Tree.Bytes() + int(unsafe.Sizeof(forest.Node(0)))*cap(x.Nodes) + int(unsafe.Sizeof(int32(0)))*cap(x.Rows) + x.Plan.Bytes(),
		Kept:  x.store.Bytes() + int(unsafe.Sizeof(method.RowResult{}))*cap(x.kept),
	}
	for _, d := range x.drafters {
		if s, ok := d.(method.Sized); ok {
			r := s.Held()
			all.Add(1, MemoryBytes{Trees: r.Trees, Distributions: r.Distributions, Logits: r.Logits})
		}
	}
	return all
}

// MemoryError reports methods whose rounds have no room for one draft.
type MemoryError struct {
	Methods string
	Need    int // bytes that a round of one draft takes
	Limit   int // bytes that a text's rounds may take
}

// Error implements error.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("engine: method %s: a round of one draft takes %d bytes, and %d are left for a text's rounds", e.Methods, e.Need, e.Limit)
}

// Least returns what the rounds of a text of so many drafts take with the methods of automatic mode, whose models have these sizes.
func Least(drafts int, target method.Size, beside []method.Size) int {
	all := Rounds(drafts, target).Total() + (1+drafts)*int(unsafe.Sizeof(method.RowResult{})+keptTop*unsafe.Sizeof(compute.TopEntry{}))
	for _, m := range beside {
		all += m.RowBytes(1) + 4*m.Vocabulary
	}
	return all
}

// keptTop is how many of a row's likeliest tokens the methods of automatic mode keep at most.
const keptTop = 16
