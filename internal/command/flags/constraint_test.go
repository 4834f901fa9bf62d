package flags

import (
	"errors"
	"fmt"
	"testing"

	"grove"
	"grove/internal/command/exit"
)

// TestRefused holds that the error of a constraint names its flag, and has the exit code of a file.
func TestRefused(t *testing.T) {
	spec := &grove.OptionError{Err: fmt.Errorf("grove: Request.Constraint: %w", &grove.SpecError{Err: errors.New("no such rule")})}
	other, regex := errors.New("grove: Request.Constraint: no field"), "a"
	tests := []struct {
		name  string
		given Constraint
		err   error
		want  string
	}{
		{"schema", Constraint{Schema: "{}"}, spec, "--schema: no such rule"},
		{"grammar", Constraint{Grammar: "json"}, spec, "--grammar: no such rule"},
		{"regex", Constraint{Regex: &regex}, spec, "--regex: no such rule"},
		{"choice", Constraint{Choice: []string{"a"}}, spec, "--choice: no such rule"},
		{"another error", Constraint{Schema: "{}"}, other, other.Error()},
	}
	for _, tt := range tests {
		err := tt.given.Refused(tt.err)
		if err.Error() != tt.want || tt.err == error(spec) && exit.Code(err) != exit.CodeFile {
			t.Errorf("%s: %q, code %d; want %q", tt.name, err, exit.Code(err), tt.want)
		}
	}
	if err := tests[0].given.Refused(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}
