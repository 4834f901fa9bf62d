package methodtest

import (
	"testing"

	"grove/gopher"
	"grove/internal/par"
	"grove/method"
	_ "grove/model/all" // links the architecture
	"grove/suite/gophertest"
)

// BenchmarkLayers reports the tokens a round that methods give which draft with the model's own layers, for the same texts and seeds. Every
// round drafts.
func BenchmarkLayers(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target := gophertest.Open(b, pool, gopher.Name)
	for _, name := range []string{"swift", "layerskip:exit=1", "layerskip:exit=2", "layerskip:exit=3", "del", "draft-verify"} {
		info, err := method.Find(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) { gophertest.Rounds(b, target, info, method.Env{}, 120) })
	}
}
