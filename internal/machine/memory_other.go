//go:build !linux

package machine

func memory() uint64 { return 0 }

func hugePages([]byte) {}
