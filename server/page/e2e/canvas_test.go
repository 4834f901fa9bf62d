package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestCanvas: while a diffusion model answers, the unfinished part of its canvas is drawn behind the text, masks as blocks; it gives way to the text.
func TestCanvas(t *testing.T) {
	first, second := make(gate), make(gate)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		a := begin(w)
		a.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "canvas": []any{9}}}})
		a.tell(piece{"The quick", false})
		a.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "canvas": []any{3, " fox <b>", 4}}}})
		first.wait(r)
		a.tell(piece{" brown fox.", false})
		a.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "canvas": []any{"!", 2}}}})
		second.wait(r)
		a.end()
	})
	s.now(func() { s.props = strings.Replace(s.props, `"n_ctx_train"`, `"diffusion":true,"n_ctx_train"`, 1) })
	p := visit(t, s.URL)
	p.until(`model.diffusion`)
	p.send("What jumps?")
	p.says(".assistant .canvas", "\u2591\u2591\u2591 fox <b>\u2591\u2591\u2591\u2591")
	p.says(".assistant .body", "The quick")
	p.picture("canvas")
	close(first)
	p.says(".assistant .canvas", "!\u2591\u2591")
	close(second)
	p.answered()
	p.says(".assistant .canvas", "")
	p.says(".assistant .body", "The quick brown fox.")
	if d, ok := s.request()["diffusion"].(map[string]any); !ok || d["progress"] != true {
		t.Errorf("the request has the field diffusion %v", d)
	}
}
