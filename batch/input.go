package batch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// Bounds of the file of requests.
const (
	maxLine  = 16 << 20 // bytes
	maxLines = 1 << 24
	maxID    = 512 // bytes of a custom_id
)

// input is the file of requests, of which the places of the lines are in memory.
type input struct {
	file  *os.File
	lines []span
	ids   map[key]int32 // the index of the line that has a custom_id first
	sum   [sha256.Size]byte
}

// span is the place of a line.
type span struct {
	at     int64
	n      int32
	number int32 // of the line in the file, from 1; empty lines count
}

// key stands for a custom_id.
type key [16]byte

func keyOf(id string) (k key) {
	sum := sha256.Sum256([]byte(id))
	copy(k[:], sum[:])
	return k
}

// openInput finds the lines of a file.
func openInput(path string) (in *input, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in = &input{file: f, ids: map[key]int32{}}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), fmt.Errorf("batch: %s: it is no regular file; requests are read twice, so that a batch can go on: write them to a file first", path))
	}
	if err := in.index(); err != nil {
		return nil, errors.Join(fmt.Errorf("batch: %s: %w", path, err), f.Close())
	}
	return in, nil
}

// index reads the file once.
func (in *input) index() error {
	sum := sha256.New()
	r := lineReader{r: bufio.NewReaderSize(in.file, 1<<16), sum: sum}
	for {
		at := r.at
		line, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(in.lines) == maxLines {
			return fmt.Errorf("more than %d lines; split it", maxLines)
		}
		var named struct {
			ID string `json:"custom_id"`
		}
		i := int32(len(in.lines))
		in.lines = append(in.lines, span{at, int32(len(line)), r.number})
		if json.Unmarshal(line, &named) == nil && named.ID != "" {
			if k := keyOf(named.ID); in.ids[k] == 0 {
				in.ids[k] = i + 1
			}
		}
	}
	if len(in.lines) == 0 {
		return errors.New("there is no line")
	}
	sum.Sum(in.sum[:0])
	return nil
}

// first returns the index of the line that has a custom_id first; false: none has.
func (in *input) first(id string) (int, bool) {
	i, ok := in.ids[keyOf(id)]
	return int(i) - 1, ok
}

// read returns a line; one that is too long is cut one byte beyond the bound.
func (in *input) read(i int) ([]byte, error) {
	line := make([]byte, in.lines[i].n)
	if _, err := in.file.ReadAt(line, in.lines[i].at); err != nil {
		return nil, fmt.Errorf("batch: %s: line %d: %w; the file must not change while a batch runs", in.file.Name(), in.lines[i].number, err)
	}
	return line, nil
}

// lineReader reads lines in bounded memory, and adds all bytes to a sum.
type lineReader struct {
	r      *bufio.Reader
	sum    hash.Hash
	buf    []byte
	at     int64 // behind the last line
	number int32 // of the last line
}

// next returns the next line without its end, valid until the next call; of one that is too long, one byte more than may be. The error is [io.EOF] behind the last line.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.at += int64(len(part))
		_, _ = l.sum.Write(part) // it never fails
		l.buf = append(l.buf, part[:min(len(part), maxLine+2-len(l.buf))]...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(l.buf) == 0:
			return nil, io.EOF
		case err != nil && err != io.EOF:
			return nil, err
		}
		l.number++
		line := bytes.TrimSuffix(l.buf, []byte("\n"))
		return line[:min(len(line), maxLine+1)], nil
	}
}
