// Package ollama is ollama's API, so that its clients work with another address.
package ollama

import (
	"net/http"

	"grove"
	"grove/server/driver"
	"grove/server/wire"
)

// apiVersion is the release of ollama whose API this is. Clients compare it with the least that they need.
const apiVersion = "0.33.0"

// Routes returns the routes.
func Routes() []driver.Route {
	route := func(a driver.AccessLevel, body any, h driver.Handler, pattern string) driver.Route {
		return driver.Route{Access: a, Handle: h, Patterns: []string{pattern}, Errors: ErrorBody, Body: body}
	}
	all := []driver.Route{
		route(driver.Ready, new(generateRequest), driver.Answers[generateRequest](driver.Lines), "POST /api/generate"),
		route(driver.Ready, new(chatRequest), driver.Answers[chatRequest](driver.Lines), "POST /api/chat"),
		route(driver.Ready, new(embedRequest), embed, "POST /api/embed"),
		route(driver.Ready, new(embedOneRequest), embedOne, "POST /api/embeddings"),
		route(driver.Ready, nil, tags, "GET /api/tags"),
		route(driver.Ready, new(showRequest), show, "POST /api/show"),
		route(driver.Ready, nil, running, "GET /api/ps"),
		route(driver.Keyed, nil, version, "GET /api/version"),
		route(driver.Ready, new(pullRequest), pullModel, "POST /api/pull"),
		route(driver.Ready, new(nameRequest), deleteModel, "DELETE /api/delete"),
		route(driver.Ready, new(createRequest), create, "POST /api/create"),
		route(driver.Ready, new(copyRequest), copyName, "POST /api/copy"),
	}
	for _, path := range []string{"POST /api/push", "POST /api/blobs/{digest}", "HEAD /api/blobs/{digest}"} {
		all = append(all, route(driver.Keyed, nil, missing, path))
	}
	return all
}

// ErrorBody returns an error in the form of this API. It is a [driver.ErrorForm].
func ErrorBody(e *wire.Error) any {
	if e.Param == "model" {
		return map[string]string{"error": e.Message}
	}
	return map[string]string{"error": e.Named()}
}

// version handles GET /api/version.
func version(x *driver.Request) error {
	return x.Reply(map[string]string{"version": apiVersion, "grove": grove.Version().Version})
}

// missing handles the routes of ollama that grove lacks.
func missing(x *driver.Request) error {
	return &wire.Error{
		Status: http.StatusNotImplemented, Type: wire.TypeInvalid, Code: "unsupported_route",
		Message: x.R.URL.Path + ": grove takes and uploads no files of models; grove convert and grove quantize make them, and /api/create names one that is served",
	}
}
