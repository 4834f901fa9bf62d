package verify

// SpecInfer tests the independent draws behind each node one after the other, and goes on with the residual of the
// target's distribution after each rejection: no later draw of a rejected token is accepted. It takes the trees of [KSEQ]. Of a tree
// whose drafts are not draws it does what [Match] does.
var SpecInfer = register(Rule{
	Name: "specinfer", Paper: "Multi-step speculative sampling: SpecInfer (Miao et al.), algorithm 2, 2023",
	Grade: SameDistribution, Needs: Properties{Distributions: true, WithReplacement: true},
	New: func() Acceptor {
		return &descent{draws: draws{rule: "specinfer", replacement: true}, test: (*descent).residual}
	},
})
