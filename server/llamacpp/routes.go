// Package llamacpp has the routes of llama.cpp's own server.
package llamacpp

import "grove/server/driver"

// Routes returns the routes.
func Routes() []driver.Route {
	route := func(body any, h driver.Handler, patterns ...string) driver.Route {
		return driver.Route{Access: driver.Ready, Handle: h, Patterns: patterns, Body: body}
	}
	return []driver.Route{
		route(new(completionRequest), driver.Answers[completionRequest](driver.Events), "POST /completion", "POST /completions"),
		route(new(infillRequest), driver.Answers[infillRequest](driver.Events), "POST /infill"),
		route(new(driver.Embeddings), embeddings, "POST /embedding", "POST /embeddings"),
		route(nil, props, "GET /props"),
		route(new(modelRequest), loadModel, "POST /models/load"),
		route(new(modelRequest), unloadModel, "POST /models/unload"),
		route(nil, resumeStream, "GET /v1/stream"),
		route(nil, stopStream, "DELETE /v1/stream"),
		route(new(lookupRequest), lookupStreams, "POST /v1/streams/lookup"),
		route(nil, slots, "GET /slots"),
		route(nil, slotAction, "POST /slots/{id}"),
	}
}
