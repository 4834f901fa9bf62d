package server_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/method"
	"grove/server"
	"grove/server/serving"
)

func init() {
	method.Register(method.Info{
		Name: "broken", Kind: method.KindText, Grade: method.Exact,
		Open: func(method.Env) (method.Method, error) { return nil, errors.New("a fault that nobody knows") },
	})
}

// TestFaultsLogged: each request with status 500 is logged with its cause at the level of errors, by a server that logs warnings.
func TestFaultsLogged(t *testing.T) {
	var log journal
	s := serve(t, server.Config{Config: serving.Config{Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}})
	log.take(t)
	for _, stream := range []bool{false, true} {
		status, text, _ := s.do(t, "POST", "/completion", fmt.Sprintf(`{"prompt":"a","method":"broken","stream":%v}`, stream))
		found := false
		lines := log.take(t)
		for _, l := range lines {
			found = found || l["msg"] == "request" && l["level"] == "ERROR" && strings.Contains(fmt.Sprint(l["cause"]), "a fault that nobody knows")
		}
		if !found {
			t.Errorf("stream %v: %d %s: no line has the cause: %v", stream, status, text, lines)
		}
	}
	if status, _, _ := s.do(t, "POST", "/completion", `{"prompt":1}`); status != 400 || len(log.take(t)) != 0 {
		t.Errorf("a fault of the client: %d is logged as a warning", status)
	}
}

// TestSearchFaults: no search under a constraint, or at the end of the context, is a fault of the server.
func TestSearchFaults(t *testing.T) {
	const context = 96
	open := grove.Options{Parallel: 10, Threads: 1, Context: context, Guides: []string{gopher.NanoName, "gopher-draft"}, Forget: true}
	s := serveModels(t, server.Config{}, source(modelName, gopher.Named(gopher.NanoName), open))
	searches := []string{"smc,power=2", "ensemble,beam=4", "adadec,threshold=0", "arbitrage,guide=2,step=line"}
	for _, i := range grove.Searches() {
		searches = append(searches, i.Name)
	}
	prompts := map[string]string{`"func a"`: ""}
	for _, n := range []int{context - 2, context - 1, context} {
		prompts["["+strings.TrimSuffix(strings.Repeat("300,", n), ",")+"]"] = ""
	}
	for _, search := range searches {
		for prompt := range prompts {
			for _, more := range []string{`"regex":"[a-z]+"`, `"regex":"[0-9]"`, `"json_schema":{"type":"integer"}`, `"grammar":"root ::= \\"\\u00e9\\" \\"x\\"{3}"`, `"n":2`, `"ignore_eos":true`} {
				body := fmt.Sprintf(`{"prompt":%s,"n_predict":5,"seed":1,"search":%q,%s}`, prompt, search, more)
				if strings.HasPrefix(more, `"n"`) {
					body = strings.Replace(body, `"n":2`, `"temperature":0`, 1)
				}
				if status, text, _ := s.do(t, "POST", "/completion", body); status >= 500 {
					t.Errorf("%s: %d %s", body, status, text)
				}
			}
		}
	}
	for body, code := range map[string]string{
		`{"prompt":"func a","n_predict":5,"search":"ensemble","regex":"[a-z]+"}`:                                           "constraint_failed",
		`{"prompt":[` + strings.TrimSuffix(strings.Repeat("300,", context), ",") + `],"search":"icn,n=3","temperature":0}`: "context_length_exceeded",
	} {
		status, text, _ := s.do(t, "POST", "/completion", body)
		if status == 200 && code == "constraint_failed" {
			continue // what the models hold likely can go on
		}
		if _, _, _, got := wantError(t, text); status != 400 || got != code {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
}
