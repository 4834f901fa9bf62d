// Package llamacpp has the routes of llama.cpp's own server.
package llamacpp

import "grove/server/driver"

// Routes returns the routes.
func Routes() []driver.Route {
	route := func(h driver.Handler, patterns ...string) driver.Route {
		return driver.Route{Access: driver.Served, Handle: h, Patterns: patterns}
	}
	return []driver.Route{
		route(driver.Answers[completionRequest], "POST /completion", "POST /completions"),
		route(driver.Answers[infillRequest], "POST /infill"),
		route(embeddings, "POST /embedding", "POST /embeddings"),
		route(tokenize, "POST /tokenize"),
		route(detokenize, "POST /detokenize"),
		route(props, "GET /props"),
		route(loadModel, "POST /models/load"),
		route(unloadModel, "POST /models/unload"),
		route(slots, "GET /slots"),
		route(slotAction, "POST /slots/{id}"),
	}
}
