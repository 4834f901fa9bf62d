package batches

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"

	"grove/server/driver"
	"grove/server/wire"
)

// fileID begins the ids of files.
const fileID = "file-"

// The purposes of files.
const (
	purposeInput  = "batch"
	purposeOutput = "batch_output"
)

// fileRecord is a file that is kept.
type fileRecord struct {
	header
	Name    string `json:"name"`
	Purpose string `json:"purpose"`
	Bytes   int64  `json:"bytes"`
	Sum     string `json:"sha256"`  // of the bytes, in hexadecimal digits
	Created int64  `json:"created"` // seconds since 1970, as those below
	Expires int64  `json:"expires"`
}

// fileBody is a file in answers.
type fileBody struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Bytes   int64  `json:"bytes"`
	Created int64  `json:"created_at"`
	Expires int64  `json:"expires_at"`
	Name    string `json:"filename"`
	Purpose string `json:"purpose"`
	Status  string `json:"status"`
}

func (f *fileRecord) body() fileBody {
	return fileBody{f.ID, "file", f.Bytes, f.Created, f.Expires, f.Name, f.Purpose, "processed"}
}

// newFile returns the record of a file that expires in some seconds.
func (s *Service) newFile(owner, id, name, purpose string, of content, seconds int64) *fileRecord {
	now := time.Now().Unix()
	return &fileRecord{header{ID: id, Owner: owner, Due: s.store.clock.now() + seconds}, name, purpose, of.bytes, of.sum, now, now + seconds}
}

// content is what a file has.
type content struct {
	bytes int64
	sum   string // SHA-256, in hexadecimal digits
}

// contentOf reads a file to its end.
func contentOf(r io.Reader) (content, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return content{n, hex.EncodeToString(h.Sum(nil))}, err
}

// errChanged reports a file whose bytes are not those that were kept.
var errChanged = errors.New("the file is damaged: its bytes are not those that were kept")

// damaged returns the answer to a request whose file has changed; another error stays as it is.
func damaged(err error) error {
	if errors.Is(err, errChanged) {
		return &wire.Error{Status: http.StatusInternalServerError, Type: wire.TypeServer, Code: "file_damaged", Message: errChanged.Error(), Cause: err}
	}
	return err
}

// openFile opens a file whose bytes are those that were kept, at its beginning. Errors: errChanged; those of the file system.
func (s *Service) openFile(f *fileRecord) (*os.File, error) {
	file, err := os.Open(s.store.path(f.ID))
	if err != nil {
		return nil, err
	}
	has, err := contentOf(file)
	if err == nil && (has != content{f.Bytes, f.Sum}) {
		err = fmt.Errorf("%s: %w", f.ID, errChanged)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// file returns the caller's file that the path names.
func (s *Service) file(x *driver.Request) (*fileRecord, error) {
	f, id := new(fileRecord), x.R.PathValue("id")
	found := false
	err := s.store.view(func(tx *bolt.Tx) (err error) {
		found, err = get(tx, ownerOf(x), id, f)
		return err
	})
	if err == nil && !found {
		err = missing("file", id)
	}
	return f, err
}

// getFile handles GET /v1/files/{id}.
func (s *Service) getFile(x *driver.Request) error {
	f, err := s.file(x)
	if err != nil {
		return err
	}
	return x.Reply(f.body())
}

// content handles GET /v1/files/{id}/content. A client may ask for a range, and has time for each piece.
func (s *Service) content(x *driver.Request) error {
	f, err := s.file(x)
	if err != nil {
		return err
	}
	file, err := s.openFile(f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing("file", f.ID) // it was deleted meanwhile
	case err != nil:
		return damaged(err)
	}
	defer file.Close()
	x.W.Header().Set("Content-Type", "application/jsonl")
	w := &pieces{ResponseWriter: x.W, each: x.Server.WriteTimeout}
	http.ServeContent(w, x.R, "", time.Unix(f.Created, 0), file)
	return nil
}

// pieces gives a client time for each piece of an answer.
type pieces struct {
	http.ResponseWriter
	each time.Duration
}

// Write implements [http.ResponseWriter].
func (p *pieces) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.each)) // a recorder of tests has none
	return p.ResponseWriter.Write(b)
}

// deleteFile handles DELETE /v1/files/{id}. A file of requests that a batch needs stays.
func (s *Service) deleteFile(x *driver.Request) error {
	f, err := s.file(x)
	if err != nil {
		return err
	}
	err = s.store.update(func(tx *bolt.Tx) error {
		user, err := needs(tx, f)
		if err == nil && user != "" {
			err = &wire.Error{Status: http.StatusConflict, Type: wire.TypeInvalid, Code: "file_in_use", Message: "the batch " + user + " needs the file; cancel it first"}
		}
		if err != nil {
			return err
		}
		return drop(tx, f)
	})
	if err != nil {
		return storeError(err)
	}
	s.remove(f)
	return x.Reply(map[string]any{"id": f.ID, "object": "file", "deleted": true})
}

// needs returns the id of a batch that has not ended and needs a file; "": none does.
func needs(tx *bolt.Tx, f *fileRecord) (string, error) {
	all, err := list[batchRecord](tx, &f.Owner)
	for _, b := range all {
		if b.Input == f.ID && !b.Status.ended() {
			return b.ID, err
		}
	}
	return "", err
}

// remove removes a file whose record is gone.
func (s *Service) remove(f *fileRecord) {
	s.usage.add(f.Owner, -f.Bytes)
	if err := os.Remove(s.store.path(f.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.config.Log.Warn("a file cannot be removed", "file", f.ID, "error", err)
	}
}

// listFiles handles GET /v1/files.
func (s *Service) listFiles(x *driver.Request) error {
	p, err := readPage(x, "purpose", maxRecords)
	if err != nil {
		return err
	}
	owner := ownerOf(x)
	var all []fileBody
	err = s.store.view(func(tx *bolt.Tx) error {
		files, err := list[fileRecord](tx, &owner)
		for _, f := range files {
			if want := x.R.URL.Query().Get("purpose"); want == "" || want == f.Purpose {
				all = append(all, f.body())
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return reply(x, p, all, func(f fileBody) string { return f.ID })
}

// page is the part of a list that a request asks for.
type page struct {
	after    string
	limit    int
	newFirst bool
}

// readPage reads the query of a list, which may have one more parameter.
func readPage(x *driver.Request, more string, most int) (p page, err error) {
	p = page{limit: min(most, 20), newFirst: true}
	if more != "" {
		p.limit = most
	}
	for name, values := range x.R.URL.Query() {
		value := values[len(values)-1]
		switch {
		case name == "after":
			p.after = value
		case name == "limit":
			if p.limit, err = strconv.Atoi(value); err != nil || p.limit < 1 || p.limit > most {
				return p, wire.Refuse("limit", "limit is %q; it must be from 1 to %d", wire.Clip(value), most)
			}
		case name == "order" && more != "":
			if p.newFirst = value != "asc"; p.newFirst && value != "desc" {
				return p, wire.Refuse("order", "order is %q; it must be asc or desc", wire.Clip(value))
			}
		case name != more:
			return p, wire.Refuse(wire.Clip(name), "%s: the list has no such parameter", wire.Clip(name))
		}
	}
	return p, nil
}

// reply sends a part of a list, of which all has the oldest first.
func reply[T any](x *driver.Request, p page, all []T, id func(T) string) error {
	data, seen, more := []T{}, p.after == "", false
	for i := range all {
		one := all[i]
		if p.newFirst {
			one = all[len(all)-1-i]
		}
		switch {
		case !seen:
			seen = id(one) == p.after
		case len(data) == p.limit:
			more = true
		default:
			data = append(data, one)
		}
	}
	if !seen {
		return wire.Refuse("after", "after: %q is not in the list", wire.Clip(p.after))
	}
	body := map[string]any{"object": "list", "data": data, "has_more": more, "first_id": nil, "last_id": nil}
	if n := len(data); n > 0 {
		body["first_id"], body["last_id"] = id(data[0]), id(data[n-1])
	}
	return x.Reply(body)
}
