package method

import (
	"context"
	"fmt"
	"sync"
)

// WorkAhead starts the work of the drafters that are [Ahead], and returns a function that ends it. That panics where one of them did, with
// the name of its method in infos.
func WorkAhead(ctx context.Context, drafters []Drafter, infos []Info) (wait func()) {
	wait = func() {}
	for i, d := range drafters {
		a, ok := d.(Ahead)
		if !ok {
			continue
		}
		ctx, end := context.WithCancel(ctx)
		var work sync.WaitGroup
		var fault any
		work.Go(func() {
			defer func() { fault = recover() }()
			a.Work(ctx)
		})
		next := wait
		wait = func() {
			next()
			end()
			work.Wait()
			if fault != nil {
				panic(fmt.Sprintf("method %s: %v", infos[i].Name, fault))
			}
		}
	}
	return wait
}
