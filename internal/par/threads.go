package par

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Threads returns how many threads this process can keep busy: the processors it may run on,
// less where GOMAXPROCS or, on Linux, the quota of a control group (a container's limit) is
// smaller; at least 1.
func Threads() int {
	threads := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	if runtime.GOOS == "linux" {
		if quota, ok := cgroupQuota(os.DirFS("/")); ok {
			threads = min(threads, quota)
		}
	}
	return max(threads, 1)
}

// cgroupQuota returns the processors, rounded up, that the control groups of this process allow
// it: the smallest limit from its own group up to the root, in either version of the interface.
// GOMAXPROCS knows the limit too but never goes below 2.
func cgroupQuota(root fs.FS) (cpus int, ok bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy number:controllers:path; version 2 has no controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, read := "sys/fs/cgroup", quotaV2
		if controllers := parts[1]; controllers != "" {
			if !hasCPU(controllers) {
				continue
			}
			mount, read = "sys/fs/cgroup/"+controllers, quotaV1
		}
		// Inside a container the path may be that of the host, which is not there; its own group
		// is then the mount itself, where the walk ends.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			if q, found := read(root, path.Join(mount, dir)); found && (!ok || q < cpus) {
				cpus, ok = q, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return cpus, ok
}

func hasCPU(controllers string) bool {
	for c := range strings.SplitSeq(controllers, ",") {
		if c == "cpu" {
			return true
		}
	}
	return false
}

// quotaV2 reads cpu.max: "quota period" in microseconds, or "max period" for none.
func quotaV2(root fs.FS, dir string) (cpus int, ok bool) {
	data, err := fs.ReadFile(root, path.Join(dir, "cpu.max"))
	if err != nil {
		return 0, false
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return ratio(quota, period)
}

// quotaV1 reads a quota, -1 for none, and its period from two files.
func quotaV1(root fs.FS, dir string) (cpus int, ok bool) {
	quota, err1 := fs.ReadFile(root, path.Join(dir, "cpu.cfs_quota_us"))
	period, err2 := fs.ReadFile(root, path.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return ratio(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

// ratio returns quota / period rounded up, and false unless both are positive numbers.
func ratio(quota, period string) (cpus int, ok bool) {
	q, err1 := strconv.Atoi(quota)
	p, err2 := strconv.Atoi(period)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0, false
	}
	return (q-1)/p + 1, true
}
