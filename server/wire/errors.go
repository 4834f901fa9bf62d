// Package wire is the JSON of the server's APIs: the fields that routes share, how bodies are decoded, and errors. A field of a body that would change
// the answer is read or refused; one that cannot is left out by name. An error names its fields.
package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
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

// Error is the answer to a request that failed.
type Error struct {
	Status  int
	Retry   int // seconds after which to try again; 0: not said
	Message string
	Type    string
	Param   string // the field to blame; "": none
	Code    string
	Prompt  int    // tokens of a prompt that is too long; 0: it is not
	Context int    // tokens that it may have
	Request string // the request's name in the log, for APIs whose errors have a place for it; "": not said
	Cause   error  // for the log alone; nil: the message says all

	field bool // one field is refused, and the rest of the body can be read
}

// packages are the names of packages that errors of the library begin with, or have behind a colon.
var packages = regexp.MustCompile(`(^|: )(?:(?:grove|engine|queue|sample|constrain|nest|schema|gbnf|lark|regex|pattern|earley|calls|grammar|document|chat|template|jinja|tokenizer|pretoken|kv|forest|model|arch|compute|` +
	`gguf|score|lora|adapters|safetensors|hf|pull|hub|registry|transfer|find|atomicfile|json|jsontext|strconv): )+`)

// Plain returns what an error of the library says, without the names of packages and without the directories of files.
func Plain(err error) string {
	text := packages.ReplaceAllString(err.Error(), "$1")
	if at := new(fs.PathError); errors.As(err, &at) {
		text = strings.ReplaceAll(text, at.Path, filepath.Base(at.Path))
	}
	return text
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Label returns the code, or the type where there is none: for traces.
func (e *Error) Label() string { return cmp.Or(e.Code, e.Type) }

// Named returns the message, which begins with the field to blame: for APIs whose errors have no place for it.
func (e *Error) Named() string {
	if e.Param == "" || strings.Contains(e.Message, e.Param+": ") {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

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

// Refuse returns an error with status 400 that blames a field of the request; "": none.
func Refuse(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: TypeInvalid, Param: param}
}

// Unsupported returns an error with status 400 for a field that cannot be honoured.
func Unsupported(param, reason string) *Error {
	e := Refuse(param, "%s: %s", param, reason)
	e.Code = "unsupported_parameter"
	return e
}

// All returns the answer to a request of which several parts are refused, by errors or nils: it names all of them, 16 at most, and has the
// field and the code of the first. An error that is no [*Error] is returned as it is.
func All(refused ...error) error {
	const most = 16
	var all []*Error
	for _, err := range refused {
		var e *Error
		switch {
		case err == nil:
		case errors.As(err, &e):
			all = append(all, e)
		default:
			return err
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	one := *all[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults: ", len(all))
	for i, e := range all[:min(len(all), most)] {
		if i > 0 {
			b.WriteString("; ")
		}
		if strings.HasPrefix(e.Message, e.Param) {
			b.WriteString(e.Message)
		} else {
			b.WriteString(e.Param + ": " + e.Message)
		}
	}
	if len(all) > most {
		fmt.Fprintf(&b, "; and %d more", len(all)-most)
	}
	one.Message = b.String()
	return &one
}

// statusLeft is the status of requests whose clients have left, as nginx has it.
const statusLeft = 499

// The errors that are not of one request's making.
var (
	ErrLoading  = &Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: "Loading model", Type: TypeUnavailable, Code: "loading"}
	ErrStopping = &Error{Status: http.StatusServiceUnavailable, Retry: 5, Message: "the server is shutting down", Type: TypeUnavailable, Code: "stopping"}
	ErrBusy     = &Error{Status: http.StatusTooManyRequests, Retry: 1, Message: "too many requests are in the queue", Type: TypeBusy, Code: "queue_full"}
	ErrKey      = &Error{Status: http.StatusUnauthorized, Message: "the API key is missing or wrong", Type: TypeInvalid, Code: "invalid_api_key"}
	ErrLeft     = &Error{Status: statusLeft, Message: "the client closed its side of the connection before its answer; keep it open until the answer has come", Type: TypeInvalid, Code: "client_closed"}
	ErrInternal = &Error{Status: http.StatusInternalServerError, Message: "internal error; the server's log has its cause", Type: TypeServer, Code: "internal_error"}
)

// ErrorOf returns the answer to a request that failed by an error of the library.
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
		e := Refuse("prompt", "%s", Plain(err))
		e.Code = "context_length_exceeded"
		if errors.As(err, &prompt) { // programs look for llama.cpp's words, and shorten the conversation then
			e.Prompt, e.Context = prompt.Tokens, prompt.Context
			more := ""
			if prompt.More {
				more = " or more"
			}
			e.Message = fmt.Sprintf("the prompt has %d tokens%s, which exceeds the available context size of %d tokens", e.Prompt, more, e.Context)
		}
		return e
	case errors.As(err, &option), errors.Is(err, grove.ErrAllMasked):
		return Refuse(canvasField(err), "%s", Plain(err))
	case errors.Is(err, grove.ErrConstraint): // the form that the request asks for is too much work, or cannot be written
		e := Refuse("", "%s", Plain(err))
		e.Code = "constraint_failed"
		return e
	case errors.Is(err, grove.ErrBusy):
		return ErrBusy
	case errors.Is(err, grove.ErrSessionFile):
		e := Refuse("session", "session: it is %v", grove.ErrSessionFile)
		e.Code = "session_invalid"
		return e
	case errors.Is(err, grove.ErrSession):
		return sessionError(err)
	case errors.Is(err, grove.ErrCacheFull):
		return &Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: Plain(err), Type: TypeUnavailable, Code: "cache_full"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Message: "the timeout of the request has passed", Type: TypeServer, Code: "timeout"}
	case errors.Is(err, context.Canceled):
		return ErrLeft
	}
	e := *ErrInternal
	e.Cause = err
	return &e
}

// sessionError is the answer where a session's file cannot be read or written. It names no path of the server.
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

// RefusalOf returns the answer to a request that failed before it was computed: errors of no known kind are the request's fault.
func RefusalOf(err error) *Error {
	e := ErrorOf(err)
	if e.Cause != nil {
		return Refuse("", "%s", Plain(err))
	}
	return e
}
