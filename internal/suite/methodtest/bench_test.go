package methodtest

import (
	"testing"

	"grove/internal/engine"
	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/suite/gophertest"
	"grove/method"
)

// deep is the gopher that was trained for exits: 12 layers, beside the embedded ones.
const deep = "gopher-deep"

// BenchmarkLayers reports the tokens a round that methods give which draft with the model's own layers, for the same texts and seeds. Every
// round drafts.
func BenchmarkLayers(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	for _, m := range []struct {
		name    string
		target  *engine.Engine
		methods []string
	}{
		{gopher.Name, gophertest.Open(b, pool, gopher.Name), []string{"swift", "layerskip:exit=1", "layerskip:exit=2", "layerskip:exit=3", "del", "draft-verify"}},
		{deep, gophertest.OpenFile(b, pool, "../../gopher/testdata/"+deep+"/"+deep+".q8_0.gguf"), []string{
			"swift", "layerskip:exit=2", "layerskip:exit=3", "layerskip:exit=4", "layerskip:exit=6", "layerskip:exit=9", "del", "draft-verify"}},
	} {
		for _, name := range m.methods {
			info, err := method.Find(name)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(m.name+"/"+name, func(b *testing.B) { gophertest.Rounds(b, m.target, info, method.Env{}, 120) })
		}
	}
}
