package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestErrors: what goes wrong is told in the server's words, and can be tried again.
func TestErrors(t *testing.T) {
	const lost = "The connection was lost before the answer ended. See whether grove serve runs and this device reaches it, then try again."
	f := serve(t, nil)
	p := visit(t, f.URL)
	p.run("patience.second = 1")
	p.until("document.querySelector('#model').value")
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		text   string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) { refuse(w, 400, "top_k is <b>", "top_k", "") }, "top_k is <b>. Look at the settings and the message, then try again.", ""},
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 403, "the host is not allowed", "", "forbidden")
		}, "the host is not allowed. Open the page at the address that grove serve printed, or allow this one there.", ""},
		"no model": {func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 404, "the model is not served", "model", "model_not_found")
		}, "the model is not served. Choose another model at the top; its list is new.", ""},
		"failed": {func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 503, "the model could not be opened", "", "model_failed")
		}, "the model could not be opened. Choose another model, or read the server's log.", ""},
		"fault":    {func(w http.ResponseWriter, _ *http.Request) { refuse(w, 500, "internal error", "", "internal_error") }, "internal error. The server's log has the cause.", ""},
		"not ours": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, "The server answers with status 502. The server's log has the cause.", ""},
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 429, "too many requests wait", "", "queue_full")
		}, "too many requests wait. Other requests take all places. Try again in a while.", ""},
		"inside": {func(w http.ResponseWriter, _ *http.Request) {
			s := begin(w)
			s.tell(piece{"Half", false})
			s.event(map[string]any{"error": map[string]any{"message": "the server is shutting down"}})
		}, "the server is shutting down.", "Half"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			begin(w).tell(piece{"Half", false})
			time.Sleep(50 * time.Millisecond)
			panic(http.ErrAbortHandler)
		}, lost, "Half"},
		"unfinished": {func(w http.ResponseWriter, _ *http.Request) { begin(w).tell(piece{"Half", false}) }, lost, "Half"},
		"no object":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: 7\n\ndata: null\n\n") }, lost, ""},
		"wrong types": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":{\"x\":1},\"reasoning_content\":[2]}}],\"timings\":{\"predicted_n\":\"<b>\"},\"usage\":3}\n\n")
		}, lost, ""},
		"endless line": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: ", strings.Repeat("x", 5_000_000)) }, "The server sends a line of more than 4000000 characters.", ""},
		"garbage":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: {\n\n") }, lost, ""},
	} {
		f.now(func() { f.answer = c.answer })
		p.send(name)
		p.answered()
		p.says("article:last-child .error[role=alert]", c.want)
		p.says("article:last-child .body", c.text)
	}
	f.now(func() { f.answer = tells(piece{"Better.", false}) })
	n := value[int](p, "document.querySelectorAll('article').length")
	p.click("article:last-child .offer")
	p.says("article:last-child .body", "Better.")
	p.answered()
	if got := value[int](p, "document.querySelectorAll('article').length"); got != n {
		t.Errorf("%d turns, before %d", got, n)
	}
	messages := f.request()["messages"].([]any)
	for i, m := range messages { // of questions without an answer, only the last is asked
		if role := m.(map[string]any)["role"]; (role == "user") != (i%2 == 0) {
			t.Errorf("message %d is of %v", i, role)
		}
	}
	f.CloseClientConnections()
	f.Listener.Close()
	p.send("Anyone?")
	p.answered()
	p.says("article:last-child .error", "There is no connection to the server. See whether grove serve runs and this device reaches it, then try again.")
	p.until("document.querySelector('#trouble').checkVisibility()")
	p.picture("error")
}
