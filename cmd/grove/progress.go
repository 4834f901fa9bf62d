package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a long job is and how much time it has left, on standard error where that is a
// terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress shows a job of that many units, which are bytes or else things to be counted.
func newProgress(what string, total int64, bytes bool) progress {
	if !isTerminal(os.Stderr) {
		return progress{}
	}
	return progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(bytes), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
	)}
}

// set says how many units are done. Errors of the terminal do not matter to the job.
func (p progress) set(done int64) {
	if p.bar != nil {
		_ = p.bar.Set64(done)
	}
}

// end takes the line away, so that what follows begins on a clean one.
func (p progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}
