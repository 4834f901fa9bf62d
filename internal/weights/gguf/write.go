package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"grove/internal/fileio"
	"grove/internal/weights/tensor"
)

// Write writes a file of version 3: the metadata and the tensors in the given order, each tensor at
// the next multiple of general.alignment, a uint32 key, or of 32 if that key is missing. The same
// arguments give the same bytes. Arguments that [Parse] would refuse are an error, and then nothing is written.
func Write(w io.Writer, metadata []KV, tensors []tensor.View) error {
	for _, t := range tensors {
		if err := checkTensor(t, len(t.Data)); err != nil {
			return err
		}
	}
	return Stream(w, metadata, tensors, func(w io.Writer, i int) error {
		_, err := w.Write(tensors[i].Data)
		return err
	})
}

// Stream writes a file as [Write] does, but takes the bytes of the tensors from data, which is called
// once for each, in order, and writes exactly those of tensor i. Data of the views is not read.
// Errors of data are returned as they are.
func Stream(w io.Writer, metadata []KV, tensors []tensor.View, data func(w io.Writer, i int) error) error {
	head, err := layOut(metadata, tensors)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	padding := make([]byte, head.alignment)
	pad := func(size int) { buf.Write(padding[:alignUp(size, head.alignment)-size]) }
	buf.Write(head.bytes)
	pad(len(head.bytes))
	for i, t := range tensors {
		out := &counter{w: buf}
		if err := data(out, i); err != nil {
			return err
		}
		if err := checkTensor(t, out.n); err != nil {
			return err
		}
		pad(out.n)
	}
	if err := buf.Flush(); err != nil { // the first error of any write above
		return fmt.Errorf("gguf: %w", err)
	}
	return nil
}

// counter counts the bytes that it passes on.
type counter struct {
	w io.Writer
	n int
}

// Write implements [io.Writer].
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	return n, err
}

// New makes a file in memory: it reads like the file that [Write] would write. Path is for messages. A tensor without Data gets its bytes from load when [File.Load] asks
// for tensor i. The file owns store and closes it, even if New fails.
func New(path string, metadata []KV, tensors []tensor.View, store Storage, load func(i int) ([]byte, error)) (*File, error) {
	f := &File{
		Version: 3, Metadata: metadata, Tensors: tensors, keys: map[string]int{}, names: map[string]int{},
		stores: []Storage{store}, load: load, digest: newDigest(),
	}
	head, err := layOut(metadata, tensors)
	if err != nil {
		return closeOn(err, f)
	}
	p := part{path: path, size: alignUp(len(head.bytes), head.alignment), alignment: head.alignment, offsets: make([]int64, len(tensors))}
	for i, t := range tensors {
		f.names[t.Name] = i
		p.offsets[i] = int64(p.size)
		p.size += alignUp(t.Bytes(), head.alignment)
	}
	for i, kv := range metadata {
		f.keys[kv.Key] = i
	}
	f.parts = []part{p}
	return f, nil
}

// WriteFile writes a file as [Write] does, under a temporary name beside path that is synced and
// then renamed: afterwards path is the old file or the whole new file.
func WriteFile(path string, metadata []KV, tensors []tensor.View) error {
	var own error // of Write, which has a prefix already
	err := fileio.WriteAtomic(path, func(w io.Writer) error {
		own = Write(w, metadata, tensors)
		return own
	})
	if err != nil && own == nil {
		return fmt.Errorf("gguf: %w", err)
	}
	return err
}

// head is all bytes before the padding that leads to the data.
type head struct {
	bytes     []byte
	alignment int
}

// layOut checks metadata and tensors and writes the head of their file.
func layOut(metadata []KV, tensors []tensor.View) (head, error) {
	alignment, err := checkMetadata(metadata)
	if err != nil {
		return head{}, err
	}
	le := binary.LittleEndian
	b := append([]byte(magic), 3, 0, 0, 0)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(len(metadata)))
	for _, kv := range metadata {
		b = appendString(b, kv.Key)
		b = le.AppendUint32(b, uint32(kv.Value.kind))
		if kv.Value.kind == Array {
			b = le.AppendUint32(b, uint32(kv.Value.elem))
			b = le.AppendUint64(b, uint64(kv.Value.n))
		}
		b = append(b, kv.Value.raw...)
	}
	offset := 0
	names := map[string]bool{}
	for _, t := range tensors {
		if err := checkShape(t); err != nil {
			return head{}, fmt.Errorf("gguf: %s: %w", tensor.Label(t.Name), err)
		}
		if names[t.Name] {
			return head{}, fmt.Errorf("gguf: %s: two tensors have this name", tensor.Label(t.Name))
		}
		names[t.Name] = true
		b = appendString(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Shape)))
		for _, d := range slices.Backward(t.Shape) {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, uint64(offset))
		offset += alignUp(t.Bytes(), alignment)
	}
	return head{b, alignment}, nil
}

// checkMetadata checks the keys and returns the alignment.
func checkMetadata(metadata []KV) (int, error) {
	alignment := defaultAlignment
	keys := map[string]bool{}
	for _, kv := range metadata {
		switch {
		case !validName(kv.Key, maxKey):
			return 0, fmt.Errorf("gguf: key %q: it must have 1 to %d bytes of UTF-8", kv.Key, maxKey)
		case keys[kv.Key]:
			return 0, fmt.Errorf("gguf: key %q: it is there twice", kv.Key)
		case kv.Value.empty():
			return 0, fmt.Errorf("gguf: key %q: it has no value", kv.Key)
		}
		keys[kv.Key] = true
		if kv.Key != keyAlignment {
			continue
		}
		n, ok := kv.Value.Any().(uint32)
		if alignment = int(n); !ok || !validAlignment(int64(n)) {
			return 0, fmt.Errorf("gguf: key %q: value is %v; it must be a uint32 power of two from %d to %d",
				kv.Key, kv.Value.Any(), minAlignment, maxAlignment)
		}
	}
	return alignment, nil
}

// checkShape checks the name, the type and the shape of a tensor.
func checkShape(t tensor.View) error {
	if !validName(t.Name, maxName) {
		return fmt.Errorf("the name must have 1 to %d bytes of UTF-8", maxName)
	}
	if len(t.Shape) < 1 || len(t.Shape) > maxDims || slices.Min(t.Shape) < 1 {
		return fmt.Errorf("shape is %v; it must have 1 to %d positive dimensions", t.Shape, maxDims)
	}
	size, ok := t.Type.RowBytes(t.Shape[len(t.Shape)-1])
	if !ok {
		return fmt.Errorf("a row has %d elements, which type %v cannot hold; they must be whole blocks", t.Shape[len(t.Shape)-1], t.Type)
	}
	tooLarge := fmt.Errorf("shape %v takes more than the %d bytes that a tensor may have", t.Shape, maxBytes)
	if slices.Max(t.Shape) > maxBytes {
		return tooLarge
	}
	for _, d := range t.Shape[:len(t.Shape)-1] {
		if size > maxBytes/d {
			return tooLarge
		}
		size *= d
	}
	return nil
}

// maxBytes bounds a tensor, so that offsets do not overflow.
const maxBytes = math.MaxInt >> 16

// checkTensor checks a tensor that has n bytes.
func checkTensor(t tensor.View, n int) error {
	if err := checkShape(t); err != nil {
		return fmt.Errorf("gguf: %s: %w", tensor.Label(t.Name), err)
	}
	if want := t.Bytes(); n != want {
		return fmt.Errorf("gguf: %s: there are %d bytes of data; shape %v takes %d", tensor.Label(t.Name), n, t.Shape, want)
	}
	return nil
}

func validName(s string, limit int) bool {
	return s != "" && len(s) <= limit && utf8.ValidString(s)
}

func validAlignment(n int64) bool {
	return n >= minAlignment && n <= maxAlignment && n&(n-1) == 0
}
