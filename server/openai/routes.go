// Package openai is OpenAI's API: chat completions, completions, responses, embeddings and models. Its messages are also those of
// llama.cpp's /apply-template.
package openai

import "grove/server/driver"

// Routes returns the routes. Those that llama.cpp has without /v1 are there without it, too.
func Routes() []driver.Route {
	route := func(h driver.Handler, patterns ...string) driver.Route {
		return driver.Route{Access: driver.Served, Handle: h, Patterns: patterns}
	}
	return []driver.Route{
		route(models, "GET /v1/models", "GET /models"),
		route(oneModel, "GET /v1/models/{name...}"),
		route(driver.Answers[chatRequest], "POST /v1/chat/completions", "POST /chat/completions"),
		route(driver.Answers[responsesRequest], "POST /v1/responses", "POST /responses"),
		route(getResponse, "GET /v1/responses/{id}"),
		route(getInput, "GET /v1/responses/{id}/input_items"),
		route(deleteResponse, "DELETE /v1/responses/{id}"),
		route(driver.Answers[completionRequest], "POST /v1/completions"),
		route(embeddings, "POST /v1/embeddings"),
		route(applyTemplate, "POST /apply-template"),
	}
}
