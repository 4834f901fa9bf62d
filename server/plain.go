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
	"grove/token"
)

// health handles GET /health: 503 while models are loaded and when the server stops.
func (s *Server) health(x *exchange) error {
	switch {
	case s.ending.Err() != nil:
		return errStopping
	case !s.ready.Load():
		return errLoading
	}
	return x.reply(map[string]string{"status": "ok"})
}

// page handles GET /: the chat page. It asks for a key itself where requests need one.
func (s *Server) page(x *exchange) error {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeTime)) // a recorder of tests has none
	page.ServeHTTP(x.w, x.r)
	return nil
}

// modelBody describes a model.
type modelBody struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Owner   string         `json:"owned_by"`
	MaxLen  int            `json:"max_model_len"`
	Meta    map[string]any `json:"meta"`
}

func (h *host) body() modelBody {
	return modelBody{h.name, "model", h.created.Unix(), "grove", h.info.Context, map[string]any{
		"architecture": h.info.Arch, "name": h.info.Name, "n_ctx": h.info.Context, "n_vocab": h.info.Vocabulary,
		"size": h.info.WeightBytes,
	}}
}

// models handles GET /v1/models.
func (s *Server) models(x *exchange) error {
	data := []modelBody{}
	for _, h := range s.all() {
		data = append(data, h.body())
	}
	return x.reply(map[string]any{"object": "list", "data": data})
}

// oneModel handles GET /v1/models/{name}.
func (s *Server) oneModel(x *exchange) error {
	h, err := s.host(x.r.PathValue("name"))
	if err != nil {
		return err
	}
	return x.reply(h.body())
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
	h, err := s.host(q.Model)
	if err != nil {
		return err
	}
	ids, err := h.model.Tokenize(q.Content+q.Prompt, q.Special, q.Parse != nil && !*q.Parse)
	if err != nil {
		return asRequestError(err)
	}
	if !q.Pieces {
		return x.reply(map[string]any{"tokens": append([]token.ID{}, ids...)})
	}
	tokens := []map[string]any{}
	for _, id := range ids {
		text, raw := h.piece(id)
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
	h, err := s.host(q.Model)
	if err != nil {
		return err
	}
	ids := make([]token.ID, len(q.Tokens))
	for i, id := range q.Tokens {
		if err := h.check("tokens", id); err != nil {
			return err
		}
		ids[i] = token.ID(id)
	}
	text, err := h.model.Detokenize(ids)
	if err != nil {
		return asRequestError(err)
	}
	return x.reply(map[string]string{"content": strings.ToValidUTF8(text, "\ufffd")})
}

// props handles GET /props.
func (s *Server) props(x *exchange) error {
	h, err := s.host(x.r.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	return x.reply(map[string]any{
		"model_alias": h.name, "model_path": h.name, "total_slots": cap(h.free), "build_info": fingerprint,
		"default_generation_settings": map[string]any{"n_ctx": h.info.Context, "params": map[string]any{
			"temperature": defaultsNative.sampling.Temperature, "top_k": defaultsNative.sampling.TopK,
			"top_p": defaultsNative.sampling.TopP, "min_p": defaultsNative.sampling.MinP, "n_predict": -1,
		}},
		"methods":    grove.Methods(),
		"modalities": map[string]bool{"vision": false, "audio": false},
	})
}

// slots handles GET /slots. With fail_on_no_slot it answers 503 where all are taken.
func (s *Server) slots(x *exchange) error {
	query := x.r.URL.Query()
	h, err := s.host(query.Get("model"))
	if err != nil {
		return err
	}
	all, free := []map[string]any{}, 0
	for i, slot := range h.states() {
		if !slot.busy {
			free++
		}
		all = append(all, map[string]any{
			"id": i, "n_ctx": h.info.Context, "is_processing": slot.busy, "id_task": slot.request,
			"n_prompt_tokens": slot.prompt, "n_decoded": slot.generated,
		})
	}
	if query.Has("fail_on_no_slot") && free == 0 {
		return &apiError{status: http.StatusServiceUnavailable, retry: 1, Message: "all places for texts are taken", Type: typeUnavailable, Code: "no_slot"}
	}
	return x.reply(all)
}

// embeddingRequest is the body of /v1/embeddings and /embedding.
type embeddingRequest struct {
	Model      string  `json:"model"`
	Input      prompts `json:"input"`
	Content    prompts `json:"content"` // as llama.cpp calls it
	Encoding   string  `json:"encoding_format"`
	Dimensions *int    `json:"dimensions"`
	Pooling    string  `json:"pooling"`
	Normalize  *int    `json:"embd_normalize"`
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
		"object": "list", "model": h.name, "data": data, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
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
func (s *Server) embed(x *exchange, many bool) (q embeddingRequest, h *host, rows [][][]float32, tokens int, err error) {
	if err = s.read(x, &q); err != nil {
		return
	}
	if h, err = s.host(q.Model); err != nil {
		return
	}
	if !q.Input.given {
		q.Input = q.Content
	}
	o := grove.EmbedOptions{Pooling: q.Pooling, Raw: q.Normalize != nil && *q.Normalize == -1}
	switch {
	case len(q.Input.list) == 0:
		err = refuse("input", "input is missing")
	case len(q.Input.list) > maxAnswers:
		err = refuse("input", "%d texts; at most %d", len(q.Input.list), maxAnswers)
	case q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64":
		err = refuse("encoding_format", "encoding_format %q is not known; float and base64 are", clip(q.Encoding))
	case q.Dimensions != nil:
		err = unsupported("dimensions", "vectors are as wide as the model")
	case q.Normalize != nil && *q.Normalize != 2 && *q.Normalize != -1:
		err = unsupported("embd_normalize", "2 and -1 are supported")
	}
	if err != nil {
		return
	}
	var texts [][]token.ID
	for _, raw := range q.Input.list {
		var p prompt
		if p, err = raw.resolve(h); err != nil {
			return
		}
		if p.ids == nil {
			if p.ids, err = h.model.Tokenize(p.text, true, false); err != nil {
				return
			}
		}
		texts, tokens = append(texts, p.ids), tokens+len(p.ids)
	}
	err = s.slot(x.r.Context(), h, x.id, func(ctx context.Context) error {
		for _, ids := range texts {
			vectors, err := h.model.EmbedIDs(ctx, ids, o, many)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				return asRequestError(err)
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
