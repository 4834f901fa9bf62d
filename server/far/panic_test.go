package far

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"grove"
	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/far/remote"
	"grove/server/serving"
)

// TestPanicOfDraft expects that a panic of the near model ends its drafts, and neither the answer nor the process.
func TestPanicOfDraft(t *testing.T) {
	x := &driver.Request{Server: &driver.Server{Pool: serving.NewPool(serving.Config{})}, R: httptest.NewRequest(http.MethodPost, "/", nil)}
	a := &answer{x: x, model: &serving.OpenModel{Info: grove.Info{Vocabulary: 8}}, drafts: map[int]*drafting{}} // a model of nil panics
	a.start(t.Context(), remote.Start{Text: []token.ID{1}, Sampling: "{}"})
	a.working.Wait()
	if err := a.drafts[0].tell(remote.Tokens{At: 1, IDs: []token.ID{2}, Digest: remote.Digest(0, []token.ID{1, 2})}); err != nil {
		t.Errorf("the answer does not go on: %v", err)
	}
}
