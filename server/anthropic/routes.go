// Package anthropic is Anthropic's API of messages: /v1/messages and the count of a request's tokens.
package anthropic

import (
	"fmt"
	"net/http"
	"strings"

	"grove/server/driver"
	"grove/server/wire"
)

// Routes returns the routes.
func Routes() []driver.Route {
	route := func(body any, h driver.Handler, pattern string) driver.Route {
		return driver.Route{Access: driver.Ready, Handle: h, Patterns: []string{pattern}, Errors: ErrorBody, Body: body}
	}
	return []driver.Route{
		route(new(messagesRequest), driver.Answers[messagesRequest](driver.Events), "POST /v1/messages"),
		route(new(countRequest), countTokens, "POST /v1/messages/count_tokens"),
	}
}

// errorTypes are the types of errors by status. Those that are not here are those of their hundred: invalid_request_error, api_error.
var errorTypes = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	http.StatusGatewayTimeout:        "timeout_error",
}

// ErrorBody returns an error in the form of this API. It is a [driver.ErrorForm].
func ErrorBody(e *wire.Error) any {
	kind, known := errorTypes[e.Status]
	switch {
	case known:
	case e.Status < http.StatusInternalServerError:
		kind = "invalid_request_error"
	default:
		kind = "api_error"
	}
	body := map[string]any{"type": kind, "message": e.Named()}
	if e.Prompt > 0 { // programs look for these words, and shorten the conversation then
		body["message"] = fmt.Sprintf("prompt is too long: %d tokens > %d maximum; the context is the server's (grove serve --context)", e.Prompt, e.Context)
	}
	if strings.HasPrefix(e.Code, "thread_") { // clients read these codes
		body["details"] = map[string]string{"error_code": e.Code}
	}
	whole := map[string]any{"type": "error", "error": body}
	if e.Request != "" {
		whole["request_id"] = e.Request
	}
	return whole
}
