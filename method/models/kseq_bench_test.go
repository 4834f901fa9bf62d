package models

import (
	"testing"

	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/suite/gophertest"
	"grove/internal/verify"
	"grove/method"
)

// BenchmarkKseqGopher reports the tokens a round that K-SEQ gives with the gopher models, and those of one chain of the
// same length by block verification, for the same texts and seeds. Every round drafts.
func BenchmarkKseqGopher(b *testing.B) {
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
