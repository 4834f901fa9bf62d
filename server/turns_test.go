package server_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"grove/server"
	"grove/server/access"
)

// TestKeysTakeTurns: behind 64 requests of one key, the first of another is answered when at most a few of them are: those that have a slot.
func TestKeysTakeTurns(t *testing.T) {
	keys := []access.Key{{Name: "ann", Secret: "a"}, {Name: "bob", Secret: "b"}}
	for _, share := range []bool{false, true} {
		entry := long(t, 100)
		s := serveModels(t, server.Config{Access: gate(t, access.Config{Keys: keys, Share: share})}, entry)
		var answered atomic.Int32
		var all sync.WaitGroup
		ask := func(key, path, body string) {
			if status, text, _ := s.do(t, "POST", path, body, "X-Api-Key", key); status != 200 {
				t.Errorf("%s: %d %s", key, status, text)
			}
		}
		for i := range 64 {
			all.Go(func() {
				ask("a", "/completion", fmt.Sprintf(`{"prompt":"a%d","n_predict":200,"ignore_eos":true}`, i))
				answered.Add(1)
			})
		}
		eventually(t, "nobody waits", func() bool {
			_, text, _ := s.do(t, "GET", "/metrics", "", "X-Api-Key", "a")
			return !strings.Contains(text, "grove_requests_waiting 0\n") && answered.Load() > 0
		})
		for path, body := range map[string]string{"/completion": `{"prompt":"b","n_predict":2}`, "/v1/embeddings": `{"input":"b"}`} {
			before := answered.Load()
			ask("b", path, body)
			if n := answered.Load() - before; n > 8 {
				t.Errorf("share %v: %s of bob: %d of ann's requests were answered before", share, path, n)
			}
		}
		all.Wait()
	}
}
