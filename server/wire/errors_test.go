package wire_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"grove"
	"grove/server/wire"
)

// TestPlain: what clients are told names no package and no directory.
func TestPlain(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errors.New("grove: a suffix is given: tokenizer: there are no tokens for it"), "a suffix is given: there are no tokens for it"},
		{errors.New("chat: jinja: line 3: not like this"), "line 3: not like this"},
		{errors.New("line 3: it says grove:x"), "line 3: it says grove:x"},
		{fmt.Errorf("pull: %w", &fs.PathError{Op: "open", Path: "/home/ann/models/a.gguf", Err: fs.ErrNotExist}), "open a.gguf: file does not exist"},
	} {
		if got := wire.Plain(tt.err); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestUnknownErrors: an error of no known kind is for the log, unless the request is at fault.
func TestUnknownErrors(t *testing.T) {
	err := fmt.Errorf("kv: %w", &fs.PathError{Op: "read", Path: "/var/a", Err: fs.ErrPermission})
	if e := wire.ErrorOf(err); e.Status != 500 || e.Message != wire.ErrInternal.Message || e.Cause != err || wire.ErrInternal.Cause != nil {
		t.Errorf("%+v", e)
	}
	if e := wire.RefusalOf(err); e.Status != 400 || e.Message != "read a: permission denied" || e.Cause != nil {
		t.Errorf("%+v", e)
	}
	if e := wire.RefusalOf(fmt.Errorf("/var/a: %w", grove.ErrSession)); e.Status != 500 || e.Code != "session_failed" {
		t.Errorf("%+v", e)
	}
}
