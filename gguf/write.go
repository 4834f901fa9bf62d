package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"grove/internal/atomicfile"
	"grove/tensor"
)

// Write writes a file of version 3: the metadata and the tensors in the given order, each tensor at
// the next multiple of general.alignment, a uint32 key, or of 32 where that key is missing. The same
// arguments give the same bytes. What [Parse] would refuse is an error, and then nothing is written.
func Write(w io.Writer, metadata []KV, tensors []tensor.View) error {
	head, alignment, err := header(metadata, tensors)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	padding := make([]byte, alignment)
	buf.Write(head)
	buf.Write(padding[:alignUp(len(head), alignment)-len(head)])
	for _, t := range tensors {
		buf.Write(t.Data)
		buf.Write(padding[:alignUp(len(t.Data), alignment)-len(t.Data)])
	}
	if err := buf.Flush(); err != nil { // the first error of any write above
		return fmt.Errorf("gguf: %w", err)
	}
	return nil
}

// WriteFile writes a file as [Write] does, under a temporary name beside path that is synced and
// then renamed: path holds what it held before, or all of the new file.
func WriteFile(path string, metadata []KV, tensors []tensor.View) error {
	var own error // keeps its prefix
	err := atomicfile.Write(path, func(w io.Writer) error {
		own = Write(w, metadata, tensors)
		return own
	})
	if err != nil && own == nil {
		return fmt.Errorf("gguf: %w", err)
	}
	return err
}

// header returns all bytes before the padding that leads to the data.
func header(metadata []KV, tensors []tensor.View) (head []byte, alignment int, err error) {
	if alignment, err = checkMetadata(metadata); err != nil {
		return nil, 0, err
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
		if err := checkTensor(t); err != nil {
			return nil, 0, fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
		}
		if names[t.Name] {
			return nil, 0, fmt.Errorf("gguf: tensor %q: duplicate name", t.Name)
		}
		names[t.Name] = true
		b = appendString(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Shape)))
		for _, d := range slices.Backward(t.Shape) {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, uint64(offset))
		offset += alignUp(len(t.Data), alignment)
	}
	return b, alignment, nil
}

// checkMetadata checks the keys and returns the alignment.
func checkMetadata(metadata []KV) (int, error) {
	alignment := defaultAlignment
	keys := map[string]bool{}
	for _, kv := range metadata {
		switch {
		case !validName(kv.Key, maxKey):
			return 0, fmt.Errorf("gguf: key %q: not 1 to %d bytes of UTF-8", kv.Key, maxKey)
		case keys[kv.Key]:
			return 0, fmt.Errorf("gguf: key %q: duplicate", kv.Key)
		case kv.Value.empty():
			return 0, fmt.Errorf("gguf: key %q: no value", kv.Key)
		}
		keys[kv.Key] = true
		if kv.Key != keyAlignment {
			continue
		}
		n, ok := kv.Value.Any().(uint32)
		if alignment = int(n); !ok || !validAlignment(int64(n)) {
			return 0, fmt.Errorf("gguf: key %q: %v is not a uint32 power of two from %d to %d",
				kv.Key, kv.Value.Any(), minAlignment, maxAlignment)
		}
	}
	return alignment, nil
}

func checkTensor(t tensor.View) error {
	if !validName(t.Name, maxName) {
		return fmt.Errorf("name is not 1 to %d bytes of UTF-8", maxName)
	}
	if len(t.Shape) < 1 || len(t.Shape) > maxDims || slices.Min(t.Shape) < 1 {
		return fmt.Errorf("shape %v is not 1 to %d positive dimensions", t.Shape, maxDims)
	}
	row, ok := t.Type.RowBytes(t.Shape[len(t.Shape)-1])
	if !ok {
		return fmt.Errorf("a row of %d elements cannot be of type %v", t.Shape[len(t.Shape)-1], t.Type)
	}
	want := row
	for _, d := range t.Shape[:len(t.Shape)-1] {
		if want > len(t.Data)/d { // the product would pass what is there, or overflow
			return fmt.Errorf("%d bytes of data are too few for shape %v", len(t.Data), t.Shape)
		}
		want *= d
	}
	if want != len(t.Data) {
		return fmt.Errorf("%d bytes of data, shape %v takes %d", len(t.Data), t.Shape, want)
	}
	return nil
}

func validName(s string, limit int) bool {
	return s != "" && len(s) <= limit && utf8.ValidString(s)
}

func validAlignment(n int64) bool {
	return n >= minAlignment && n <= maxAlignment && n&(n-1) == 0
}
