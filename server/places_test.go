package server_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/server"
	"grove/server/access"
	"grove/server/serving"
)

// TestPlacesComeBack sends more requests than there are places, one behind the other.
func TestPlacesComeBack(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, gopher.Model(), grove.Options{Parallel: 1, Queue: 1, Threads: 1}))
	for range 4 {
		s.post(t, "/v1/embeddings", `{"input":"a"}`)
		s.post(t, "/v1/completions", `{"prompt":"a","max_tokens":1}`)
	}
}

// TestLongestUnusedCloses opens a third model where two fit: the one that was used last stays.
func TestLongestUnusedCloses(t *testing.T) {
	m, err := grove.OpenBytes(gopher.Model(), options)
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(m.Info().WeightBytes + m.Info().CacheBytes)
	m.Close()
	s := serveModels(t, server.Config{Config: serving.Config{OnDemand: true, Memory: size * 5 / 2}},
		source("a", gopher.Model(), options), source("b", gopher.Model(), options), source("c", gopher.Model(), options))
	for _, name := range []string{"a", "b", "a", "c"} {
		s.post(t, "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"a","max_tokens":1}`, name))
	}
	for name, want := range map[string]string{"a": "loaded", "b": "unloaded", "c": "loaded"} {
		if got := s.status(t, name); got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}

// TestTokensCountOnce compares what a request takes from the tokens of its key with its usage. Meanwhile some come back.
func TestTokensCountOnce(t *testing.T) {
	const perMinute = 600
	s := serveTarget(t, server.Config{Access: gate(t, access.Config{Keys: []access.Key{{Secret: "a", Tokens: perMinute}}})})
	left := func() int {
		_, _, h := s.do(t, "POST", "/tokenize", `{"content":"a"}`, "Authorization", "Bearer a")
		n, err := strconv.Atoi(h.Get("X-Ratelimit-Remaining-Tokens"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, start := left(), time.Now()
	status, body, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a b c","max_tokens":200,"ignore_eos":true}`, "Authorization", "Bearer a")
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	total := int(parse(t, body).at("usage/total_tokens").(float64))
	after := left()
	back := int(time.Since(start).Seconds()*perMinute/60) + 1
	if spent := before - after; spent > total || spent < total-back || total < 200 {
		t.Errorf("a request of %d tokens takes %d, of which %d may have come back", total, spent, back)
	}
}
