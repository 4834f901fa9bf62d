package kseq

import (
	"testing"

	"grove/gopher"
	"grove/internal/par"
	"grove/method"
	_ "grove/model/all" // links the architecture
	"grove/suite/gophertest"
	"grove/verify"
)

// BenchmarkGopher reports the tokens a round that K-SEQ gives with the gopher models, and those of one chain of the
// same length by block verification, for the same texts and seeds. Every round drafts.
func BenchmarkGopher(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target, draft := gophertest.Open(b, pool, gopher.Name), gophertest.Open(b, pool, gopher.DraftName)
	info, err := method.Find("kseq")
	if err != nil {
		b.Fatal(err)
	}
	block := info
	block.Rule, block.Provides.Chain = verify.Block, true
	block.Open = func(e method.Env) (method.Method, error) { return &kseq{shape: oneChain, env: e}, nil }
	for _, c := range []struct {
		name string
		info method.Info
	}{{"kseq", info}, {"block", block}} {
		b.Run(c.name, func(b *testing.B) {
			gophertest.Rounds(b, target, c.info, method.Env{Draft: draft.Model()}, 120)
		})
	}
}
