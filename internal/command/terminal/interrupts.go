package terminal

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"grove/internal/command/exit"
)

// UntilSignal returns a context that ends, with an [exit.SignalError] as its cause, at an interrupt or a termination
// signal. A second signal ends the process. The caller must call the function that it returns.
func UntilSignal() (context.Context, func()) {
	i := Listen()
	ctx, done := i.During()
	context.AfterFunc(ctx, i.Stop)
	return ctx, done
}

// Interrupts receives the signals of a conversation: interrupts and termination signals.
type Interrupts struct{ came chan os.Signal }

// Listen begins to receive signals. The caller must call [Interrupts.Stop].
func Listen() *Interrupts {
	i := &Interrupts{make(chan os.Signal, 1)}
	signal.Notify(i.came, os.Interrupt, syscall.SIGTERM)
	return i
}

// Stop ends the receiving.
func (i *Interrupts) Stop() { signal.Stop(i.came) }

// During returns a context that the next signal ends, with an [exit.SignalError] as its cause. The caller must call the
// function that it returns.
func (i *Interrupts) During() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case s := <-i.came:
			cancel(exit.SignalError{Signal: s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-gone
	}
}

// Cause returns the signal that ended a context; nil: none did.
func (i *Interrupts) Cause(ctx context.Context) *exit.SignalError {
	var s exit.SignalError
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &s) {
		return &s
	}
	return nil
}
