package server_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/server"
)

// ranker is the file of an encoder with a head that ranks.
func ranker(t *testing.T) []byte {
	metadata, tensors, err := synthetic.Spec{Arch: "neo-bert", Context: 128, Vocab: 300, Vocabulary: true}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRerank compares the scores of each form of the routes with those of the library.
func TestRerank(t *testing.T) {
	file := ranker(t)
	m, err := grove.OpenBytes(file, grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	documents := []string{"a small wood", "a language", "a grove"}
	want, err := m.Rerank(context.Background(), "grove?", documents)
	if err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for _, r := range want {
		tokens += r.Tokens
	}
	s := serveModels(t, server.Config{}, source("ranker", file, options), source("gopher", served(), options))
	const list = `"query":"grove?","documents":["a small wood",{"text":"a language"},"a grove"]`
	for _, path := range []string{"/v1/rerank", "/rerank", "/v1/reranking", "/reranking", "/v2/rerank"} {
		o := s.post(t, path, `{`+list+`,"return_documents":true}`)
		for i, r := range want {
			at := "results/" + string(rune('0'+i)) + "/"
			if float32(o.at(at+"relevance_score").(float64)) != r.Score || o.at(at+"index") != float64(r.Index) || o.at(at+"document/text") != documents[r.Index] {
				t.Errorf("%s: result %d is %v, want %v", path, i, o.at("results"), r)
			}
		}
		if path != "/v2/rerank" && (o.at("usage/prompt_tokens") != float64(tokens) || o["object"] != "list" || o["model"] != "ranker") ||
			path == "/v2/rerank" && (o.at("meta/tokens/input_tokens") != float64(tokens) || o["id"] == "") {
			t.Errorf("%s: %v", path, o)
		}
	}
	if o := s.post(t, "/v1/rerank", `{`+list+`,"top_n":1}`); len(o["results"].([]any)) != 1 || o.at("results/0/index") != float64(want[0].Index) || o.at("results/0/document") != nil {
		t.Errorf("the best one: %v", o)
	}
	_, text, _ := s.do(t, "POST", "/rerank", `{"query":"grove?","texts":["a small wood","a language","a grove"],"return_text":true,"raw_scores":true}`)
	if o := parse(t, `{"list":`+text+`}`); float32(o.at("list/0/score").(float64)) != want[0].Score || o.at("list/2/text") != documents[want[2].Index] {
		t.Errorf("the form of text-embeddings-inference: %s", text)
	}
	for body, message := range map[string]string{
		`{"query":"q"}`:                                                  "documents is missing, or empty",
		`{"query":"q","documents":[]}`:                                   "documents is missing, or empty",
		`{"documents":["d"]}`:                                            "query is missing, or empty",
		`{"query":"q","documents":"d"}`:                                  "it must be a list of texts, or of objects with a text",
		`{"query":"q","documents":[{}]}`:                                 "the text is missing",
		`{"query":"q","documents":[1]}`:                                  "it must be a text, or an object with a text",
		`{` + list + `,"texts":["d"]}`:                                   "documents is another name of the field; leave one of them out",
		`{` + list + `,"top_n":0}`:                                       "top_n",
		`{` + list + `,"raw_scores":false}`:                              "raw_scores",
		`{` + list + `,"model":"gopher"}`:                                "has no head to rank texts with",
		`{"query":"q","documents":["` + strings.Repeat("x", 300) + `"]}`: "the context is full of 128 tokens",
	} {
		if status, text, _ := s.do(t, "POST", "/v1/rerank", body); status != 400 || !strings.Contains(text, message) {
			t.Errorf("%.80s: %d %s", body, status, text)
		}
	}
	if status, text, _ := s.do(t, "POST", "/v1/completions", `{"model":"ranker","prompt":"x"}`); status != 400 || !strings.Contains(text, "neo-bert is an encoder and generates no text") {
		t.Errorf("a reranker that generates: %d %s", status, text)
	}
	if !slices.IsSortedFunc(want, func(a, b grove.Ranked) int { return int(1e6 * (b.Score - a.Score)) }) {
		t.Error(want)
	}
}

// TestReadings compares the fields that say which states are read with the library.
func TestReadings(t *testing.T) {
	file := ranker(t)
	m, err := grove.OpenBytes(file, grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := serveModels(t, server.Config{}, source("ranker", file, options))
	for fields, o := range map[string]grove.EmbedOptions{
		`"dimensions":8`:                                 {Dimensions: 8},
		`"layers":[0,-1],"pooling":"mean"`:               {Layers: []int{0, -1}, Pooling: "mean"},
		`"exit":2,"mask":"causal"`:                       {Exit: 2, Mask: "causal"},
		`"tokens":[1,-1],"pooling":"mean"`:               {Tokens: []int{1, -1}, Pooling: "mean"},
		`"embd_normalize":-1,"layers":[1],"tokens":[-2]`: {Raw: true, Layers: []int{1}, Tokens: []int{-2}},
	} {
		want, err := m.Embed(context.Background(), "some text", o)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := s.post(t, "/v1/embeddings", `{"input":"some text",`+fields+`}`).at("data/0/embedding").([]any)
		if !slices.EqualFunc(got, want, func(a any, b float32) bool { return float32(a.(float64)) == b }) {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
	for fields, message := range map[string]string{
		`"layers":[3]`: "layer 3: there are 3, from 0", `"mask":"most"`: `mask \"most\" is not known`, `"exit":4`: "it must be 1 to 3", `"dimensions":65`: "it must be from 1 to 64",
		`"layers":[1.5]`: "layers",
	} {
		if status, text, _ := s.do(t, "POST", "/v1/embeddings", `{"input":"x",`+fields+`}`); status != 400 || !strings.Contains(text, message) {
			t.Errorf("%s: %d %s", fields, status, text)
		}
	}
}
