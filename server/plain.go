package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"grove"
	"grove/server/page"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/chat"
	"grove/text/token"
)

// health handles GET /health: 503 while models are loaded and when the server stops.
func (s *Server) health(x *exchange) error {
	switch {
	case s.pool.Ending():
		return wire.ErrStopping
	case !s.ready.Load():
		return wire.ErrLoading
	}
	return x.reply(map[string]string{"status": "ok"})
}

// page handles GET /: the chat page. It asks for a key itself where requests need one.
func (s *Server) page(x *exchange) error {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeTime)) // a recorder of tests has none
	page.ServeHTTP(x.w, x.r)
	return nil
}

// modelBody describes a model; Meta is null where it is not open.
type modelBody struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created"`
	Owner   string            `json:"owned_by"`
	MaxLen  int               `json:"max_model_len,omitempty"`
	Status  map[string]string `json:"status"`
	Meta    map[string]any    `json:"meta"`
}

func (s *Server) modelBody(m serving.State) modelBody {
	b := modelBody{ID: m.Name, Object: "model", Created: s.began.Unix(), Owner: "grove", Status: map[string]string{"value": m.Status}}
	if h := m.Host; h != nil {
		b.Created, b.MaxLen = h.Created.Unix(), h.Info.Context
		b.Meta = map[string]any{
			"architecture": h.Info.Arch, "name": h.Info.Name, "n_ctx": h.Info.Context, "n_vocab": h.Info.Vocabulary,
			"size": h.Info.WeightBytes,
		}
	}
	return b
}

// models handles GET /v1/models.
func (s *Server) models(x *exchange) error {
	data := []modelBody{}
	for _, m := range s.pool.States() {
		data = append(data, s.modelBody(m))
	}
	return x.reply(map[string]any{"object": "list", "data": data})
}

// oneModel handles GET /v1/models/{name}.
func (s *Server) oneModel(x *exchange) error {
	m, err := s.pool.State(x.r.PathValue("name"))
	if err != nil {
		return err
	}
	return x.reply(s.modelBody(m))
}

// tokenize handles POST /tokenize.
func (s *Server) tokenize(x *exchange) error {
	var q struct {
		Model   string `json:"model"`
		Content string `json:"content"`
		Prompt  string `json:"prompt"` // as vLLM calls it
		Special bool   `json:"add_special"`
		Parse   *bool  `json:"parse_special"`
		Pieces  bool   `json:"with_pieces"`
	}
	if err := s.read(x, &q); err != nil {
		return err
	}
	h, err := x.host(q.Model)
	if err != nil {
		return err
	}
	ids, err := h.Model.Tokenize(q.Content+q.Prompt, q.Special, q.Parse != nil && !*q.Parse)
	if err != nil {
		return wire.RefusalOf(err)
	}
	if !q.Pieces {
		return x.reply(map[string]any{"tokens": append([]token.ID{}, ids...)})
	}
	tokens := []map[string]any{}
	for _, id := range ids {
		text, raw := h.Piece(id)
		var piece any = text
		if !utf8.Valid(raw) {
			piece = numbers(raw)
		}
		tokens = append(tokens, map[string]any{"id": id, "piece": piece})
	}
	return x.reply(map[string]any{"tokens": tokens})
}

// detokenize handles POST /detokenize.
func (s *Server) detokenize(x *exchange) error {
	var q struct {
		Model  string  `json:"model"`
		Tokens []int64 `json:"tokens"`
	}
	if err := s.read(x, &q); err != nil {
		return err
	}
	h, err := x.host(q.Model)
	if err != nil {
		return err
	}
	ids := make([]token.ID, len(q.Tokens))
	for i, id := range q.Tokens {
		if err := wire.CheckID(h.Model, "tokens", id); err != nil {
			return err
		}
		ids[i] = token.ID(id)
	}
	text, err := h.Model.Detokenize(ids)
	if err != nil {
		return wire.RefusalOf(err)
	}
	return x.reply(map[string]string{"content": strings.ToValidUTF8(text, "\ufffd")})
}

// props handles GET /props.
func (s *Server) props(x *exchange) error {
	h, err := x.host(x.r.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	template := ""
	if t, _ := h.Model.Templates().For(chat.Options{}); t != nil { // conversations are told what is wrong with it
		template = t.Source()
	}
	return x.reply(map[string]any{
		"methods": grove.Methods(), "chat_template": template, "draft": h.Info.Draft,
		"model_alias": h.Name, "model_path": h.Name, "total_slots": h.Info.Parallel, "build_info": fingerprint,
		"default_generation_settings": map[string]any{"n_ctx": h.Info.Context, "params": map[string]any{
			"temperature": wire.DefaultsNative.Sampling.Temperature, "top_k": wire.DefaultsNative.Sampling.TopK,
			"top_p": wire.DefaultsNative.Sampling.TopP, "min_p": wire.DefaultsNative.Sampling.MinP, "n_predict": -1, "seed": -1,
		}},
		"modalities": map[string]bool{"vision": false, "audio": false},
	})
}

// slots handles GET /slots. With fail_on_no_slot it answers 503 where all are taken.
func (s *Server) slots(x *exchange) error {
	query := x.r.URL.Query()
	h, err := x.host(query.Get("model"))
	if err != nil {
		return err
	}
	all, free := []map[string]any{}, 0
	for i, slot := range h.Slots() {
		if slot.Request == "" {
			free++
		}
		all = append(all, map[string]any{
			"id": i, "n_ctx": h.Info.Context, "is_processing": slot.Request != "", "id_task": slot.Request,
			"n_prompt_tokens": slot.Prompt, "n_decoded": slot.Generated,
		})
	}
	if query.Has("fail_on_no_slot") && free == 0 {
		return &wire.Error{Status: http.StatusServiceUnavailable, Retry: 1, Message: "all places for texts are taken", Type: wire.TypeUnavailable, Code: "no_slot"}
	}
	return x.reply(all)
}

// embeddingRequest is the body of /v1/embeddings and /embedding.
type embeddingRequest struct {
	Model      string       `json:"model"`
	Input      wire.Prompts `json:"input"`
	Content    wire.Prompts `json:"content"` // as llama.cpp calls it
	Encoding   string       `json:"encoding_format"`
	Dimensions *int         `json:"dimensions"`
	Pooling    string       `json:"pooling"`
	Normalize  *int         `json:"embd_normalize"`
}

// embeddings handles POST /v1/embeddings.
func (s *Server) embeddings(x *exchange) error {
	q, h, rows, tokens, err := s.embed(x, false)
	if err != nil {
		return err
	}
	data := []map[string]any{}
	for i, vectors := range rows {
		var v any = vectors[0]
		if q.Encoding == "base64" {
			v = packed(vectors[0])
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
	}
	return x.reply(map[string]any{
		"object": "list", "model": h.Name, "data": data, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})
}

// embedding handles POST /embedding, whose answers hold all vectors of a text.
func (s *Server) embedding(x *exchange) error {
	_, _, rows, _, err := s.embed(x, true)
	if err != nil {
		return err
	}
	data := []map[string]any{}
	for i, vectors := range rows {
		data = append(data, map[string]any{"index": i, "embedding": vectors})
	}
	return x.reply(data)
}

// embed returns the vectors of each text, and the number of all tokens.
func (s *Server) embed(x *exchange, many bool) (q embeddingRequest, h *serving.Host, rows [][][]float32, tokens int, err error) {
	if err = s.read(x, &q); err != nil {
		return
	}
	if h, err = x.host(q.Model); err != nil {
		return
	}
	if !q.Input.Given {
		q.Input = q.Content
	}
	o := grove.EmbedOptions{Pooling: q.Pooling, Raw: q.Normalize != nil && *q.Normalize == -1}
	switch {
	case len(q.Input.List) == 0:
		err = wire.Refuse("input", "input is missing")
	case len(q.Input.List) > wire.MaxAnswers:
		err = wire.Refuse("input", "%d texts; at most %d", len(q.Input.List), wire.MaxAnswers)
	case q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64":
		err = wire.Refuse("encoding_format", "encoding_format %q is not known; float and base64 are", wire.Clip(q.Encoding))
	case q.Dimensions != nil:
		err = wire.Unsupported("dimensions", "vectors are as wide as the model")
	case q.Normalize != nil && *q.Normalize != 2 && *q.Normalize != -1:
		err = wire.Unsupported("embd_normalize", "2 and -1 are supported")
	}
	if err != nil {
		return
	}
	var texts [][]token.ID
	for _, raw := range q.Input.List {
		var p wire.Prompt
		if p, err = raw.Resolve(h.Model); err != nil {
			return
		}
		if p.IDs == nil {
			if p.IDs, err = h.Model.Tokenize(p.Text, true, false); err != nil {
				return
			}
		}
		texts, tokens = append(texts, p.IDs), tokens+len(p.IDs)
	}
	err = h.Compute(x.r.Context(), x.id, func(ctx context.Context) error {
		for _, ids := range texts {
			vectors, err := h.Model.EmbedIDs(ctx, ids, o, many)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				return wire.RefusalOf(err)
			}
			rows = append(rows, vectors)
		}
		return nil
	})
	return
}

// packed returns a vector as base64 of little-endian float32.
func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
