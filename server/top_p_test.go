package server_test

import (
	"strings"
	"testing"
)

// TestTopPZero: a top_p of 0 takes the likeliest token on every route, as a temperature of 0 does.
func TestTopPZero(t *testing.T) {
	s := serveChat(t)
	const messages = `"messages":[{"role":"user","content":"a"}]`
	for _, route := range []struct{ path, fields, at string }{
		{"/v1/chat/completions", messages + `,"max_tokens":8`, "choices/0/message/content"},
		{"/v1/completions", `"prompt":"a","max_tokens":8`, "choices/0/text"},
		{"/v1/responses", `"input":"a","max_output_tokens":8`, "output/0/content/0/text"},
		{"/v1/messages", messages + `,"max_tokens":8`, "content/0/text"},
		{"/completion", `"prompt":"a","n_predict":8`, "content"},
		{"/api/chat", messages + `,"stream":false,"options":{"num_predict":8,"seed":5,%}`, "message/content"},
		{"/api/generate", `"prompt":"a","stream":false,"options":{"num_predict":8,"seed":5,%}`, "response"},
	} {
		text := func(sampling string) any {
			body := `{` + route.fields + `,"seed":5,` + sampling + `}`
			if at := strings.IndexByte(route.fields, '%'); at >= 0 {
				body = `{` + route.fields[:at] + sampling + route.fields[at+1:] + `}`
			}
			return s.post(t, route.path, body).at(route.at)
		}
		want := text(`"temperature":0`)
		if got := text(`"temperature":2,"top_k":0,"top_p":0`); got != want || want == nil || want == "" {
			t.Errorf("%s: %q, and with a temperature of 0 %q", route.path, got, want)
		}
		if text(`"temperature":2,"top_k":0,"top_p":1`) == want {
			t.Errorf("%s: a top_p of 1 changes nothing", route.path)
		}
	}
	o := s.post(t, "/completion", `{"prompt":"a","n_predict":1,"top_p":0}`)
	if got := o.at("generation_settings/top_p"); got != 0.0 {
		t.Errorf("the answer says a top_p of %v", got)
	}
}
