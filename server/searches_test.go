package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server"
)

// TestSearches: best_of and use_beam_search give what the programs that they stand for give, and the attempts are listed.
func TestSearches(t *testing.T) {
	s := serve(t, server.Config{})
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		prompt, text := `{"prompt":"func main() {"`, "choices/0/text"
		if path != "/v1/completions" {
			prompt, text = `{"messages":[{"role":"user","content":"func main() {"}]`, "choices/0/message/content"
			s = serveChat(t)
		}
		prompt += `,"max_tokens":12,"seed":5,"temperature":1`
		for _, tt := range []struct{ fields, search, figure string }{
			{`"best_of":2`, "best,n=2", ""},
			{`"use_beam_search":true,"best_of":2`, "beam,n=2", "steps"},
			{`"use_beam_search":true,"best_of":2,"length_penalty":0,"early_stopping":"never"`, "beam,n=2,length=0,early=never", "steps"},
			{`"use_beam_search":true,"early_stopping":true`, "beam,n=1,early=true", "steps"},
			{`"search":"vote,n=2,answer=text"`, "vote,n=2,answer=text", "votes"},
		} {
			got := s.post(t, path, prompt+","+tt.fields+"}")
			want := s.post(t, path, prompt+`,"search":"`+tt.search+`"}`)
			list, _ := got.at("timings/search").([]any)
			if got.at(text) != want.at(text) || got.at(text) == nil || got.at("timings/grade") != "lossy" || len(list) == 0 ||
				cmp.Diff(want.at("timings/search"), got.at("timings/search")) != "" || tt.figure != "" && got.at("timings/search_figures/"+tt.figure) == nil {
				t.Errorf("%s %s: %v, timings %v; with search %v", path, tt.fields, got.at(text), got.at("timings"), want.at(text))
			}
		}
		plain := s.post(t, path, prompt+`}`)
		if same := s.post(t, path, prompt+`,"best_of":1,"use_beam_search":false,"length_penalty":1,"early_stopping":false}`); same.at(text) != plain.at(text) || same.at("timings/search") != nil {
			t.Errorf("%s: %v without a search, plain %v", path, same, plain)
		}
	}
}
