package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/server"
)

// canvasModel is a diffusion model of random weights; edit changes its metadata, nil: not.
func canvasModel(t *testing.T, name string, edit func(kv []gguf.KV) []gguf.KV) server.Entry {
	t.Helper()
	metadata, tensors, err := synthetic.Spec{Arch: "llada", Vocabulary: true, Vocab: 300, Context: 128}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		metadata = edit(metadata)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return source(name, b.Bytes(), grove.Options{Threads: 1, CacheType: "f32", ChatTemplate: "chatml"})
}

// TestDiffusionRefused: each fault of the field diffusion, and each field that a canvas cannot have, is answered with the field to blame.
func TestDiffusionRefused(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, served(), options), canvasModel(t, "llada", nil), canvasModel(t, "bare", func(kv []gguf.KV) (left []gguf.KV) {
		for _, k := range kv {
			if k.Key != "tokenizer.ggml.mask_token_id" {
				left = append(left, k)
			}
		}
		return left
	}))
	for _, c := range []struct{ model, fields, param, wants string }{
		{"llada", `"max_tokens":500`, "max_tokens", "a canvas of 500 tokens behind a prompt of"},
		{"llada", `"max_tokens":-3`, "max_tokens", "-3"},
		{"llada", `"diffusion":{"steps":0}`, "diffusion.steps", "from 1 to 65536"},
		{"llada", `"diffusion":{"steps":-4}`, "diffusion.steps", "from 1 to 65536"},
		{"llada", `"diffusion":{"steps":17}`, "diffusion.steps", "17 steps; there must be 1 to 16"},
		{"llada", `"diffusion":{"block":-1}`, "diffusion.block", "from 0 to 65536"},
		{"llada", `"diffusion":{"block":17}`, "diffusion.block", "blocks of 17 tokens"},
		{"llada", `"diffusion":{"policy":"treshold"}`, "diffusion.policy", `did you mean "threshold"`},
		{"llada", `"diffusion":{"policy":"threshold:p=-1"}`, "diffusion.policy", "from 0 to 2"},
		{"llada", `"diffusion":{"policy":7}`, "diffusion.policy", ""},
		{"llada", `"diffusion":{"cache":"tripel"}`, "diffusion.cache", "not known"},
		{"llada", `"diffusion":{"cache":"dual","early":"end"}`, "diffusion.cache", "choose none or prefix"},
		{"llada", `"diffusion":{"blocks":"adaptive:0"}`, "diffusion.blocks", "above 0"},
		{"llada", `"diffusion":{"early":"soon"}`, "diffusion.early", "not known"},
		{"llada", `"diffusion":{"drafts":65}`, "diffusion.drafts", "from 0 to 64"},
		{"llada", `"diffusion":{"drafts":-1}`, "diffusion.drafts", "from 0 to 64"},
		{"llada", `"diffusion":{"drafts":2}`, "diffusion.drafts", "the policy static"},
		{"llada", `"diffusion":{"stepz":2}`, "diffusion.stepz", "not known"},
		{"llada", `"diffusion":{"policy":"rcr"},"regex":"a*"`, "diffusion.policy", "policy rcr changes tokens that are fixed"},
		{"llada", `"diffusion":{"progress":true}`, "diffusion.progress", "stream is not true"},
		{"llada", `"search":"ffs"`, "search", "a search is not supported"},
		{"llada", `"method":"lookup"`, "method", "a method that drafts is not supported"},
		{"llada", `"skip_layers":"to=1"`, "skip_layers", "skipping layers is not supported"},
		{"bare", `"max_tokens":8`, "model", "names no mask token"},
		{modelName, `"diffusion":{"progress":true},"stream":true`, "diffusion", "no diffusion model"},
	} {
		body := fmt.Sprintf(`{"model":%q,"prompt":"a",%s}`, c.model, c.fields)
		status, text, _ := s.do(t, "POST", "/v1/completions", body)
		var e struct {
			Error struct{ Message, Param string }
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != 400 || e.Error.Param != c.param || !strings.Contains(e.Error.Message, c.wants) {
			t.Errorf("%s: %d, %s; want param %s, %q", body, status, text, c.param, c.wants)
		}
	}
}

// TestDiffusionProgress: parts of a stream tell how far the canvas is, the text is that of a request that does not ask, and routes that cannot tell it say so.
func TestDiffusionProgress(t *testing.T) {
	s := serveModels(t, server.Config{}, canvasModel(t, "llada", nil))
	const fields = `"max_tokens":12,"temperature":0,"ignore_eos":true,"stream":true,"diffusion":{"policy":"static","progress":%v}`
	for path, c := range map[string]struct{ prompt, text, canvas string }{
		"/v1/completions":      {`"prompt":"text"`, "choices/0/text", "choices/0/canvas"},
		"/v1/chat/completions": {`"messages":[{"role":"user","content":"text"}]`, "choices/0/delta/content", "choices/0/canvas"},
		"/completion":          {`"prompt":"text"`, "content", "canvas"},
	} {
		ask := func(progress bool) (text string, canvases []any) {
			_, stream, _ := s.do(t, "POST", path, "{"+c.prompt+","+fmt.Sprintf(fields, progress)+"}")
			for event := range strings.SplitSeq(stream, "\n\n") {
				data, is := strings.CutPrefix(event, "data: {")
				if !is {
					continue // the end
				}
				e := parse(t, "{"+data)
				part, _ := e.at(c.text).(string)
				if text += part; e.at(c.canvas) != nil {
					canvases = append(canvases, e.at(c.canvas))
				}
			}
			return text, canvases
		}
		text, none := ask(false)
		same, canvases := ask(true)
		if text != same || none != nil || len(canvases) < 2 || fmt.Sprint(canvases[0]) != "[12]" {
			t.Errorf("%s: %q with canvases %v; %q with %v", path, same, canvases, text, none)
		}
	}
	status, text, _ := s.do(t, "POST", "/v1/responses", `{"input":"a",`+fmt.Sprintf(fields, true)[len(`"max_tokens":12,`):]+"}")
	if status != 400 || !strings.Contains(text, "diffusion.progress") {
		t.Errorf("/v1/responses: %d, %s", status, text)
	}
}
