package batch

import (
	"context"
	"slices"
)

// Fault is why a line is no request.
type Fault struct {
	Line    int    `json:"line"` // its number in the file, from 1
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Check reads all lines. It returns the names of the models that they ask for, once each, where "" stands for requests that name none, and the faults of the lines that are no
// requests; of both most at most. Nothing is asked or written. Errors: those of reading, ctx's.
func (b *Batch) Check(ctx context.Context, most int) (models []string, faults []Fault, err error) {
	for i := range b.in.lines {
		if len(faults) == most || ctx.Err() != nil {
			break
		}
		q, bad, err := b.check(i)
		if err != nil {
			return nil, nil, err
		}
		if bad != nil {
			faults = append(faults, Fault{int(b.in.lines[i].number), bad.Code, bad.Message})
		} else if name := q.modelName(); len(models) < most && !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	return models, faults, context.Cause(ctx)
}

// FailRest writes for each line that is not done that it failed, by a code, such as that of a batch that was cancelled. Lines that are no requests keep their own faults.
func (b *Batch) FailRest(code, message string) error {
	for i := range b.in.lines {
		if b.done[i] {
			continue
		}
		q, bad, err := b.check(i)
		if bad == nil {
			bad = &Refusal{code, message}
		}
		if err == nil {
			err = b.write(i, q.Refuse(bad))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
