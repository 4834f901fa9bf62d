package batch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
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
	r := NewLines(io.TeeReader(in.file, sum))
	for {
		line, number, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		i := int32(len(in.lines))
		in.lines = append(in.lines, span{r.at, int32(len(line)), number})
		if id := CustomID(line); id != "" {
			if k := keyOf(id); in.ids[k] == 0 {
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

// Lines reads the lines of requests in bounded memory.
type Lines struct {
	r        *bufio.Reader
	buf      []byte
	at, next int64 // where the last line begins, and the next one
	number   int32 // of the last line
}

// NewLines returns a reader of lines.
func NewLines(r io.Reader) *Lines { return &Lines{r: bufio.NewReaderSize(r, 1<<16)} }

// Next returns the next line that is not empty, without its end, and its number from 1, for which empty lines count. The line is valid until the next call. One that is too
// long is cut one byte beyond [MaxLine], which [Parse] refuses. Errors: [io.EOF] with the number of lines, more than [MaxLines], those of reading.
func (l *Lines) Next() (line []byte, number int32, err error) {
	for {
		if err := l.read(); err != nil {
			return nil, l.number, err
		}
		if l.number++; l.number > MaxLines {
			return nil, 0, fmt.Errorf("more than %d lines; split the file", MaxLines)
		}
		if line := bytes.TrimSuffix(l.buf, []byte("\n")); len(bytes.TrimSpace(line)) > 0 {
			return line[:min(len(line), MaxLine+1)], l.number, nil
		}
	}
}

// read reads a line with its end into the buffer.
func (l *Lines) read() error {
	l.buf, l.at = l.buf[:0], l.next
	for {
		part, err := l.r.ReadSlice('\n')
		l.next += int64(len(part))
		l.buf = append(l.buf, part[:min(len(part), MaxLine+2-len(l.buf))]...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(l.buf) > 0:
			return nil
		}
		return err
	}
}
