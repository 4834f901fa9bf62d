//go:build !linux && !darwin && !windows

package pull

// freeBytes knows nothing of the disk.
func freeBytes(string) (int64, bool) { return 0, false }
