package draft

import (
	"testing"

	"grove/gopher"
	"grove/internal/par"
	"grove/method"
	_ "grove/model/all" // links the architecture
	"grove/suite/gophertest"
)

// BenchmarkGopher reports the tokens a round that the methods of draws give with the gopher models, for the same texts and
// seeds. Every round drafts.
func BenchmarkGopher(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target, draft := gophertest.Open(b, pool, gopher.Name), gophertest.Open(b, pool, gopher.DraftName)
	for _, a := range all {
		if !a.draws() {
			continue
		}
		info, err := method.Find(a.name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(a.name, func(b *testing.B) {
			gophertest.Rounds(b, target, info, method.Env{Draft: draft.Model()}, 240)
		})
	}
}
