// rerank.go has the routes that rank documents by a query, in the forms of Jina's API, which llama.cpp's server and vLLM have too, of Cohere's second
// version, and of Hugging Face's text-embeddings-inference; and the route that scores pairs, as vLLM does, or continuations behind a prompt.

package openai

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
	"grove/internal/text/token"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// RerankRoutes returns the routes.
func RerankRoutes() []driver.Route {
	route := func(h driver.Handler, patterns ...string) driver.Route {
		return driver.Route{Access: driver.Ready, Handle: h, Patterns: patterns, Body: new(request)}
	}
	return []driver.Route{
		route(jina, "POST /v1/rerank", "POST /rerank", "POST /v1/reranking", "POST /reranking"),
		route(cohere, "POST /v2/rerank"),
		{Access: driver.Ready, Handle: scores, Patterns: []string{"POST /v1/score", "POST /score"}, Body: new(scoreRequest)},
	}
}

// request is the body of these routes.
type request struct {
	Model           string    `json:"model" bytes:"1024"`
	Query           string    `json:"query"`
	Documents       documents `json:"documents" most:"2048"`
	Texts           documents `json:"texts" most:"2048"` // text-embeddings-inference's name of documents, which asks for its form of an answer
	Top             *int      `json:"top_n" range:"1 *"`
	ReturnDocuments bool      `json:"return_documents"`
	ReturnText      bool      `json:"return_text"` // of texts
}

// Tolerated implements [wire.Tolerant].
func (request) Tolerated() []wire.Toleration {
	return []wire.Toleration{
		{Names: "raw_scores", Values: "true", Client: "text-embeddings-inference", Reason: "scores are those of the model"},
		{Names: "truncate", Values: "false", Client: "text-embeddings-inference", Reason: "texts are never cut; one that is too long is refused"},
	}
}

// documents are texts, in JSON a list of texts or of objects with a text.
type documents []string

// ReadJSON implements [wire.Own].
func (d *documents) ReadJSON(r *wire.Reader) error {
	if r.Kind() != jsontext.KindBeginArray {
		return r.Refuse("it must be a list of texts, or of objects with a text")
	}
	*d = documents{}
	return r.List(func(int) error {
		if r.Kind() == jsontext.KindString {
			text, err := r.Text()
			*d = append(*d, text)
			return err
		}
		if r.Kind() != jsontext.KindBeginObject {
			return r.Refuse("it must be a text, or an object with a text")
		}
		var o struct {
			Text *string `json:"text"`
		}
		if err := r.Into(&o); err != nil {
			return err
		}
		if o.Text == nil {
			return r.Refuse("the text is missing")
		}
		*d = append(*d, *o.Text)
		return nil
	})
}

// ranking is the answer to a request.
type ranking struct {
	*request
	open   *serving.OpenModel
	list   []string
	best   []grove.Ranked
	tokens int
}

// rank reads a request and ranks its documents.
func rank(x *driver.Request) (a ranking, err error) {
	a.request = new(request)
	if err = x.Read(a.request); err != nil {
		return a, err
	}
	switch {
	case a.Documents != nil && a.Texts != nil:
		return a, wire.Refuse("texts", "documents is another name of the field; leave one of them out")
	case len(a.Documents)+len(a.Texts) == 0:
		return a, wire.Refuse("documents", "documents is missing, or empty")
	case a.Query == "":
		return a, wire.Refuse("query", "query is missing, or empty")
	}
	a.list = append(a.Documents, a.Texts...)
	if a.open, err = x.Model(a.Model); err != nil {
		return a, err
	}
	if err := a.open.Model.CheckRank(); err != nil {
		return a, wire.Refuse("model", "%s", wire.Plain(err))
	}
	defer func() { access.CallerOf(x.R.Context()).Spend(a.tokens) }()
	err = a.open.Compute(x.R.Context(), x.ID, func(ctx context.Context) error {
		for i, d := range a.list {
			if err := a.score(ctx, x, i, d, "documents"); err != nil {
				return err
			}
		}
		return nil
	})
	grove.SortRanked(a.best)
	if a.Top != nil {
		a.best = a.best[:min(*a.Top, len(a.best))]
	}
	return a, err
}

// score adds a document, which is of a field.
func (a *ranking) score(ctx context.Context, x *driver.Request, i int, document, field string) error {
	var ids []token.ID
	err := x.Work(func(ctx context.Context) (err error) {
		ids, err = a.open.Model.PairIDs(ctx, a.Query, document)
		return err
	})
	var score float32
	if err == nil {
		a.tokens += len(ids)
		score, err = a.open.Model.ScoreIDs(ctx, ids)
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		refusal := wire.RefusalOf(err)
		if refusal.Param == "" || refusal.Param == "prompt" {
			refusal.Param = field
		}
		return refusal
	}
	a.best = append(a.best, grove.Ranked{Index: i, Score: score, Tokens: len(ids)})
	return nil
}

// results returns the best documents, with the score under a name.
func (a *ranking) results(name string) []map[string]any {
	all := []map[string]any{}
	for _, r := range a.best {
		one := map[string]any{"index": r.Index, name: r.Score}
		if a.ReturnDocuments {
			one["document"] = map[string]string{"text": a.list[r.Index]}
		}
		if a.ReturnText && a.Texts != nil {
			one["text"] = a.list[r.Index]
		}
		all = append(all, one)
	}
	return all
}

// jina handles /v1/rerank and its other names.
func jina(x *driver.Request) error {
	a, err := rank(x)
	switch {
	case err != nil:
		return err
	case a.Texts != nil:
		return x.Reply(a.results("score"))
	}
	return x.Reply(map[string]any{
		"object": "list", "model": a.open.Name, "results": a.results("relevance_score"), "usage": map[string]int{"prompt_tokens": a.tokens, "total_tokens": a.tokens},
	})
}

// cohere handles /v2/rerank.
func cohere(x *driver.Request) error {
	a, err := rank(x)
	if err != nil {
		return err
	}
	return x.Reply(map[string]any{
		"id": x.ID, "results": a.results("relevance_score"),
		"meta": map[string]any{"api_version": map[string]string{"version": "2"}, "tokens": map[string]int{"input_tokens": a.tokens}},
	})
}
