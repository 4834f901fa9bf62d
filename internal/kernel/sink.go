package kernel

// MergeSink merges an attention sink into m, l and o, those of all blocks: a score that joins the denominator
// and has no value (Xiao et al. 2023; gpt-oss). It is the last merge (N2).
//
// The order: that of MergeBlock with a sum of 1, and o = o*a.
func MergeSink(m, l *float32, o []float32, sink float32) {
	a, _ := mergeSum(m, l, sink, 1)
	scale(o, o, a)
}
