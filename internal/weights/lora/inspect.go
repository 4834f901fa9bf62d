package lora

import (
	"fmt"
	"io"

	"grove/internal/weights/tensor"
)

// Inspect writes a description of an adapter: its properties, and a line for each pair.
func Inspect(w io.Writer, a *Adapter) error {
	kind := "GGUF"
	if a.PEFT {
		kind = "PEFT"
	}
	low, high := a.Ranks()
	ranks := fmt.Sprint(high)
	if low != high {
		ranks = fmt.Sprintf("%d to %d", low, high)
	}
	text := fmt.Sprintf("LoRA adapter (%s) %q: %d pairs of rank %s, %.1f MB\n", kind, a.Name, len(a.Pairs), ranks, float64(a.Bytes())/1e6)
	if a.Arch != "" {
		text += fmt.Sprintf("for architecture %q\n", a.Arch)
	}
	if len(a.Invocation) > 0 {
		text += fmt.Sprintf("works from its invocation on, tokens %d\n", a.Invocation)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	for i := range a.Pairs {
		p := &a.Pairs[i]
		if _, err := fmt.Fprintf(w, "  %s  A %v %v  B %v %v  scale %.6g\n", tensor.Label(p.Name), p.A.Type, p.A.Shape, p.B.Type, p.B.Shape, p.Scale); err != nil {
			return err
		}
	}
	return nil
}
