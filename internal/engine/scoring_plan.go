// scoring_plan.go computes the log-probabilities of given continuations behind one prefix. The prefix is computed once, and the
// continuations are branches of one tree, whose rows share steps.

package engine

import (
	"slices"

	"grove/internal/text/token"
)

// ScoreToken is a token of a continuation.
type ScoreToken struct {
	ID      token.ID
	Logprob float32 // natural logarithm of the model's probability behind the prefix and the tokens before it
	Greedy  bool    // it is the first of the likeliest tokens
}

// trunk is the parent of a branch's first row, and the row whose logits score first tokens.
const trunk = -1

// scoringRow is a row of a batch.
type scoringRow struct {
	parent int // its number in the batch, or trunk
	id     token.ID
}

// read is a token that a row's logits score: the token at a place of a continuation.
type read struct{ row, continuation, at int }

// batch is the rows of a step.
type batch struct {
	rows   []scoringRow
	reads  []read
	before int  // tokens of the continuation that the batches before it have committed
	commit bool // the rows are one path that the next batch goes on from
}

// planBatches cuts continuations into batches of at most so many rows. Continuations that begin alike share rows. The last token of a
// continuation needs no row. One that needs more rows than a batch has is cut into batches of its own, which go on from each other.
func planBatches(continuations [][]token.ID, most int) (all []batch) {
	order := make([]int, len(continuations))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(continuations[a], continuations[b]) })
	var b batch
	var before []token.ID // the continuation that path is of
	var path []int        // its rows in b
	for _, c := range order {
		ids := continuations[c]
		if len(ids)-1 > most {
			all = append(all, cut(ids, c, most)...)
			continue
		}
		shared := min(common(before, ids), len(path), len(ids)-1)
		if len(b.rows)+len(ids)-1-shared > most {
			all = append(all, b)
			b, path, shared = batch{}, nil, 0
		}
		before, path = ids, path[:shared]
		b.grow(&path, ids[:len(ids)-1])
		for at, row := range path {
			b.reads = append(b.reads, read{row, c, at + 1})
		}
	}
	if len(b.rows) > 0 {
		all = append(all, b)
	}
	return all
}

// grow adds the rows that a path of tokens lacks.
func (b *batch) grow(path *[]int, ids []token.ID) {
	for at := len(*path); at < len(ids); at++ {
		parent := trunk
		if at > 0 {
			parent = (*path)[at-1]
		}
		*path = append(*path, len(b.rows))
		b.rows = append(b.rows, scoringRow{parent, ids[at]})
	}
}

// cut returns the batches of one long continuation.
func cut(ids []token.ID, continuation, most int) (all []batch) {
	for at := 0; at < len(ids)-1; at += most {
		end := min(at+most, len(ids)-1)
		b := batch{before: at, commit: end < len(ids)-1}
		for i := at; i < end; i++ {
			b.rows = append(b.rows, scoringRow{i - at - 1, ids[i]}) // the first one's parent is the trunk
			b.reads = append(b.reads, read{i - at, continuation, i + 1})
		}
		all = append(all, b)
	}
	return all
}

// common returns how many tokens two texts begin with alike.
func common(a, b []token.ID) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
