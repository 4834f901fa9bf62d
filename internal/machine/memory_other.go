//go:build !linux

package machine

func memory() uint64 { return 0 }
