package server_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server"
	"grove/server/access"
)

// TestPriorityIsARight: requests may be as urgent as the server, or the line of their key, says.
func TestPriorityIsARight(t *testing.T) {
	five, urgent := 5, -10
	keys := []access.Key{{Secret: "plain"}, {Name: "late", Secret: "late", Priority: &five}, {Name: "urgent", Secret: "urgent", Priority: &urgent}}
	for name, c := range map[string]struct {
		access.Config
		most map[string]int // the most urgent priority by key
	}{
		"this machine alone":       {access.Config{}, map[string]int{"": -10}},
		"a bound":                  {access.Config{Priority: &five}, map[string]int{"": 5}},
		"other hosts":              {access.Config{Hosts: []string{"*"}}, map[string]int{"": 0}},
		"other hosts, and a bound": {access.Config{Hosts: []string{"*"}, Priority: &urgent}, map[string]int{"": -10}},
		"keys":                     {access.Config{Keys: keys}, map[string]int{"plain": 0, "late": 5, "urgent": -10}},
		"keys, and a bound":        {access.Config{Keys: keys, Priority: &urgent}, map[string]int{"plain": -10, "late": 5, "urgent": -10}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveModels(t, server.Config{Access: gate(t, c.Config)}, source(modelName, edited(t, served(), template), options))
			for key, most := range c.most {
				for path, body := range map[string]string{
					"/v1/completions": `"prompt":"a","max_tokens":1`, "/completion": `"prompt":"a","n_predict":1`, "/v1/messages": `"max_tokens":1,"messages":[{"role":"user","content":"a"}]`,
				} {
					for priority := max(-10, most-1); priority <= min(10, most+1); priority++ {
						status, text, _ := s.do(t, "POST", path, fmt.Sprintf(`{"priority":%d,%s}`, priority, body), "X-Api-Key", key)
						if priority >= most {
							if status != 200 {
								t.Errorf("%s: key %q, priority %d: %d %s", path, key, priority, status, text)
							}
							continue
						}
						want := fmt.Sprintf("priority is %d; your requests may ask for %d (the most urgent) to 10", priority, most)
						if status != 403 || !strings.Contains(text, want) {
							t.Errorf("%s: key %q, priority %d: %d %s", path, key, priority, status, text)
						}
					}
				}
			}
		})
	}
}

// TestKeysApart: what a key has sent shows neither in the cached tokens of another key's request nor in its drafts, bit for bit, unless
// the server shares.
func TestKeysApart(t *testing.T) {
	keys := []access.Key{{Name: "ann", Secret: "a"}, {Name: "bob", Secret: "b"}}
	body := fmt.Sprintf(`{"prompt":%q,"n_predict":24,"temperature":0,"method":"recycle","cache_salt":"SALT","ignore_eos":true}`, strings.Repeat("func main() { fmt.Println(1) }\n", 12))
	counters := func(s *site, key, salt string) (all []any) {
		status, text, _ := s.do(t, "POST", "/completion", strings.Replace(body, "SALT", salt, 1), "X-Api-Key", key)
		if status != 200 {
			t.Fatal(status, text)
		}
		for _, field := range []string{"content", "timings/cache_n", "timings/draft_n", "timings/draft_n_accepted", "timings/rounds"} {
			all = append(all, parse(t, text).at(field))
		}
		return all
	}
	for _, share := range []bool{false, true} {
		for _, salt := range []string{"", "tea"} {
			fresh := serve(t, server.Config{Access: gate(t, access.Config{Keys: keys, Share: share})})
			want := counters(fresh, "b", salt)
			s := serve(t, server.Config{Access: gate(t, access.Config{Keys: keys, Share: share})})
			for range 3 {
				counters(s, "a", salt)
				counters(s, "a", "")
			}
			got := counters(s, "b", salt)
			if same := cmp.Equal(want, got); same == share {
				t.Errorf("share %v, salt %q: %v, of a fresh server %v", share, salt, got, want)
			}
			if again := counters(s, "b", salt); cmp.Equal(want, again) {
				t.Errorf("share %v, salt %q: a key's own request changes nothing: %v", share, salt, again)
			}
		}
	}
}

// TestOperators: keys without names and operators see what all keys do together; another key sees of other keys' texts that they are
// there.
func TestOperators(t *testing.T) {
	c := server.Config{Access: gate(t, access.Config{Keys: []access.Key{{Name: "ann", Secret: "a"}, {Name: "bob", Secret: "b"}, {Name: "prom", Secret: "p", Operator: true}, {Secret: "u"}}})}
	s := serveModels(t, c, long(t, 4))
	for key, want := range map[string]int{"a": 403, "b": 403, "p": 200, "u": 200} {
		status, text, _ := s.do(t, "GET", "/metrics", "", "X-Api-Key", key)
		if status != want || strings.Contains(text, "operator_only") != (want == 403) {
			t.Errorf("metrics with the key %s: %d %s", key, status, text)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, body := s.beginAs(t, ctx, "a", "/v1/completions", endless)
	defer body.Close()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	for key, sees := range map[string]bool{"a": true, "b": false, "p": true, "u": true} {
		_, text, _ := s.do(t, "GET", "/slots", "", "X-Api-Key", key)
		if n := strings.Count(text, `"is_processing":true`); n != 1 || strings.Contains(text, `"n_prompt_tokens":10`) != sees || (strings.Count(text, `"id_task":""`) == 1) != sees {
			t.Errorf("the key %s: %s", key, text)
		}
	}
}
