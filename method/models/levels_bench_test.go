package models

import (
	"testing"

	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/suite/gophertest"
	"grove/method"
)

// BenchmarkLevelsGopher reports the tokens a round that three levels of the gopher models give, and those of either smaller model alone as a chain, for the same texts
// and seeds. Every draft is run.
func BenchmarkLevelsGopher(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target, draft, nano := gophertest.Open(b, pool, gopher.Name), gophertest.Open(b, pool, gopher.DraftName), gophertest.Open(b, pool, gopher.NanoName)
	for _, c := range []struct {
		name, method string
		env          method.Env
	}{
		{"nano, draft, target", "levels", method.Env{Draft: nano.Model(), Middle: draft.Model()}},
		{"draft, target", "draft-chain", method.Env{Draft: draft.Model()}},
		{"nano, target", "draft-chain", method.Env{Draft: nano.Model()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			info, err := method.Find(c.method)
			if err != nil {
				b.Fatal(err)
			}
			gophertest.Rounds(b, target, info, c.env, 120)
		})
	}
}
