package kernel

import "encoding/binary"

// StreamRead returns the sum of the little-endian 64-bit words of b, ignoring up to 7 bytes after
// the last whole word. It reads memory as fast as one core can and does nothing else: the measure that
// the kernels' use of memory is compared with.
func StreamRead(b []byte) uint64 {
	sum := uint64(0)
	for len(b) > streamCall {
		sum += stream(b[:streamCall])
		b = b[streamCall:]
	}
	return sum + stream(b)
}

// streamCall is the bytes of one call, as assembly cannot be preempted.
const streamCall = 256 << 10

func streamGo(b []byte) uint64 {
	sum := uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		sum += binary.LittleEndian.Uint64(b)
	}
	return sum
}
