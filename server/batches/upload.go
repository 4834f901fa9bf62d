package batches

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	bolt "go.etcd.io/bbolt"

	"grove/server/driver"
	"grove/server/wire"
)

// The bounds of the form that has a file.
const (
	maxParts  = 16
	maxValue  = 1024 // bytes of a value
	maxName   = 255  // bytes of a file's name
	formBytes = 64 << 10
	piece     = 64 << 10
	leastRate = 16 << 10 // bytes a second by which a file must come
)

// form is what a client sends with a file.
type form struct {
	file    string // its place; "": none came
	name    string
	bytes   int64
	purpose string
	anchor  string
	seconds int64
}

// upload handles POST /v1/files. The file goes to the disk as it comes; no more than a piece of it is in memory.
func (s *Service) upload(x *driver.Request) error {
	f, owner := form{seconds: usualSeconds}, ownerOf(x)
	kept := false
	defer func() {
		if f.file != "" && !kept {
			s.usage.add(owner, -f.bytes)
			_ = os.Remove(f.file) // the next server removes it otherwise
		}
	}()
	if n := x.R.ContentLength - formBytes; n > s.usage.left(owner) {
		return s.noRoom()
	}
	if err := s.readForm(x, &f); err != nil {
		return err
	}
	r := s.newFile(owner, newID(fileID), f.name, purposeInput, f.bytes, f.seconds)
	if err := os.Rename(f.file, s.store.path(r.ID)); err != nil {
		return storeError(err)
	}
	f.file = s.store.path(r.ID)
	err := s.store.update(func(tx *bolt.Tx) error {
		if err := mayKeep(tx, owner); err != nil {
			return err
		}
		return put(tx, r)
	})
	if err != nil {
		return storeError(err)
	}
	kept = true
	return x.Reply(r.body())
}

// mayKeep refuses a file beside which an owner has as many as it may.
func mayKeep(tx *bolt.Tx, owner string) error {
	files, err := list[fileRecord](tx, &owner)
	if err == nil && len(files) >= maxRecords {
		err = full("files_full", "there are %d files; delete some first", len(files))
	}
	return err
}

// noRoom is the answer where the caller's files have as many bytes as they may.
func (s *Service) noRoom() error {
	return full("storage_full", "the files would have more than %d bytes together (grove serve --max-state-bytes); delete some first", s.usage.most)
}

// readForm reads the parts of the form.
func (s *Service) readForm(x *driver.Request, f *form) error {
	x.R.Body = http.MaxBytesReader(x.W, &timed{ReadCloser: x.R.Body, x: x, began: time.Now()}, s.config.Upload+formBytes)
	parts, err := x.R.MultipartReader()
	if err != nil {
		return &wire.Error{
			Status: http.StatusUnsupportedMediaType, Type: wire.TypeInvalid, Code: "unsupported_media_type", Message: "the request has no form; send multipart/form-data with file and purpose",
		}
	}
	for n := 0; ; n++ {
		p, err := parts.NextPart()
		switch {
		case err == io.EOF:
			return f.check()
		case err != nil:
			return formError(err)
		case n == maxParts:
			return wire.Refuse("", "the form has more than %d parts", maxParts)
		}
		if err := s.readPart(x, p, f); err != nil {
			return err
		}
	}
}

// readPart reads a part of the form.
func (s *Service) readPart(x *driver.Request, p *multipart.Part, f *form) error {
	name := p.FormName()
	if name == "file" {
		if f.file != "" {
			return wire.Refuse("file", "file: the form has it twice")
		}
		f.name = cleanName(p.FileName())
		return s.receive(x, p, f)
	}
	text, err := io.ReadAll(io.LimitReader(p, maxValue+1))
	if err != nil {
		return formError(err)
	}
	if len(text) > maxValue {
		return wire.Refuse(wire.Clip(name), "%s has more than %d bytes", wire.Clip(name), maxValue)
	}
	switch name {
	case "purpose":
		f.purpose = string(text)
	case "expires_after[anchor]":
		f.anchor = string(text)
	case "expires_after[seconds]":
		if f.seconds, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			f.seconds = math.MinInt64
		}
	default:
		return wire.Refuse(wire.Clip(name), "%s: the form of a file has no such field; it has file, purpose and expires_after", wire.Clip(name))
	}
	return nil
}

// check refuses a form whose values cannot be honoured.
func (f *form) check() error {
	switch {
	case f.file == "":
		return wire.Refuse("file", "file is missing")
	case f.purpose != purposeInput:
		return wire.Refuse("purpose", "purpose is %q; it must be %q: files are for batches alone", wire.Clip(f.purpose), purposeInput)
	case f.bytes == 0:
		return wire.Refuse("file", "file is empty")
	}
	return checkExpiry("expires_after", f.anchor, f.seconds)
}

// checkExpiry refuses a time to expire. An empty anchor stands for the usual one.
func checkExpiry(field, anchor string, seconds int64) error {
	switch {
	case anchor != "" && anchor != "created_at":
		return wire.Refuse(field+".anchor", "%s.anchor is %q; it must be created_at", field, wire.Clip(anchor))
	case seconds < leastSeconds || seconds > usualSeconds:
		return wire.Refuse(field+".seconds", "%s.seconds must be from %d to %d", field, leastSeconds, usualSeconds)
	}
	return nil
}

// receive writes the file to the disk.
func (s *Service) receive(x *driver.Request, from io.Reader, f *form) (err error) {
	to, err := os.CreateTemp(filepath.Join(s.config.Dir, filesDir), uploadName)
	if err != nil {
		return storeError(err)
	}
	f.file = to.Name()
	defer func() {
		if failed := to.Close(); err == nil && failed != nil {
			err = storeError(failed)
		}
	}()
	owner, buf := ownerOf(x), make([]byte, piece)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if f.bytes+int64(n) > s.config.Upload {
				return wire.ErrorOf(tooLarge(s.config.Upload))
			}
			if !s.usage.take(owner, int64(n)) {
				return s.noRoom()
			}
			f.bytes += int64(n)
			if _, err := to.Write(buf[:n]); err != nil {
				return storeError(err)
			}
		}
		switch {
		case err == io.EOF:
			return storeError(to.Sync())
		case err != nil:
			return formError(err)
		}
	}
}

// cleanName returns the name of a file as answers show it.
func cleanName(name string) string {
	name = filepath.Base(strings.ReplaceAll(name, `\`, "/"))
	if name == "." || name == "/" || !utf8.ValidString(name) {
		return "requests.jsonl"
	}
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}

// timed gives a client time for a body by its length: a minute, and a second for each 16 KiB.
type timed struct {
	io.ReadCloser
	x     *driver.Request
	began time.Time
	bytes int64
}

// Read implements [io.Reader].
func (t *timed) Read(b []byte) (int, error) {
	limit := t.began.Add(2*t.x.Server.WriteTimeout + time.Duration(t.bytes/leastRate)*time.Second)
	_ = http.NewResponseController(t.x.W).SetReadDeadline(limit) // a recorder of tests has none
	n, err := t.ReadCloser.Read(b)
	t.bytes += int64(n)
	return n, err
}

// tooLarge is the answer to a file of more bytes than one may have.
func tooLarge(most int64) error {
	return &wire.Error{
		Status: http.StatusRequestEntityTooLarge, Type: wire.TypeInvalid, Param: "file", Code: "file_too_large",
		Message: fmt.Sprintf("file has more than %d bytes (grove serve --max-file-bytes); send it in parts", most),
	}
}

// formError is the answer to a form that cannot be read.
func formError(err error) error {
	large := new(http.MaxBytesError)
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit - formBytes)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &wire.Error{Status: http.StatusRequestTimeout, Type: wire.TypeInvalid, Code: "request_timeout", Message: "the file did not come in time"}
	}
	return wire.Refuse("", "the form cannot be read, or is cut off")
}

// storeError is the answer where the state cannot be read or written; nil: it could be. It names no path of the server.
func storeError(err error) error {
	api := new(wire.Error)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api):
		return api
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return full("disk_full", "the server's disk is full")
	}
	return &wire.Error{Status: http.StatusInternalServerError, Type: wire.TypeServer, Code: "state_failed", Message: "the server cannot write its state; its log has the cause", Cause: err}
}
