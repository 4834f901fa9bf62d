package gguf

import (
	"fmt"
	"strings"
)

// OfBlock splits the name of a layer's tensor, blk.N.REST.
func OfBlock(name string) (n int, rest string, ok bool) {
	if number, ok := strings.CutPrefix(name, "blk."); ok {
		if _, err := fmt.Sscanf(number, "%d.%s", &n, &rest); err == nil && n >= 0 {
			return n, rest, true
		}
	}
	return 0, "", false
}
