// Package openai is OpenAI's API: chat completions, completions, responses, embeddings and models. Its messages are also those of
// llama.cpp's /apply-template and vLLM's /tokenize.
package openai

import "grove/server/driver"

// Routes returns the routes. Those that llama.cpp has without /v1 are there without it, too.
func Routes() []driver.Route {
	route := func(body any, h driver.Handler, patterns ...string) driver.Route {
		return driver.Route{Access: driver.Ready, Handle: h, Patterns: patterns, Body: body}
	}
	background := new(tasks)
	return []driver.Route{
		route(nil, models, "GET /v1/models", "GET /models"),
		route(nil, oneModel, "GET /v1/models/{name...}"),
		route(new(chatRequest), driver.Answers[chatRequest](driver.Events), "POST /v1/chat/completions", "POST /chat/completions"),
		route(new(responsesRequest), background.respond, "POST /v1/responses", "POST /responses"),
		route(new(responsesRequest), countResponse, "POST /v1/responses/input_tokens"),
		route(new(chatRequest), countChat, "POST /v1/chat/completions/input_tokens"),
		route(nil, compactResponse, "POST /v1/responses/compact"),
		route(nil, getResponse, "GET /v1/responses/{id}"),
		route(nil, cancelResponse, "POST /v1/responses/{id}/cancel"),
		route(nil, getInput, "GET /v1/responses/{id}/input_items"),
		route(nil, deleteResponse, "DELETE /v1/responses/{id}"),
		route(new(completionRequest), driver.Answers[completionRequest](driver.Events), "POST /v1/completions"),
		route(new(embeddingRequest), embeddings, "POST /v1/embeddings"),
		route(new(templateRequest), applyTemplate, "POST /apply-template"),
		route(new(tokenizeRequest), tokenize, "POST /tokenize"),
		route(new(detokenizeRequest), detokenize, "POST /detokenize"),
	}
}
