package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// syncEach is how much work a machine without power can lose.
const syncEach = time.Second

// maxRecord bounds a line that was written: an answer, and what is around it.
const maxRecord = maxAnswer + 1<<20

// output is a file to which lines are appended. It may be used by several goroutines.
type output struct {
	path   string
	mu     sync.Mutex
	file   *os.File
	whole  int64 // bytes of whole lines
	synced time.Time
	err    error // of the first write that failed: none follows
}

// openOutput opens a file that a batch appends to, cuts off a last line that was not written to its end, and calls do for each of the others.
func openOutput(path string, do func(r *Result) error) (o *output, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	o = &output{path: path, file: f, synced: time.Now()}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("batch: %s: it is no regular file, and a batch could not go on with it; name another", path), f.Close())
	}
	if err := o.recover(do); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return o, nil
}

// recover reads the lines.
func (o *output) recover(do func(r *Result) error) error {
	r := bufio.NewReaderSize(o.file, 1<<16)
	var line []byte
	for n := 1; ; {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxRecord {
			return fmt.Errorf("batch: %s: line %d has more than %d bytes: no batch wrote it; name another file", o.path, n, maxRecord)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF:
			if err := o.file.Truncate(o.whole); err != nil {
				return err
			}
			_, err := o.file.Seek(o.whole, io.SeekStart)
			return err
		case err != nil:
			return err
		}
		one := new(Result)
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(one); err != nil {
			return fmt.Errorf("batch: %s: line %d: %w: no batch wrote it; name another file", o.path, n, err)
		}
		if err := do(one); err != nil {
			return fmt.Errorf("batch: %s: line %d: %w", o.path, n, err)
		}
		o.whole += int64(len(line))
		line, n = line[:0], n+1
	}
}

// append writes a line. Behind an error the file has whole lines alone, and takes no more.
func (o *output) append(r *Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if _, err := o.file.Write(line); err != nil {
		_ = o.file.Truncate(o.whole) // what it leaves is cut off when the batch goes on
		o.err = fmt.Errorf("batch: %s: %w; all lines before are kept: run the same command again once it can be written", o.path, err)
		return o.err
	}
	o.whole += int64(len(line))
	if time.Since(o.synced) < syncEach {
		return nil
	}
	return o.sync()
}

// size returns the bytes of the file.
func (o *output) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.whole
}

// sync makes what is written outlive the machine's power.
func (o *output) sync() error {
	o.synced = time.Now()
	if err := o.file.Sync(); err != nil && o.err == nil {
		o.err = fmt.Errorf("batch: %s: %w", o.path, err)
	}
	return o.err
}

// close syncs and closes the file.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.sync(), o.file.Close())
}

// lock refuses a second batch with the same output. The file stays: to remove it would let a third one in.
func lock(path string) (unlock func() error, err error) {
	l := flock.New(path)
	got, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("batch: %s: %w", path, err)
	}
	if !got {
		return nil, errors.Join(fmt.Errorf("batch: %s: another batch runs with this output; wait for its end, or name another output", path), l.Close())
	}
	return l.Close, nil
}
