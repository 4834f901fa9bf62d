package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// progress returns a function that shows how much of some work is done, and from its second call on how
// long the rest will take at that pace; on a terminal only.
func progress(unit string) func(done, all int) {
	const width = 24
	var first time.Time
	var from int
	return func(done, all int) {
		if !isTerminal(os.Stderr) {
			return
		}
		left := ""
		if first.IsZero() {
			first, from = time.Now(), done
		} else if done > from {
			pace := time.Since(first) / time.Duration(done-from)
			left = fmt.Sprintf(", %v left", (pace * time.Duration(all-done)).Round(time.Second))
		}
		bar := strings.Repeat("=", done*width/all)
		fmt.Fprintf(os.Stderr, "\r[%-*s] %s %d of %d%s\x1b[K", width, bar, unit, done, all, left)
		if done == all {
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		}
	}
}
