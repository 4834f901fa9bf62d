// Package wire is the JSON of the APIs that the server speaks: bodies are read field by field, none is ignored, and
// what is wrong with one is told with its name.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"grove"
)

// The types of errors, as OpenAI's API names them.
const (
	TypeInvalid     = "invalid_request_error"
	TypeBusy        = "rate_limit_error"
	TypeUnavailable = "unavailable_error"
	TypeServer      = "server_error"
)

// Error is an answer that says what is wrong.
type Error struct {
	Status  int
	Retry   int // seconds after which to try again; 0: not said
	Message string
	Type    string
	Param   string // the field to blame; "": none
	Code    string
	Prompt  int // tokens of a prompt that is too long; 0: it is not
	Context int // tokens that it may have
}

// Error returns what is wrong.
func (e *Error) Error() string { return e.Message }

// MarshalJSON writes the error as OpenAI's API does: param and code are null where there is none.
func (e *Error) MarshalJSON() ([]byte, error) {
	orNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
		Prompt  int     `json:"n_prompt_tokens,omitempty"` // these two as llama.cpp calls them
		Context int     `json:"n_ctx,omitempty"`
	}
	return json.Marshal(map[string]body{"error": {e.Message, e.Type, orNull(e.Param), orNull(e.Code), e.Prompt, e.Context}})
}

// Refuse is an error that blames a field of the request.
func Refuse(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: TypeInvalid, Param: param}
}

// Unsupported is an error for a field that is known and cannot be honoured.
func Unsupported(param, reason string) *Error {
	e := Refuse(param, "%s: %s", param, reason)
	e.Code = "unsupported_parameter"
	return e
}

// The errors that are not the request's fault.
var (
	ErrLoading  = &Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: "Loading model", Type: TypeUnavailable, Code: "loading"}
	ErrStopping = &Error{Status: http.StatusServiceUnavailable, Retry: 5, Message: "the server is shutting down", Type: TypeUnavailable, Code: "stopping"}
	ErrBusy     = &Error{Status: http.StatusTooManyRequests, Retry: 1, Message: "too many requests wait for their turn", Type: TypeBusy, Code: "queue_full"}
	ErrKey      = &Error{Status: http.StatusUnauthorized, Message: "the API key is missing or wrong", Type: TypeInvalid, Code: "invalid_api_key"}
	ErrInternal = &Error{Status: http.StatusInternalServerError, Message: "internal error; the server's log has its cause", Type: TypeServer, Code: "internal_error"}
)

// ErrorOf returns the answer that an error of the library stands for.
func ErrorOf(err error) *Error {
	var (
		api    *Error
		option *grove.OptionError
		prompt *grove.PromptError
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.Is(err, grove.ErrContext):
		e := Refuse("prompt", "%v", err)
		e.Code = "context_length_exceeded"
		if errors.As(err, &prompt) {
			e.Prompt, e.Context = prompt.Tokens, prompt.Context
		}
		return e
	case errors.As(err, &option), errors.Is(err, grove.ErrAllMasked):
		return Refuse("", "%v", err)
	case errors.Is(err, grove.ErrBusy):
		return ErrBusy
	case errors.Is(err, grove.ErrSessionFile):
		e := Refuse("session", "session: it is %v", grove.ErrSessionFile)
		e.Code = "session_invalid"
		return e
	case errors.Is(err, grove.ErrSession):
		return sessionError(err)
	case errors.Is(err, grove.ErrCacheFull):
		return &Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: err.Error(), Type: TypeUnavailable, Code: "cache_full"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Message: "the time that the request gave has passed", Type: TypeServer, Code: "timeout"}
	case errors.Is(err, context.Canceled):
		return &Error{Status: http.StatusServiceUnavailable, Message: "the request was cancelled", Type: TypeUnavailable, Code: "cancelled"}
	}
	return &Error{Status: http.StatusInternalServerError, Message: err.Error(), Type: TypeServer}
}

// sessionError is the answer where the file system fails a session. Paths are the server's own matter.
func sessionError(err error) *Error {
	e := &Error{Status: http.StatusInternalServerError, Message: "session: " + grove.ErrSession.Error(), Type: TypeServer, Param: "session", Code: "session_failed"}
	var number syscall.Errno
	if errors.As(err, &number) {
		e.Message += ": " + number.Error()
	}
	if errors.Is(err, syscall.ENOSPC) {
		e.Status = http.StatusInsufficientStorage
	}
	return e
}

// RefusalOf returns the answer for an error of a request that was not begun: what it does not name otherwise is
// the request's fault.
func RefusalOf(err error) *Error {
	e := ErrorOf(err)
	if e.Status == http.StatusInternalServerError {
		return Refuse("", "%v", err)
	}
	return e
}

// Marshal writes JSON in which no character is escaped without need.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
