package kernel

// The generators of arm64's kernels. They stand in a file of every architecture, as go generate skips the others.

//go:generate go -C _asm run ./peakarm -out ../z_peak_arm64.s -stubs ../z_peak_arm64.go -pkg kernel
//go:generate go -C _asm run ./vectorarm -out ../z_vector_arm64.s -stubs ../z_vector_arm64.go -pkg kernel
//go:generate go -C _asm run ./attentionarm -out ../z_attention_arm64.s -stubs ../z_attention_arm64.go -pkg kernel
//go:generate go -C _asm run ./samplingarm -out ../z_sampling_arm64.s -stubs ../z_sampling_arm64.go -pkg kernel
