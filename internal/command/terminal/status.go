package terminal

import (
	"fmt"
	"os"
	"sync"
	"time"

	"grove/internal/command/harmless"
)

// Status shows on standard error, in one line, how far a job is whose end is not known, as [Progress] shows one whose end is. It may be used by several goroutines.
type Status struct {
	mu   sync.Mutex
	gate gate
	next time.Time // before which nothing is shown again
	over bool
}

// Show shows a text in place of the one before, some times a second at most. Behind [Status.End] it does nothing.
func (s *Status) Show(text fmt.Stringer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.gate.opens.IsZero() {
		s.gate.opens = now.Add(showAfter)
	}
	if s.over || now.Before(s.gate.opens) || now.Before(s.next) {
		return
	}
	s.next = now.Add(showAfter / 5)
	if columns := erasable(); columns > 0 {
		line := []rune(harmless.Line(text.String()))
		_, _ = os.Stderr.WriteString("\r\x1b[K" + string(line[:min(len(line), columns-1)]))
		s.gate.open = true
	}
}

// End clears the line, so that the next output begins on an empty one.
func (s *Status) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.gate.clear()
}
