//go:build (amd64 || arm64) && !purego

package kernel

// rest returns the values behind the whole blocks of 32, and -Inf.
func rest(x []float32) (tail [32]float32) {
	n := copy(tail[:], x[len(x)&^31:])
	for i := n; i < len(tail); i++ {
		tail[i] = negInf
	}
	return tail
}
