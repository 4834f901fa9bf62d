package par

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Threads returns how many threads this process can keep busy: the processors it may run on (its affinity when it began,
// which taskset and most containers set), less where GOMAXPROCS or, on Linux, a control group (a container's limit) allows
// fewer; at least 1. Limits that change later do not count.
func Threads() int {
	threads := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	if runtime.GOOS == "linux" {
		if limit, ok := cgroupLimit(os.DirFS("/")); ok {
			threads = min(threads, limit)
		}
	}
	return max(threads, 1)
}

// limit reads what a control group allows in a directory, and false where it sets no limit.
type limit func(root fs.FS, dir string) (cpus int, ok bool)

// limits are those of the controllers of version 1, by name, and those of version 2, "".
var limits = map[string][]limit{
	"":       {quotaV2, cpuset("cpuset.cpus.effective")},
	"cpu":    {quotaV1},
	"cpuset": {cpuset("cpuset.effective_cpus"), cpuset("cpuset.cpus")},
}

// cgroupLimit returns the processors, a quota of them rounded up, that the control groups of this process allow
// it: the smallest limit from its own group up to the root, in either version of the interface.
// GOMAXPROCS knows the quota too but never goes below 2.
func cgroupLimit(root fs.FS) (cpus int, ok bool) {
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
		mount := path.Join("sys/fs/cgroup", parts[1])
		for controller := range strings.SplitSeq(parts[1], ",") {
			for _, read := range limits[controller] {
				if n, found := least(root, mount, parts[2], read); found && (!ok || n < cpus) {
					cpus, ok = n, true
				}
			}
		}
	}
	return cpus, ok
}

// least returns the smallest limit of a group and of those that it is in. Inside a container the path may be that of the host,
// which is not there; its own group is then the mount itself, where the walk ends.
func least(root fs.FS, mount, group string, read limit) (cpus int, ok bool) {
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		if n, found := read(root, path.Join(mount, dir)); found && (!ok || n < cpus) {
			cpus, ok = n, true
		}
		if dir == "/" {
			return cpus, ok
		}
	}
}

// cpuset returns a reader of a file that lists processors, such as 0-3,8; an empty list sets no limit.
func cpuset(name string) limit {
	return func(root fs.FS, dir string) (cpus int, ok bool) {
		data, err := fs.ReadFile(root, path.Join(dir, name))
		if err != nil {
			return 0, false
		}
		for part := range strings.SplitSeq(strings.TrimSpace(string(data)), ",") {
			from, to, isRange := strings.Cut(part, "-")
			first, err := strconv.Atoi(from)
			if err != nil {
				return 0, false
			}
			last := first
			if isRange {
				if last, err = strconv.Atoi(to); err != nil || last < first {
					return 0, false
				}
			}
			cpus += last - first + 1
		}
		return cpus, cpus > 0
	}
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
