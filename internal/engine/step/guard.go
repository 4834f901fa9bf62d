// guard.go keeps a panic of a stage, a method or a rule from ending more than the request that it worked for.

package step

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic reports a stage, a method or a rule that panicked.
var ErrPanic = errors.New("panic in a stage, a method or a rule")

// PanicError is an [ErrPanic] with what was thrown and where.
type PanicError struct {
	Value any
	Stack []byte
}

// NewPanicError returns the error of a panic that was just recovered.
func NewPanicError(value any) *PanicError { return &PanicError{value, debug.Stack()} }

// Error returns the value on one line, without the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("engine: %v: %v", ErrPanic, p.Value) }

// Unwrap returns [ErrPanic].
func (p *PanicError) Unwrap() error { return ErrPanic }

// Guarded calls f and turns a panic into an error.
func Guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = NewPanicError(p)
		}
	}()
	return f()
}
