package document

import (
	"errors"
	"fmt"
)

// What is wrong with a schema, for errors.Is.
var (
	// ErrInvalid says that the text is no JSON, or no schema.
	ErrInvalid = errors.New("not a JSON schema")
	// ErrUnsupported says that a keyword, or two together, cannot be expressed exactly.
	ErrUnsupported = errors.New("not supported")
	// ErrReference says that a reference leads nowhere or to another document. Nothing is ever fetched.
	ErrReference = errors.New("unresolved reference")
	// ErrEmpty says that no text satisfies the schema.
	ErrEmpty = errors.New("no text satisfies the schema")
	// ErrBudget says that the schema is beyond one of the [Limits].
	ErrBudget = errors.New("beyond a limit")
)

// Error is why a schema is refused.
type Error struct {
	// Path is the place in the schema: a JSON pointer behind #.
	Path string
	// Reason is what is wrong there.
	Reason string

	kind error
}

// Error returns the place and the reason.
func (e *Error) Error() string { return "schema: " + e.Path + ": " + e.Reason }

// Unwrap returns which kind of error it is: ErrInvalid, ErrUnsupported, ErrReference, ErrEmpty or ErrBudget.
func (e *Error) Unwrap() error { return e.kind }

// Refuse returns an error at a value.
func Refuse(kind error, at *Value, format string, args ...any) *Error {
	return &Error{Path: at.Path(), Reason: fmt.Sprintf(format, args...), kind: kind}
}

// Fail keeps the first error. All work stops soon after.
func (d *Document) Fail(kind error, at *Value, format string, args ...any) {
	if d.Err == nil {
		d.Err = Refuse(kind, at, format, args...)
	}
}
