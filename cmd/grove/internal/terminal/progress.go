package terminal

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows on standard error how far a job is and how much time is left. It shows nothing where standard error is
// no terminal. It is for one goroutine.
type Progress struct {
	what  string
	bytes bool
	all   int64
	bar   *progressbar.ProgressBar
	begun bool
}

// Steps returns the progress of a job of a few long steps. The line shows their name.
func Steps(what string) *Progress { return &Progress{what: what} }

// Bytes returns the progress of a job that writes bytes.
func Bytes(what string) *Progress { return &Progress{what: what, bytes: true} }

// Show shows the number of units that are done, of all.
func (p *Progress) Show(done, all int) { p.show(int64(done), int64(all)) }

// ShowBytes shows the number of bytes that are done, of all as they are known now.
func (p *Progress) ShowBytes(done, all int64) { p.show(done, all) }

// ShowOf returns a function that shows the number of units that are done, of all.
func (p *Progress) ShowOf(all int64) func(done int64) {
	p.show(0, all)
	return func(done int64) { p.show(done, all) }
}

// show makes the line at the first call. Errors of the terminal do not matter to the job.
func (p *Progress) show(done, all int64) {
	if !p.begun {
		p.begun = true
		if Is(os.Stderr) {
			p.bar = progressbar.NewOptions64(all,
				progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(p.what),
				progressbar.OptionShowBytes(p.bytes), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
				progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			)
		}
	}
	if p.bar == nil {
		return
	}
	if all != p.all {
		p.all = all
		p.bar.ChangeMax64(all)
	}
	_ = p.bar.Set64(done)
}

// Note writes a line to standard error, above the bar.
func (p *Progress) Note(text string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(os.Stderr, text)
}

// End clears the line, so that the next output begins on an empty one.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}
