package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"grove"
	"grove/engine"
	"grove/kv"
	"grove/sample"
)

// The types of errors, as OpenAI's API names them.
const (
	typeInvalid     = "invalid_request_error"
	typeBusy        = "rate_limit_error"
	typeUnavailable = "unavailable_error"
	typeServer      = "server_error"
)

// apiError is an answer that says what is wrong.
type apiError struct {
	status  int
	retry   int // seconds after which to try again; 0: not said
	Message string
	Type    string
	Param   string // the field to blame; "": none
	Code    string
}

// Error returns what is wrong.
func (e *apiError) Error() string { return e.Message }

// MarshalJSON writes the error as OpenAI's API does: param and code are null where there is none.
func (e *apiError) MarshalJSON() ([]byte, error) {
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
	}
	return json.Marshal(map[string]body{"error": {e.Message, e.Type, orNull(e.Param), orNull(e.Code)}})
}

// refuse is an error that blames a field of the request.
func refuse(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: typeInvalid, Param: param}
}

// unsupported is an error for a field that is known and cannot be honoured.
func unsupported(param, reason string) *apiError {
	e := refuse(param, "%s: %s", param, reason)
	e.Code = "unsupported_parameter"
	return e
}

var (
	errLoading  = &apiError{status: http.StatusServiceUnavailable, retry: 1, Message: "Loading model", Type: typeUnavailable, Code: "loading"}
	errStopping = &apiError{status: http.StatusServiceUnavailable, retry: 5, Message: "the server is shutting down", Type: typeUnavailable, Code: "stopping"}
	errBusy     = &apiError{status: http.StatusTooManyRequests, retry: 1, Message: "too many requests wait for their turn", Type: typeBusy, Code: "queue_full"}
	errKey      = &apiError{status: http.StatusUnauthorized, Message: "the API key is missing or wrong", Type: typeInvalid, Code: "invalid_api_key"}
	errInternal = &apiError{status: http.StatusInternalServerError, Message: "internal error", Type: typeServer}
)

// asAPIError returns the answer that an error of the library stands for.
func asAPIError(err error) *apiError {
	var (
		api    *apiError
		option *grove.OptionError
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.Is(err, engine.ErrContext):
		e := refuse("prompt", "%v", err)
		e.Code = "context_length_exceeded"
		return e
	case errors.As(err, &option), errors.Is(err, sample.ErrAllMasked):
		return refuse("", "%v", err)
	case errors.Is(err, kv.ErrFull), errors.Is(err, engine.ErrBusy):
		return &apiError{status: http.StatusServiceUnavailable, retry: 1, Message: err.Error(), Type: typeUnavailable, Code: "cache_full"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &apiError{status: http.StatusServiceUnavailable, Message: "the request was cancelled", Type: typeUnavailable, Code: "cancelled"}
	}
	return &apiError{status: http.StatusInternalServerError, Message: err.Error(), Type: typeServer}
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, e *apiError) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retry))
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, e.status, e)
}
