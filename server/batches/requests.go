package batches

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"grove/server/batch"
	"grove/server/driver"
	"grove/server/wire"
)

// batchID begins the ids of batches.
const batchID = "batch_"

// status is how far a batch is, in OpenAI's words.
type status string

// The statuses. A batch begins with validating.
const (
	validating status = "validating"
	failed     status = "failed"
	inProgress status = "in_progress"
	finalizing status = "finalizing"
	completed  status = "completed"
	expired    status = "expired"
	cancelling status = "cancelling"
	cancelled  status = "cancelled"
)

// ended reports whether a status is the last one.
func (s status) ended() bool {
	return s == failed || s == completed || s == expired || s == cancelled
}

// batchRecord is a batch. Its files have their ids from the beginning, and records once it has ended.
type batchRecord struct {
	header
	Endpoint string            `json:"endpoint"`
	Window   string            `json:"window"`
	Input    string            `json:"input"`
	Answers  string            `json:"answers"`
	Faulty   string            `json:"faulty"`
	Status   status            `json:"status"`
	Times    map[status]int64  `json:"times"` // seconds since 1970 of each status
	Expires  int64             `json:"expires"`
	Keep     int64             `json:"keep"` // seconds for which the files of answers are kept
	Metadata map[string]string `json:"metadata"`
	Faults   []batch.Fault     `json:"faults"`
	Counts   counts            `json:"counts"`
	Unasked  int               `json:"unasked"` // of the failed: lines that nobody was asked for, since the batch ended before

	HasAnswers bool `json:"has_answers"`
	HasFaulty  bool `json:"has_faulty"`
}

// counts are those of the lines of a batch.
type counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// to gives a batch a status.
func (b *batchRecord) to(s status) {
	b.Status = s
	b.Times[s] = time.Now().Unix()
}

// faultBody is a fault of a batch in answers.
type faultBody struct {
	Code    string  `json:"code"`
	Line    *int    `json:"line"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

// body returns a batch in answers.
func (b *batchRecord) body() map[string]any {
	o := map[string]any{
		"id": b.ID, "object": "batch", "endpoint": b.Endpoint, "errors": nil, "input_file_id": b.Input, "completion_window": b.Window, "status": b.Status,
		"output_file_id": nil, "error_file_id": nil, "created_at": b.Times[validating], "expires_at": b.Expires, "request_counts": b.Counts, "metadata": b.Metadata,
	}
	for _, s := range []status{inProgress, finalizing, completed, failed, expired, cancelling, cancelled} {
		o[string(s)+"_at"] = nil
		if at, ok := b.Times[s]; ok {
			o[string(s)+"_at"] = at
		}
	}
	if b.HasAnswers {
		o["output_file_id"] = b.Answers
	}
	if b.HasFaulty {
		o["error_file_id"] = b.Faulty
	}
	if len(b.Faults) > 0 {
		faults := []faultBody{}
		for _, f := range b.Faults {
			one := faultBody{Code: f.Code, Message: f.Message}
			if f.Line > 0 {
				one.Line = &f.Line
			}
			faults = append(faults, one)
		}
		o["errors"] = map[string]any{"object": "list", "data": faults}
	}
	return o
}

// batchRequest is the body of POST /v1/batches.
type batchRequest struct {
	Input    string            `json:"input_file_id" bytes:"256"`
	Endpoint string            `json:"endpoint" bytes:"256"`
	Window   string            `json:"completion_window" bytes:"32"`
	Metadata map[string]string `json:"metadata" most:"16" bytes:"512"`
	Keep     *expiry           `json:"output_expires_after"`
}

// expiry says when files expire.
type expiry struct {
	Anchor  string `json:"anchor" bytes:"32"`
	Seconds int64  `json:"seconds"`
}

// endpoints matches the paths that a batch may have; a line that names one without a route fails by itself.
var endpoints = regexp.MustCompile(`^/v1/[a-z0-9_/-]{1,100}$`)

// The range of completion windows.
const (
	leastWindow = time.Minute
	mostWindow  = usualSeconds * time.Second
)

// record returns the batch that a request asks for.
func (q *batchRequest) record() (b *batchRecord, window time.Duration, err error) {
	window, err = time.ParseDuration(q.Window)
	if err != nil || window < leastWindow || window > mostWindow {
		return nil, 0, wire.Refuse("completion_window", "completion_window is %q; it must be from 1m to 720h, such as 24h", wire.Clip(q.Window))
	}
	if !endpoints.MatchString(q.Endpoint) || strings.HasPrefix(q.Endpoint, "/v1/files") || strings.HasPrefix(q.Endpoint, "/v1/batches") {
		return nil, 0, wire.Refuse("endpoint", "endpoint is %q; it must be a path that answers a request, such as /v1/chat/completions", wire.Clip(q.Endpoint))
	}
	keep := int64(usualSeconds)
	if q.Keep != nil {
		if err := checkExpiry("output_expires_after", q.Keep.Anchor, q.Keep.Seconds); err != nil {
			return nil, 0, err
		}
		keep = q.Keep.Seconds
	}
	for name := range q.Metadata {
		if len(name) > 64 {
			return nil, 0, wire.Refuse("metadata", "metadata: the name %q has more than 64 bytes", wire.Clip(name))
		}
	}
	b = &batchRecord{
		Endpoint: q.Endpoint, Window: q.Window, Input: q.Input, Answers: newID(fileID), Faulty: newID(fileID), Times: map[status]int64{}, Keep: keep, Metadata: q.Metadata,
	}
	b.to(validating)
	b.Expires = b.Times[validating] + int64(window/time.Second)
	return b, window, nil
}

// create handles POST /v1/batches.
func (s *Service) create(x *driver.Request) error {
	var q batchRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	b, window, err := q.record()
	if err != nil {
		return err
	}
	b.header = header{ID: newID(batchID), Owner: ownerOf(x), Due: s.store.clock.now() + int64(window/time.Second)}
	err = s.store.update(func(tx *bolt.Tx) error {
		f := new(fileRecord)
		switch found, err := get(tx, b.Owner, b.Input, f); {
		case err != nil:
			return err
		case !found:
			return wire.Refuse("input_file_id", "input_file_id: there is no file %q; POST /v1/files keeps one", wire.Clip(b.Input))
		case f.Purpose != purposeInput:
			return wire.Refuse("input_file_id", "input_file_id: the file has the purpose %s; it must have %s", f.Purpose, purposeInput)
		}
		if err := s.mayOpen(tx, b.Owner); err != nil {
			return err
		}
		return put(tx, b)
	})
	if err != nil {
		return storeError(err)
	}
	s.runner.alarm()
	return x.Reply(b.body())
}

// mayOpen refuses a batch beside which an owner has as many as it may.
func (s *Service) mayOpen(tx *bolt.Tx, owner string) error {
	all, err := list[batchRecord](tx, &owner)
	if err != nil {
		return err
	}
	open := 0
	for _, b := range all {
		if !b.Status.ended() {
			open++
		}
	}
	switch {
	case open >= s.config.Open:
		return &wire.Error{
			Status: http.StatusTooManyRequests, Retry: 60, Type: wire.TypeBusy, Code: "too_many_batches", Message: "the limit of batches that have not ended is reached (grove serve --max-batches); wait for one, or cancel one",
		}
	case len(all) >= maxRecords:
		return full("batches_full", "there are %d batches; they are forgotten as their files expire", len(all))
	}
	return nil
}

// find returns the caller's batch that the path names, with its counts so far.
func (s *Service) find(x *driver.Request) (*batchRecord, error) {
	b, id := new(batchRecord), x.R.PathValue("id")
	found := false
	err := s.store.db.View(func(tx *bolt.Tx) (err error) {
		found, err = get(tx, ownerOf(x), id, b)
		return err
	})
	if err == nil && !found {
		err = missing("batch", id)
	}
	s.runner.count(b)
	return b, err
}

// getBatch handles GET /v1/batches/{id}.
func (s *Service) getBatch(x *driver.Request) error {
	b, err := s.find(x)
	if err != nil {
		return err
	}
	return x.Reply(b.body())
}

// listBatches handles GET /v1/batches.
func (s *Service) listBatches(x *driver.Request) error {
	p, err := readPage(x, "", 100)
	if err != nil {
		return err
	}
	owner := ownerOf(x)
	var all []map[string]any
	err = s.store.db.View(func(tx *bolt.Tx) error {
		batches, err := list[batchRecord](tx, &owner)
		for _, b := range batches {
			if !b.ofMessages() {
				s.runner.count(b)
				all = append(all, b.body())
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return reply(x, p, all, func(b map[string]any) string { return b["id"].(string) })
}

// cancel handles POST /v1/batches/{id}/cancel. The answers so far are kept.
func (s *Service) cancel(x *driver.Request) error {
	b, err := s.find(x)
	if err != nil {
		return err
	}
	if err := s.stopBatch(b); err != nil {
		return err
	}
	return x.Reply(b.body())
}

// stopBatch cancels a batch.
func (s *Service) stopBatch(b *batchRecord) error {
	err := s.change(b, func() error {
		switch {
		case b.Status == cancelling:
			return nil
		case b.Status.ended(), b.Status == finalizing:
			return &wire.Error{Status: http.StatusConflict, Type: wire.TypeInvalid, Code: "batch_ended", Message: "a batch that is " + string(b.Status) + " cannot be cancelled"}
		}
		b.to(cancelling)
		return nil
	})
	if err != nil {
		return storeError(err)
	}
	s.runner.stop(b.ID, errCancelled)
	s.runner.alarm()
	s.runner.count(b)
	return nil
}

// change reads a batch as it is now, and writes it as f makes it.
func (s *Service) change(b *batchRecord, f func() error) error {
	return s.store.update(func(tx *bolt.Tx) error {
		*b = batchRecord{header: b.header}
		if found, err := get(tx, b.Owner, b.ID, b); err != nil || !found {
			return errors.Join(err, missingUnless(found, b.ID))
		}
		if err := f(); err != nil {
			return err
		}
		return put(tx, b)
	})
}

func missingUnless(found bool, id string) error {
	if found {
		return nil
	}
	return missing("batch", id)
}

// expire forgets the files whose time has come and that no batch needs, and the batches that ended and whose files are gone.
func (s *Service) expire() error {
	now := s.store.clock.now()
	var gone []*fileRecord
	err := s.store.update(func(tx *bolt.Tx) error {
		gone = nil
		files, err := list[fileRecord](tx, nil)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.Due > now {
				continue
			}
			if user, err := needs(tx, f); err != nil || user != "" {
				continue
			}
			if err := drop(tx, f); err != nil {
				return err
			}
			gone = append(gone, f)
		}
		batches, err := list[batchRecord](tx, nil)
		for _, b := range batches {
			if b.Status.ended() && b.Due+b.Keep <= now {
				err = errors.Join(err, drop(tx, b))
			}
		}
		return err
	})
	if err == nil {
		for _, f := range gone {
			s.remove(f)
		}
	}
	return err
}

// sizeOf returns the bytes of a file; 0: there is none.
func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
