package server_test

import (
	"strconv"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/score"
	"grove/server"
)

// TestScore compares the scores of both forms of /v1/score with those of the library.
func TestScore(t *testing.T) {
	file := ranker(t)
	ranks, err := grove.OpenBytes(file, grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ranks.Close()
	m, err := grove.OpenBytes(served(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := serveModels(t, server.Config{}, source("gopher", served(), options), source("ranker", file, options))

	free := "package main"
	want, err := m.Score(t.Context(), "package strings\n\nfunc Contains", []string{"(s string) bool", "(x int)", " a"}, grove.ScoreOptions{Unconditional: &free})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"prompt":"package strings\n\nfunc Contains","continuations":["(s string) bool","(x int)"," a"],"unconditional":"package main","token_logprobs":true}`
	for _, path := range []string{"/v1/score", "/score"} {
		o := s.post(t, path, body)
		for i, c := range want.Continuations {
			at := "data/" + string(rune('0'+i)) + "/"
			if o.at(at+"score") != c.Logprob || o.at(at+"scores/acc_norm") != c.Score(score.Characters) || o.at(at+"scores/acc_mutual_info") != c.Score(score.Mutual) ||
				o.at(at+"object") != "score" || o.at(at+"index") != float64(i) || float32(o.at(at+"token_logprobs/0/logprob").(float64)) != c.Tokens[0].Logprob {
				t.Errorf("%s: continuation %d is %v, want %v", path, i, o.at("data"), c)
			}
		}
		if o.at("best/acc") != float64(score.Best(want.Continuations, score.Plain)) || o.at("best/acc_norm") != float64(score.Best(want.Continuations, score.Characters)) {
			t.Errorf("%s: the best are %v", path, o.at("best"))
		}
		if o.at("usage/prompt_tokens") != float64(want.PromptTokens+want.Tokens) {
			t.Errorf("%s: %v", path, o.at("usage"))
		}
	}
	if _, text, _ := s.do(t, "GET", "/metrics", ""); !strings.Contains(text, "grove_scored_tokens_total "+strconv.Itoa(2*want.Tokens)) {
		t.Errorf("the metrics lack %d scored tokens", 2*want.Tokens)
	}

	pair, err := ranks.Rerank(t.Context(), "grove?", []string{"a language"})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{"model":"ranker","text_1":"grove?","text_2":["a small wood","a language"]}`,
		`{"model":"ranker","text_1":["x","grove?"],"text_2":["a small wood","a language"]}`,
	} {
		if o := s.post(t, "/v1/score", body); float32(o.at("data/1/score").(float64)) != pair[0].Score || o.at("data/1/index") != 1.0 {
			t.Errorf("%s: %v, want %v", body, o.at("data"), pair[0].Score)
		}
	}
}

// TestScoreRefusals checks the field and the message of each refusal.
func TestScoreRefusals(t *testing.T) {
	s := serveModels(t, server.Config{}, source("gopher", served(), options), source("ranker", ranker(t), options), source("diffusion", gopher.Named(gopher.DiffusionName), options))
	long := strings.Repeat("word ", 300)
	for body, want := range map[string][2]string{
		`{}`:                                                   {"prompt", "prompt is missing"},
		`{"prompt":"a"}`:                                       {"continuations", "continuations is missing, or empty"},
		`{"prompt":"a","continuations":[]}`:                    {"continuations", "continuations is missing, or empty"},
		`{"prompt":"a","continuations":"b"}`:                   {"continuations", "continuations"},
		`{"prompt":"a","continuations":[" b",""]}`:             {"continuations", "continuation 1"},
		`{"prompt":"` + long + `","continuations":[" b"]}`:     {"prompt", "the context is full of"},
		`{"prompt":"a","continuations":[" b","` + long + `"]}`: {"continuations", "continuation 1 and the prompt have"},
		`{"prompt":"a","continuations":[" b"],"unconditional":"` + long + `"}`: {"unconditional", "the unconditional prompt"},
		`{"prompt":"a","continuations":[" b"],"priority":11}`:                  {"priority", "priority"},
		`{"prompt":"a","continuations":[" b"],"text_1":"x"}`:                   {"prompt", "text_1 and text_2 are given"},
		`{"prompt":"a","continuations":[" b"],"model":"ranker"}`:               {"prompt", "generates no text"},
		`{"prompt":"a","continuations":[" b"],"model":"diffusion"}`:            {"prompt", "no logits of the next token"},
		`{"text_1":"a","text_2":"b"}`:                                          {"text_1", "a model that generates scores a prompt and continuations"},
		`{"text_1":"a","model":"ranker"}`:                                      {"text_2", "text_2 is missing, or empty"},
		`{"text_1":["a","b"],"text_2":["c"],"model":"ranker"}`:                 {"text_1", "text_1 has 2 texts and text_2 1"},
		`{"text_1":1,"text_2":["c"],"model":"ranker"}`:                         {"text_1", "it must be a text, or a list of texts"},
		`{"text_1":"a","text_2":"` + long + `","model":"ranker"}`:              {"text_2", "the context is full of 128 tokens"},
	} {
		status, text, _ := s.do(t, "POST", "/v1/score", body)
		if o := parse(t, text); status != 400 || o.at("error/param") != want[0] || !strings.Contains(text, want[1]) {
			t.Errorf("%.80s: %d %s, want %v", body, status, text, want)
		}
	}
}
