package verify

// Reject tests the drafts behind each node in the order in which they were drawn, without replacement. After each
// rejection it goes on with the residual of the target's distribution. It takes trees; of a tree whose drafts are not
// draws it does what [Match] does.
var Reject = register(Rule{
	Name: "reject", Paper: "Recursive rejection sampling: Recursive Speculative Decoding (Jeon et al.), section 3, 2024",
	Grade: SameDistribution, Needs: Properties{Distributions: true},
	New: func() Acceptor {
		return &descent{draws: draws{rule: "reject", other: "kseq"}, test: (*descent).residual}
	},
})
