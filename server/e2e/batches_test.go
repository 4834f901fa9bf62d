package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

// lines are n requests.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gopher","messages":[{"role":"user","content":"func f%d"}],"max_tokens":5}}`+"\n", i, i)
	}
	return b.String()
}

// TestBatches: the client's whole way of a batch: a file, a batch, its end, the answers, the lists, and deleting.
func TestBatches(t *testing.T) {
	c := connect(t)
	file, err := c.Files.New(t.Context(), openai.FileNewParams{
		File: openai.File(strings.NewReader(lines(12)), "in.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch, ExpiresAfter: openai.FileNewParamsExpiresAfter{Seconds: 7200},
	})
	if err != nil {
		t.Fatal(err)
	}
	if file.Filename != "in.jsonl" || file.Bytes != int64(len(lines(12))) || file.ExpiresAt != file.CreatedAt+7200 {
		t.Errorf("%+v", file)
	}
	b, err := c.Batches.New(t.Context(), openai.BatchNewParams{
		InputFileID: file.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h, Metadata: shared.Metadata{"job": "nightly"},
		OutputExpiresAfter: openai.BatchNewParamsOutputExpiresAfter{Seconds: 3600},
	})
	for end := time.Now().Add(time.Minute); err == nil && b.Status != openai.BatchStatusCompleted; time.Sleep(10 * time.Millisecond) {
		if b, err = c.Batches.Get(t.Context(), b.ID); err == nil && (b.FailedAt > 0 || time.Now().After(end)) {
			t.Fatalf("%+v", b)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.RequestCounts.Total != 12 || b.RequestCounts.Completed != 12 || b.Metadata["job"] != "nightly" || b.ErrorFileID != "" || b.CompletedAt == 0 || b.ExpiresAt != b.CreatedAt+24*3600 {
		t.Errorf("%+v", b)
	}
	content, err := c.Files.Content(t.Context(), b.OutputFileID)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Body.Close()
	n := 0
	for s := bufio.NewScanner(content.Body); s.Scan(); n++ {
		var line struct {
			Response struct {
				Status int                   `json:"status_code"`
				Body   openai.ChatCompletion `json:"body"`
			} `json:"response"`
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil || line.Response.Status != 200 || line.Response.Body.Usage.CompletionTokens != 5 {
			t.Errorf("%s: %v", s.Text(), err)
		}
	}
	if n != 12 {
		t.Errorf("%d answers", n)
	}
	pages := c.Files.ListAutoPaging(t.Context(), openai.FileListParams{Limit: openai.Int(1)})
	var listed []string
	for pages.Next() {
		listed = append(listed, pages.Current().ID)
	}
	if pages.Err() != nil || len(listed) != 2 || listed[1] != file.ID {
		t.Errorf("%v, %v", listed, pages.Err())
	}
	gone, err := c.Files.Delete(t.Context(), file.ID)
	if err != nil || !gone.Deleted {
		t.Errorf("%+v, %v", gone, err)
	}
	_, err = c.Files.Get(t.Context(), file.ID)
	expect(t, err, 404, "invalid_request_error", "id")
}

// TestCancelledBatch: a batch that the client cancels ends, with an answer or an error for each line.
func TestCancelledBatch(t *testing.T) {
	c := connect(t)
	file, err := c.Files.New(t.Context(), openai.FileNewParams{File: openai.File(strings.NewReader(lines(2000)), "in.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Batches.New(t.Context(), openai.BatchNewParams{
		InputFileID: file.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h,
	})
	if err == nil {
		b, err = c.Batches.Cancel(t.Context(), b.ID)
	}
	for end := time.Now().Add(time.Minute); err == nil && b.Status != openai.BatchStatusCancelled; time.Sleep(10 * time.Millisecond) {
		if b, err = c.Batches.Get(t.Context(), b.ID); err == nil && time.Now().After(end) {
			t.Fatalf("%+v", b)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, id := range []string{b.OutputFileID, b.ErrorFileID} {
		if id == "" {
			continue
		}
		content, err := c.Files.Content(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content.Body)
		if err := content.Body.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "\n")
	}
	if n != 2000 || b.RequestCounts.Completed+b.RequestCounts.Failed != 2000 || b.RequestCounts.Failed == 0 {
		t.Errorf("%d lines, %+v", n, b)
	}
}
