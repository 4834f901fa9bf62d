package step

import (
	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/text/token"
)

// asks are the rows of a step by the numbers that jobs know. Of a model whose rows give the token of their own place, a row that wants the distribution of the next token has a
// second one behind it, the mask, which gives that: it lives for the step alone.
type asks struct {
	mask   *token.ID // nil: rows give the token behind their own place
	rows   []int32   // by the job's number: the row in the step
	masks  []int32   // the mask behind it; none
	joined []compute.Result
}

const none = -1

// init makes room for the rows of a step.
func (a *asks) init(mask *token.ID, rows int) {
	a.mask, a.rows, a.masks = mask, make([]int32, 0, rows), make([]int32, 0, rows)
	if mask != nil {
		a.joined = make([]compute.Result, rows)
	}
}

func (a *asks) reset() { a.rows, a.masks = a.rows[:0], a.masks[:0] }

// add adds a row to a step, and the mask behind it where it asks for the next token.
func (a *asks) add(s *forest.Step, r forest.Row) (n forest.Node, more int, err error) {
	row, mask, want := int32(len(s.Rows())), int32(none), r.Want
	asks := a.mask != nil && r.Block == 0 && want.Head()
	if asks {
		r.Want.Logits, r.Want.Top, r.Want.Subset = false, 0, nil
	}
	if n, err = s.Add(r); err != nil {
		return n, 0, err
	}
	if asks {
		mask, more = row+1, 1
		if _, err := s.Add(forest.Row{
			Seq: r.Seq, Parent: n, ID: *a.mask, Adapter: r.Adapter, Transient: true, To: r.To, Skip: r.Skip, SkipAttention: r.SkipAttention, SkipFeedForward: r.SkipFeedForward,
			Want: forest.Want{Logits: want.Logits, Top: want.Top, Subset: want.Subset},
		}); err != nil {
			return forest.Trunk, 0, err
		}
	}
	a.rows, a.masks = append(a.rows, row), append(a.masks, mask)
	return n, more, nil
}

// result returns what a row gave: the distribution is its mask's, and the rest its own.
func (a *asks) result(x *compute.Exec, row int) *compute.Result {
	own := x.Result(int(a.rows[row]))
	if a.masks[row] == none {
		return own
	}
	mask, to := x.Result(int(a.masks[row])), &a.joined[row]
	*to = *own
	to.Logits, to.Top, to.LSE = mask.Logits, mask.Top, mask.LSE
	return to
}
