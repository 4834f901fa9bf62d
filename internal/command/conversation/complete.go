package conversation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostFiles is the number of files of a directory that are looked at.
const mostFiles = 10000

// complete returns the end of a line that Tab completes, and all that it can become: the name of a command, or the file
// of one.
func complete(line string) (end string, candidates []string) {
	name, argument, isLong := strings.Cut(line, " ")
	switch {
	case !isLong && strings.HasPrefix(line, "/") && !strings.HasPrefix(line, "//"):
		for _, c := range commands {
			candidates = append(candidates, c+map[bool]string{true: " "}[slices.Contains(withArgument, c)])
		}
		return line, fitting(line, candidates)
	case name == "/save", name == "/load":
		argument = strings.TrimLeft(argument, " ")
		return argument, fitting(argument, files(argument))
	}
	return "", nil
}

// fitting keeps the candidates that begin with a text.
func fitting(text string, all []string) (kept []string) {
	for _, c := range all {
		if strings.HasPrefix(c, text) {
			kept = append(kept, c)
		}
	}
	return kept
}

// files returns the files beside the one that a path begins to name. Directories end with a separator.
func files(path string) (found []string) {
	dir, begun := filepath.Split(path)
	f, err := os.Open(filepath.Clean(dir + "."))
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(mostFiles) // those before an error are good
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(begun, ".") {
			continue
		}
		if info, err := os.Stat(dir + name); err == nil && info.IsDir() {
			name += string(filepath.Separator)
		}
		found = append(found, dir+name)
	}
	slices.Sort(found)
	return found
}
