package pull

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// errStale reports that a partial file, or its beginning in this download, is not of the content that the server has now.
var errStale = errors.New("the server's file changed during the download")

// download is one attempt at a file.
type download struct {
	client *Client
	cache  *Cache
	File

	out       *os.File
	hash      hash.Hash
	at        int64  // bytes of the partial file
	validator string // strong ETag of the content; "": unknown

	mu      sync.Mutex
	address string // where redirects led; "": nowhere else

	received, shown atomic.Int64
	said            time.Time // of the last event
}

// run continues the partial file to its end and gives it its name. It returns errStale where another attempt from nothing makes
// sense.
func (d *download) run(ctx context.Context) (err error) {
	if d.out, err = d.cache.partial(d.Path + Suffix); err != nil {
		return err
	}
	defer d.out.Close()
	info, err := d.out.Stat()
	if err != nil {
		return d.cache.fault(err)
	}
	d.at = info.Size()
	if d.Digest.kind == "" {
		d.validator = d.readValidator()
	}
	if d.Size >= 0 && d.at > d.Size || d.Digest.kind == "" && d.validator == "" {
		d.at = 0
	}
	resumed := d.at > 0
	if err := d.fill(ctx); err != nil {
		return d.failed(ctx, err)
	}
	if err := d.Digest.check(d.hash); err != nil {
		d.discard()
		if resumed {
			return errStale
		}
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	if err := d.checkMagic(); err != nil {
		d.discard()
		return err
	}
	return d.finish()
}

// failed returns the error of a download that stopped. What a server lied about is removed.
func (d *download) failed(ctx context.Context, err error) error {
	var lie *lengthError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errStale):
		d.discard()
		return err
	case errors.Is(err, errThere):
		d.discard()
		d.client.Report(d.event(Ready, d.Size))
		return nil
	case errors.As(err, &lie):
		d.discard()
	}
	return fmt.Errorf("%s: %w", d.Name, err)
}

// discard removes the partial file.
func (d *download) discard() {
	d.out.Close()
	_ = d.cache.Root.Remove(d.Path + Suffix)
	d.forget()
}

// finish gives the whole file its name.
func (d *download) finish() error {
	err := d.out.Chmod(0o644)
	if err == nil {
		err = d.out.Sync()
	}
	err = errors.Join(err, d.out.Close())
	if err == nil {
		err = d.cache.Root.Rename(d.Path+Suffix, d.Path)
	}
	if err != nil {
		return d.cache.fault(err)
	}
	d.forget()
	d.client.Report(d.event(Ready, d.Size))
	return nil
}

func (d *download) event(s State, done int64) Event {
	return Event{State: s, File: d.Name, Digest: d.Digest.String(), Completed: done, Total: max(d.Size, 0)}
}

// show reports the bytes that have come, ten times a second at most.
func (d *download) show(n int64) {
	done := d.shown.Add(n)
	d.mu.Lock()
	due := time.Since(d.said) >= 100*time.Millisecond
	if due {
		d.said = time.Now()
	}
	d.mu.Unlock()
	if due {
		d.client.Report(d.event(Pulling, done))
	}
}

// fill appends to the partial file what it lacks, and hashes all of it.
func (d *download) fill(ctx context.Context) error {
	if d.Size < 0 || d.at < d.Size {
		first, err := d.begin(ctx)
		if err != nil {
			return err
		}
		if first.StatusCode == http.StatusOK {
			return d.whole(ctx, first)
		}
		if err := d.restore(ctx); err != nil {
			first.Body.Close()
			return err
		}
		return d.segments(ctx, first)
	}
	return d.restore(ctx)
}

// restore cuts the partial file to the bytes that count, and hashes them.
func (d *download) restore(ctx context.Context) error {
	if err := d.out.Truncate(d.at); err != nil {
		return d.cache.fault(err)
	}
	d.hash = d.Digest.hasher(d.Size)
	d.shown.Store(d.at)
	if d.at > 0 {
		d.client.Report(d.event(Verifying, d.at))
	}
	if _, err := d.out.Seek(0, io.SeekStart); err != nil {
		return d.cache.fault(err)
	}
	b := make([]byte, 1<<20)
	for left := d.at; left > 0 && ctx.Err() == nil; {
		n, err := d.out.Read(b[:min(left, int64(len(b)))])
		if err != nil {
			return d.cache.fault(err)
		}
		d.hash.Write(b[:n])
		left -= int64(n)
	}
	d.client.Report(d.event(Pulling, d.at))
	return ctx.Err()
}

// begin asks for the first segment that is missing. The answer says how long the file is and whether the server serves parts.
func (d *download) begin(ctx context.Context) (resp *http.Response, err error) {
	err = d.client.retry(ctx, func() error {
		to := d.at + d.client.config.Segment
		if d.Size >= 0 {
			to = min(to, d.Size)
		}
		resp, err = d.ask(ctx, d.at, to)
		if Status(err) == http.StatusRequestedRangeNotSatisfiable && d.at > 0 {
			return errStale // shorter than the partial file
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		d.at = 0
		err = d.settle(resp.ContentLength)
	} else {
		err = d.settle(contentRange(resp).total)
	}
	if err == nil && d.Digest.kind == "" {
		err = d.keepValidator(resp)
	}
	if err == nil && resp.Request.URL.String() != d.URL {
		d.address = resp.Request.URL.String()
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// lengthError reports content of another length than was promised.
type lengthError struct{ text string }

// Error returns the numbers.
func (e *lengthError) Error() string { return e.text }

// settle compares the length that the server says with the known one, or takes it and asks for room.
func (d *download) settle(size int64) error {
	switch {
	case size < 0 && d.Size >= 0:
		return nil // whole counts the bytes
	case size < 0:
		return &lengthError{"the server does not say how long the file is"}
	case size > MaxFileBytes:
		return &lengthError{fmt.Sprintf("%d bytes; at most %d are taken", size, int64(MaxFileBytes))}
	case d.Size >= 0 && size != d.Size:
		return &lengthError{fmt.Sprintf("the server has %d bytes, and %d were promised", size, d.Size)}
	case d.Size < 0:
		d.Size = size
		return d.checkThere()
	}
	return nil
}

// errThere reports that the whole file is in the cache already.
var errThere = errors.New("the file is there")

// checkThere compares the file that the server has with one of the same name, and asks for room.
func (d *download) checkThere() error {
	info, err := d.cache.Root.Lstat(d.Path)
	switch {
	case err != nil:
		return d.cache.checkFree(d.Size - d.at)
	case info.Mode().IsRegular() && info.Size() == d.Size:
		return errThere
	}
	return fmt.Errorf("%s is there with %d bytes, and the server has %d; remove it first", d.cache.Path(d.Path), info.Size(), d.Size)
}

// ask requests the bytes from one offset to another. The request for all bytes has no range.
func (d *download) ask(ctx context.Context, from, to int64) (*http.Response, error) {
	header := http.Header{}
	if from > 0 || to != d.Size {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
		if d.validator != "" {
			header.Set("If-Range", d.validator)
		}
	}
	d.mu.Lock()
	address, token := d.address, ""
	d.mu.Unlock()
	if address == "" || d.sameHost(address) {
		address, token = d.URL, d.Token
	}
	resp, err := d.client.send(ctx, address, token, header)
	if code := Status(err); address != d.URL && code >= 400 && code < 500 { // a signed address has run out
		d.mu.Lock()
		d.address = ""
		d.mu.Unlock()
		resp, err = d.client.send(ctx, d.URL, d.Token, header)
	}
	if err != nil {
		return nil, err
	}
	if r := contentRange(resp); resp.StatusCode == http.StatusPartialContent && (r.from != from || r.to > to || r.to <= from) {
		resp.Body.Close()
		return nil, fmt.Errorf("%s sends the bytes %.60q, and %d-%d were asked for", resp.Request.URL.Host, resp.Header.Get("Content-Range"), from, to-1)
	}
	return resp, nil
}

func (d *download) sameHost(address string) bool {
	a, err1 := url.Parse(address)
	b, err2 := url.Parse(d.URL)
	return err1 == nil && err2 == nil && sameHost(a, b)
}

// extent is the bytes of an answer, from one offset up to another, of a total; -1: the answer does not say.
type extent struct{ from, to, total int64 }

var rangeHeader = regexp.MustCompile(`^bytes (\d{1,18})-(\d{1,18})/(\d{1,18})$`)

// contentRange reads the header Content-Range.
func contentRange(resp *http.Response) extent {
	m := rangeHeader.FindStringSubmatch(resp.Header.Get("Content-Range"))
	if m == nil {
		return extent{-1, -1, -1}
	}
	var n [3]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(m[i+1], 10, 64) // 18 digits fit
	}
	return extent{n[0], n[1] + 1, n[2]}
}

// whole reads the file from a server that sends all of it. A cut connection means another beginning.
func (d *download) whole(ctx context.Context, resp *http.Response) error {
	return d.client.retry(ctx, func() (err error) {
		if resp == nil {
			if resp, err = d.client.send(ctx, d.URL, d.Token, nil); err != nil {
				return err
			}
		}
		body := resp.Body
		resp, d.at = nil, 0
		defer body.Close()
		if err := d.restore(ctx); err != nil {
			return err
		}
		n, err := io.Copy(io.MultiWriter(d.out, d.hash), &counted{io.LimitReader(body, d.Size+1), d})
		d.at = n
		switch {
		case err != nil:
			return err
		case n > d.Size:
			return &lengthError{fmt.Sprintf("the server sends more than the %d bytes that were promised", d.Size)}
		case n < d.Size:
			return fmt.Errorf("%d of %d bytes came: %w", n, d.Size, io.ErrUnexpectedEOF)
		}
		return nil
	})
}

// counted shows the bytes that are read.
type counted struct {
	io.Reader
	d *download
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.d.received.Add(int64(n))
	c.d.show(int64(n))
	return n, err
}

// part is a segment on its way.
type part struct {
	from, to int64
	first    *http.Response // an answer that is open; nil: none
	bytes    []byte
	err      error
	done     chan struct{}
}

// segments reads the rest of the file, several segments at a time, and appends them in order. The parts hold slots of the client
// from their request until they are written, so memory is bounded.
func (d *download) segments(ctx context.Context, first *http.Response) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan *part, cap(d.client.slots))
	go func() {
		defer close(queue)
		for from := d.at; from < d.Size; {
			p := &part{from: from, to: min(from+d.client.config.Segment, d.Size), first: first, done: make(chan struct{})}
			first, from = nil, p.to
			select {
			case d.client.slots <- struct{}{}:
			case <-ctx.Done():
				p.close()
				return
			}
			go p.read(ctx, d)
			queue <- p
		}
	}()
	for p := range queue {
		<-p.done
		if err == nil { // what came of a part that failed is a beginning of it, and stays
			err = errors.Join(d.append(p.bytes), p.err)
		}
		if err != nil {
			cancel()
		}
		p.bytes = nil
		<-d.client.slots
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// append writes a segment behind the partial file.
func (d *download) append(b []byte) error {
	if _, err := d.out.WriteAt(b, d.at); err != nil {
		return d.cache.fault(err)
	}
	d.hash.Write(b)
	d.at += int64(len(b))
	return nil
}

func (p *part) close() {
	if p.first != nil {
		p.first.Body.Close()
	}
}

// read reads a segment. After a cut connection it asks for the rest.
func (p *part) read(ctx context.Context, d *download) {
	defer close(p.done)
	p.bytes = make([]byte, 0, p.to-p.from)
	p.err = d.client.retry(ctx, func() (err error) {
		resp := p.first
		p.first = nil
		from := p.from + int64(len(p.bytes))
		if resp == nil {
			if resp, err = d.ask(ctx, from, p.to); err != nil {
				return err
			}
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK && (from > 0 || p.to != d.Size) {
			return errStale // the validator does not hold any more
		}
		if resp.StatusCode == http.StatusPartialContent && contentRange(resp).total != d.Size {
			return errStale
		}
		body := &counted{resp.Body, d}
		n, err := io.ReadFull(body, p.bytes[len(p.bytes):cap(p.bytes)])
		p.bytes = p.bytes[:len(p.bytes)+n]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
}

// checkMagic returns an error if the file does not begin as it must.
func (d *download) checkMagic() error {
	b := make([]byte, len(d.Magic))
	if _, err := d.out.ReadAt(b, 0); (err != nil || string(b) != d.Magic) && d.Magic != "" {
		return fmt.Errorf("%s: the content begins with %q, not with %q: it is no model; what came is removed", d.Name, b, d.Magic)
	}
	return nil
}

// validatorSuffix ends the name of the file that keeps the ETag of a partial file's content.
const validatorSuffix = Suffix + ".etag"

func (d *download) readValidator() string {
	b, err := d.cache.Read(d.Path+validatorSuffix, 1<<10)
	if err != nil {
		return ""
	}
	return string(b)
}

// keepValidator keeps the ETag of the content, if it is a strong one.
func (d *download) keepValidator(resp *http.Response) error {
	d.validator = resp.Header.Get("ETag")
	if !strings.HasPrefix(d.validator, `"`) || len(d.validator) > 1<<10 {
		d.validator = ""
		d.forget()
		return nil
	}
	return d.cache.Write(d.Path+validatorSuffix, []byte(d.validator))
}

func (d *download) forget() { _ = d.cache.Root.Remove(d.Path + validatorSuffix) }
