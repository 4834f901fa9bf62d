package server_test

import (
	"testing"

	"grove/server"
)

func TestSmoke(t *testing.T) {
	s := serve(t, server.Config{})
	t.Log(s.do(t, "POST", "/v1/completions", `{"prompt":"func main() {","max_tokens":12,"temperature":0,"logprobs":2,"echo":true}`))
	t.Log(s.do(t, "POST", "/v1/completions", `{"prompt":"func main() {","max_tokens":12,"temperature":0,"stream":true,"stream_options":{"include_usage":true},"n":2}`))
	t.Log(s.do(t, "POST", "/completion", `{"prompt":"func main() {","n_predict":6,"temperature":0,"n_probs":2}`))
	t.Log(s.do(t, "POST", "/completion", `{"prompt":"func main() {","n_predict":6,"temperature":0,"stream":true}`))
	t.Log(s.do(t, "GET", "/slots", ``))
	t.Log(s.do(t, "GET", "/props", ``))
	t.Log(s.do(t, "GET", "/metrics", ``))
	t.Log(s.do(t, "POST", "/v1/embeddings", `{"input":["a","b"],"encoding_format":"base64"}`))
	t.Log(s.do(t, "POST", "/tokenize", `{"content":"func é","with_pieces":true}`))
}
