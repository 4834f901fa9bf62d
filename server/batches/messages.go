package batches

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"grove/server/anthropic"
	"grove/server/batch"
	"grove/server/driver"
	"grove/server/wire"
)

// Anthropic's API of message batches: the requests come in one body, and the results are one file. A batch of this kind is a batch of a file
// of lines like any other; its routes show it in this API's words.
const (
	messageBatchID = "msgbatch_"
	messageWindow  = 24 * time.Hour
	messageRoute   = "/v1/messages"
)

// messagesRequest is the body of POST /v1/messages/batches.
type messagesRequest struct {
	Requests []messagesEntry `json:"requests" most:"100000"`
}

// messagesEntry is a request of a batch.
type messagesEntry struct {
	CustomID string          `json:"custom_id" bytes:"64"`
	Params   json.RawMessage `json:"params"` // a body of /v1/messages
}

// lines returns the requests as the lines of a file.
func (q *messagesRequest) lines() ([]byte, error) {
	if len(q.Requests) == 0 {
		return nil, wire.Refuse("requests", "requests: there is none")
	}
	var b bytes.Buffer
	seen := map[string]bool{}
	for i, r := range q.Requests {
		name := fmt.Sprintf("requests[%d].custom_id", i)
		switch {
		case r.CustomID == "":
			return nil, wire.Refuse(name, "%s is missing", name)
		case seen[r.CustomID]:
			return nil, wire.Refuse(name, "%s: %q is there twice", name, r.CustomID)
		case len(r.Params) == 0 || r.Params[0] != '{':
			return nil, wire.Refuse("requests", "requests[%d].params must be an object", i)
		}
		seen[r.CustomID] = true
		line, err := wire.Marshal(map[string]any{"custom_id": r.CustomID, "method": http.MethodPost, "url": messageRoute, "body": r.Params})
		if err != nil {
			return nil, wire.Refuse("requests", "requests[%d].params: %v", i, err)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes(), nil
}

// createMessages handles POST /v1/messages/batches.
func (s *Service) createMessages(x *driver.Request) error {
	var q messagesRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	text, err := q.lines()
	if err != nil {
		return err
	}
	owner := ownerOf(x)
	if !s.usage.take(owner, int64(len(text))) {
		return s.noRoom()
	}
	of, _ := contentOf(bytes.NewReader(text)) // a slice is read without errors
	input := s.newFile(owner, newID(fileID), "requests.jsonl", purposeInput, of, usualSeconds)
	b, err := (&batchRequest{Input: input.ID, Endpoint: messageRoute, Window: messageWindow.String()}).messages(s, owner)
	if err == nil {
		err = os.WriteFile(s.store.path(input.ID), text, 0o600)
	}
	if err == nil {
		err = s.store.update(func(tx *bolt.Tx) error {
			if err := mayKeep(tx, owner); err != nil {
				return err
			}
			if err := s.mayOpen(tx, owner); err != nil {
				return err
			}
			if err := put(tx, input); err != nil {
				return err
			}
			return put(tx, b)
		})
	}
	if err != nil {
		s.remove(input)
		return storeError(err)
	}
	s.runner.alarm()
	b.Counts.Total = len(q.Requests)
	return x.Reply(b.messagesBody())
}

// messages returns the record of a batch of messages.
func (q *batchRequest) messages(s *Service, owner string) (*batchRecord, error) {
	b, window, err := q.record()
	if err != nil {
		return nil, err
	}
	b.header = header{ID: newID(messageBatchID), Owner: owner, Due: s.store.clock.now() + int64(window/time.Second)}
	return b, nil
}

// messagesCounts are the counts of a batch in the words of this API.
type messagesCounts struct {
	Processing int `json:"processing"`
	Succeeded  int `json:"succeeded"`
	Errored    int `json:"errored"`
	Canceled   int `json:"canceled"`
	Expired    int `json:"expired"`
}

// messagesBody returns a batch in answers of this API.
func (b *batchRecord) messagesBody() map[string]any {
	n := messagesCounts{Succeeded: b.Counts.Completed, Errored: b.Counts.Failed - b.Unasked}
	left := b.Counts.Total - n.Succeeded - n.Errored
	o := map[string]any{
		"id": b.ID, "type": "message_batch", "processing_status": "in_progress", "created_at": stamp(b.Times[validating]), "expires_at": stamp(b.Expires),
		"ended_at": nil, "archived_at": nil, "cancel_initiated_at": nil, "results_url": nil,
	}
	if at, ok := b.Times[cancelling]; ok {
		o["processing_status"], o["cancel_initiated_at"] = "canceling", stamp(at)
	}
	switch b.Status {
	case cancelled:
		n.Canceled = left
	case expired:
		n.Expired = left
	case failed:
		n.Errored += left
	default:
		n.Processing = left
	}
	if b.Status.ended() {
		o["processing_status"], o["ended_at"], o["results_url"] = "ended", stamp(b.Times[b.Status]), messageRoute+"/batches/"+b.ID+"/results"
	}
	o["request_counts"] = n
	return o
}

func stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// getMessages handles GET /v1/messages/batches/{id}.
func (s *Service) getMessages(x *driver.Request) error {
	b, err := s.find(x)
	if err != nil {
		return err
	}
	return x.Reply(b.messagesBody())
}

// listMessages handles GET /v1/messages/batches.
func (s *Service) listMessages(x *driver.Request) error {
	p, err := anthropic.ReadPage(x)
	if err != nil {
		return err
	}
	owner := ownerOf(x)
	var all []map[string]any // the newest first
	err = s.store.view(func(tx *bolt.Tx) error {
		batches, err := list[batchRecord](tx, &owner)
		for i := range batches {
			if b := batches[len(batches)-1-i]; b.ofMessages() {
				s.runner.count(b)
				all = append(all, b.messagesBody())
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return x.Reply(anthropic.Page(p, all, func(b map[string]any) string { return b["id"].(string) }))
}

// ofMessages says whether a batch was made by this API.
func (b *batchRecord) ofMessages() bool {
	return len(b.ID) > len(messageBatchID) && b.ID[:len(messageBatchID)] == messageBatchID
}

// cancelMessages handles POST /v1/messages/batches/{id}/cancel.
func (s *Service) cancelMessages(x *driver.Request) error {
	b, err := s.find(x)
	if err != nil {
		return err
	}
	if err := s.stopBatch(b); err != nil {
		return err
	}
	return x.Reply(b.messagesBody())
}

// deleteMessages handles DELETE /v1/messages/batches/{id}: the batch and its files are forgotten.
func (s *Service) deleteMessages(x *driver.Request) error {
	b, err := s.find(x)
	if err != nil {
		return err
	}
	if !b.Status.ended() {
		return &wire.Error{Status: http.StatusConflict, Type: wire.TypeInvalid, Code: "batch_in_progress", Message: "the batch " + b.ID + " has not ended; cancel it first"}
	}
	var files []*fileRecord
	err = s.store.update(func(tx *bolt.Tx) error {
		files = nil
		for _, id := range []string{b.Input, b.Answers, b.Faulty} {
			f := new(fileRecord)
			found, err := get(tx, b.Owner, id, f)
			if err == nil && found {
				files, err = append(files, f), drop(tx, f)
			}
			if err != nil {
				return err
			}
		}
		return drop(tx, b)
	})
	if err != nil {
		return storeError(err)
	}
	for _, f := range files {
		s.remove(f)
	}
	return x.Reply(map[string]any{"id": b.ID, "type": "message_batch_deleted"})
}

// results handles GET /v1/messages/batches/{id}/results: a line for each request, those without an answer at the end.
func (s *Service) results(x *driver.Request) error {
	b, err := s.find(x)
	if err != nil {
		return err
	}
	if !b.Status.ended() {
		return wire.Refuse("id", "the batch %s has not ended; its results come then", b.ID)
	}
	x.W.Header().Set("Content-Type", "application/x-jsonl")
	w := bufio.NewWriter(&pieces{ResponseWriter: x.W, each: x.Server.WriteTimeout})
	answered := map[string]bool{}
	for _, id := range []string{b.Answers, b.Faulty} {
		if err := s.eachLine(b.Owner, id, func(line []byte) error {
			var r batch.Result
			if err := json.Unmarshal(line, &r); err != nil || r.CustomID == nil {
				return fmt.Errorf("batches: the file %s: a line that is no result: %w", id, err)
			}
			answered[*r.CustomID] = true
			return writeResult(w, *r.CustomID, resultOf(&r))
		}); err != nil {
			return err
		}
	}
	rest := map[string]any{"type": "canceled"}
	switch b.Status {
	case expired:
		rest["type"] = "expired"
	case failed:
		rest = map[string]any{"type": "errored", "error": anthropic.ErrorBody(wire.Refuse("", "the batch failed: %v", b.faults()))}
	}
	err = s.eachLine(b.Owner, b.Input, func(line []byte) error {
		var r struct {
			CustomID string `json:"custom_id"`
		}
		if err := json.Unmarshal(line, &r); err != nil || answered[r.CustomID] {
			return err
		}
		return writeResult(w, r.CustomID, rest)
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

// faults says why a batch failed.
func (b *batchRecord) faults() string {
	if len(b.Faults) == 0 {
		return "its requests cannot be read"
	}
	return b.Faults[0].Message
}

// resultOf returns a result in the form of this API.
func resultOf(r *batch.Result) map[string]any {
	switch {
	case r.Error != nil && r.Error.Code == codeCancelled:
		return map[string]any{"type": "canceled"}
	case r.Error != nil && r.Error.Code == codeExpired:
		return map[string]any{"type": "expired"}
	case r.Error != nil:
		return map[string]any{"type": "errored", "error": anthropic.ErrorBody(wire.Refuse("", "%s", r.Error.Message))}
	case r.Response.Status == http.StatusOK:
		return map[string]any{"type": "succeeded", "message": json.RawMessage(r.Response.Body)}
	}
	return map[string]any{"type": "errored", "error": json.RawMessage(r.Response.Body)}
}

func writeResult(w io.Writer, id string, result map[string]any) error {
	line, err := wire.Marshal(map[string]any{"custom_id": id, "result": result})
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// eachLine calls f with each line of a file that is kept; a file that is not there has none.
func (s *Service) eachLine(owner, id string, f func(line []byte) error) error {
	record, found := new(fileRecord), false
	err := s.store.view(func(tx *bolt.Tx) (err error) {
		found, err = get(tx, owner, id, record)
		return err
	})
	if err != nil || !found {
		return err
	}
	file, err := s.openFile(record)
	if err != nil {
		return damaged(err)
	}
	defer file.Close()
	r := bufio.NewReader(file)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
