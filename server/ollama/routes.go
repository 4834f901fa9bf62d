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
	route := func(a driver.Access, h driver.Handler, patterns ...string) driver.Route {
		return driver.Route{Access: a, Handle: h, Patterns: patterns, Errors: ErrorBody}
	}
	all := []driver.Route{
		route(driver.Served, driver.AnswersInLines[generateRequest], "POST /api/generate"),
		route(driver.Served, driver.AnswersInLines[chatRequest], "POST /api/chat"),
		route(driver.Served, embed, "POST /api/embed"),
		route(driver.Served, embedOne, "POST /api/embeddings"),
		route(driver.Served, tags, "GET /api/tags"),
		route(driver.Served, show, "POST /api/show"),
		route(driver.Served, running, "GET /api/ps"),
		route(driver.Known, version, "GET /api/version"),
		route(driver.Served, pullModel, "POST /api/pull"),
		route(driver.Served, deleteModel, "DELETE /api/delete"),
	}
	for _, path := range []string{"POST /api/create", "POST /api/copy", "POST /api/push", "POST /api/blobs/{digest}", "HEAD /api/blobs/{digest}"} {
		all = append(all, route(driver.Known, missing, path))
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
		Message: x.R.URL.Path + ": grove makes, copies and uploads no models; grove convert and grove quantize make files",
	}
}
