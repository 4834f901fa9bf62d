package terminal

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"grove/internal/command/harmless"
)

// Progress shows on standard error how far a job is, its rate and how much time is left, once it has taken longer than
// [showAfter]. It shows nothing where standard error is no terminal that can erase a line. It may be used by several
// goroutines.
type Progress struct {
	what    string
	options []progressbar.Option

	mu   sync.Mutex
	bar  *progressbar.ProgressBar // nil: nothing has been told yet, or the job has ended
	gate gate
	all  int64
	stop chan struct{} // ends the goroutine that shows the bar between steps
}

// showAfter is the time of a job that nobody needs to watch.
const showAfter = 500 * time.Millisecond

// Steps returns the progress of a job of a few long steps. The line shows their name.
func Steps(what string) *Progress { return &Progress{what: what} }

// Tokens returns the progress of a job that computes tokens.
func Tokens(what string) *Progress {
	return &Progress{what: what, options: []progressbar.Option{progressbar.OptionShowIts(), progressbar.OptionSetItsString("tokens")}}
}

// Bytes returns the progress of a job that reads or writes bytes.
func Bytes(what string) *Progress {
	return &Progress{what: what, options: []progressbar.Option{progressbar.OptionShowBytes(true)}}
}

// Show shows the number of units that are done, of all. The line ends when all are done.
func (p *Progress) Show(done, all int) { p.ShowBytes(int64(done), int64(all)) }

// ShowOf returns a function that shows the number of units that are done, of all.
func (p *Progress) ShowOf(all int64) func(done int64) {
	p.ShowBytes(0, all)
	return func(done int64) { p.ShowBytes(done, all) }
}

// ShowBytes is [Progress.Show] for bytes, of all as they are known now. Errors of the terminal do not matter to the job.
func (p *Progress) ShowBytes(done, all int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done >= all {
		p.end()
		return
	}
	if p.bar == nil {
		if p.bar, p.all = p.newBar(all), all; p.bar == nil {
			return
		}
	}
	if all != p.all {
		p.all = all
		p.bar.ChangeMax64(all)
	}
	_ = p.bar.Set64(done)
}

// Note writes a line to standard error, above the bar. Nothing in it controls the terminal ([harmless.Line]).
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate.clear()
	fmt.Fprintln(os.Stderr, harmless.Line(text))
}

// Columns of a line besides the bar and the name of the job: with numbers, and without.
const (
	besideNumbers = 54
	besidePlain   = 28
	leastBar      = 4
)

// newBar returns the bar of a job, nil where the terminal has no room for one.
func (p *Progress) newBar(all int64) *progressbar.ProgressBar {
	columns := erasable()
	if columns == 0 {
		return nil
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(&p.gate), progressbar.OptionSetDescription(p.what), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionUseANSICodes(true),
	}
	room := columns - len(p.what) - besideNumbers
	if room >= leastBar {
		options = append(append(options, progressbar.OptionShowCount()), p.options...)
	} else if room += besideNumbers - besidePlain; room < leastBar {
		return nil
	}
	p.gate, p.stop = gate{opens: time.Now().Add(showAfter)}, make(chan struct{})
	go p.tick(p.stop)
	return progressbar.NewOptions64(all, append(options, progressbar.OptionSetWidth(min(room, 40)))...)
}

// erasable returns the columns of standard error, where that is a terminal that can erase a line; else 0.
func erasable() int {
	columns, _, err := term.GetSize(int(os.Stderr.Fd()))
	if !Is(os.Stderr) || os.Getenv("TERM") == "dumb" || err != nil {
		return 0
	}
	return columns
}

// tick shows the bar anew until stop is closed: a step may be long.
func (p *Progress) tick(stop <-chan struct{}) {
	for t := time.NewTicker(showAfter); ; {
		select {
		case <-stop:
			t.Stop()
			return
		case <-t.C:
		}
		p.mu.Lock()
		if p.bar != nil && p.stop == stop {
			_ = p.bar.RenderBlank()
		}
		p.mu.Unlock()
	}
}

// End clears the line, so that the next output begins on an empty one.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

func (p *Progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		close(p.stop)
		p.bar, p.stop = nil, nil
	}
	p.gate.clear()
}

// gate passes what is written to standard error on, from a time on.
type gate struct {
	opens time.Time
	open  bool
}

// clear erases the line of what was written.
func (g *gate) clear() {
	if g.open {
		g.open = false
		_, _ = os.Stderr.WriteString("\r\x1b[K")
	}
}

// Write implements [io.Writer].
func (g *gate) Write(b []byte) (int, error) {
	if !g.open && time.Now().Before(g.opens) {
		return len(b), nil
	}
	g.open = true
	return os.Stderr.Write(b)
}
