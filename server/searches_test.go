package server_test

import (
	"fmt"
	"strings"
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

// TestSearchProgress: objects of a stream tell how far a search is, the text is that of a request that does not ask, and what cannot tell it says so.
func TestSearchProgress(t *testing.T) {
	s := serve(t, server.Config{})
	for path, text := range map[string]string{"/v1/completions": "choices/0/text", "/completion": "content"} {
		ask := func(progress bool) (all string, told []any) {
			body := fmt.Sprintf(`{"prompt":"func main() {","max_tokens":12,"seed":5,"temperature":1,"search":"best,n=2","stream":true,"search_progress":%v}`, progress)
			_, stream, _ := s.do(t, "POST", path, body)
			for event := range strings.SplitSeq(stream, "\n\n") {
				data, is := strings.CutPrefix(event, "data: {")
				if !is {
					continue // the end
				}
				e := parse(t, "{"+data)
				if p := e.at("search_progress"); p != nil {
					told = append(told, p)
				}
				part, _ := e.at(text).(string)
				all += part
			}
			return all, told
		}
		plain, none := ask(false)
		same, told := ask(true)
		if plain == "" || plain != same || none != nil || len(told) == 0 {
			t.Errorf("%s: %q with %v; %q with %v", path, same, told, plain, none)
		}
		if len(told) > 0 {
			for _, field := range []string{"answer", "samples", "tokens", "branchings"} {
				if _, is := told[0].(map[string]any)[field].(float64); !is {
					t.Errorf("%s: %v has no %s", path, told[0], field)
				}
			}
		}
	}
	for fields, want := range map[string]string{`"search":"best,n=2"`: "stream is not true", `"stream":true`: "the request has no search"} {
		if status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a","search_progress":true,`+fields+`}`); status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d, %s", fields, status, text)
		}
	}
	if status, text, _ := serveChat(t).do(t, "POST", "/v1/responses", `{"input":"a","stream":true,"search":"best,n=2","temperature":1,"search_progress":true}`); status != 400 || !strings.Contains(text, "search_progress") {
		t.Errorf("/v1/responses: %d, %s", status, text)
	}
}
