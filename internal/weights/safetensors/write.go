package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"grove/internal/weights/tensor"
)

// Writer writes a file whose tensors grow side by side, each from its first value to its last. Its memory does not depend on the size of the
// tensors. It is for one goroutine.
type Writer struct {
	to    io.WriterAt
	parts []part
}

// part is a tensor on its way to the file.
type part struct {
	name    string
	begin   int64 // of its data in the file
	at, end int64 // where the buffer goes, and where the data ends
	buf     []byte
}

// partBuffer is the number of bytes of a tensor that are written at once.
const partBuffer = 1 << 18

// NewWriter writes the header of a file with metadata and tensors, which lie in the file in their order. Their data is not read: [Writer.Append] gives it.
// Errors: two tensors of one name, a type or a shape that a file cannot have, a header beyond what readers take; to's.
func NewWriter(to io.WriterAt, metadata map[string]string, tensors ...Tensor) (*Writer, error) {
	w := &Writer{to: to}
	var header bytes.Buffer
	if metadata == nil {
		metadata = map[string]string{}
	}
	if err := entryOf(&header, "{", metadataKey, metadata); err != nil {
		return nil, err
	}
	seen, end := map[string]bool{metadataKey: true, "": true}, int64(0)
	for _, t := range tensors {
		size, ok := t.bytes()
		switch {
		case seen[t.Name]:
			return nil, fmt.Errorf("safetensors: a tensor cannot have the name %.80q: it is empty, or another's", t.Name)
		case sizes[t.Type] == 0:
			return nil, fmt.Errorf("safetensors: %s: dtype %.40q is not known", tensor.Label(t.Name), t.Type)
		case !ok || slices.ContainsFunc(t.Shape, func(d int) bool { return d < 0 }) || int64(size) > math.MaxInt64/2-end || len(t.Shape) > maxDims:
			return nil, fmt.Errorf("safetensors: %s: shape %v cannot be laid out", tensor.Label(t.Name), t.Shape)
		}
		seen[t.Name] = true
		place := struct {
			DType   DType    `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.Type, append([]int{}, t.Shape...), [2]int64{end, end + int64(size)}}
		if err := entryOf(&header, ",", t.Name, place); err != nil {
			return nil, err
		}
		w.parts = append(w.parts, part{name: t.Name, begin: end, at: end, end: end + int64(size)})
		end += int64(size)
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ') // so that the data is aligned
	}
	if header.Len() > maxHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes is longer than %d", header.Len(), maxHeader)
	}
	start := int64(lengthBytes + header.Len())
	for i := range w.parts {
		p := &w.parts[i]
		p.begin, p.at, p.end = p.begin+start, p.at+start, p.end+start
	}
	text := append(binary.LittleEndian.AppendUint64(nil, uint64(header.Len())), header.Bytes()...)
	_, err := to.WriteAt(text, 0)
	return w, err
}

// entryOf appends an entry of the header.
func entryOf(header *bytes.Buffer, before, name string, value any) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("safetensors: the name %.80q is not UTF-8", name)
	}
	key, err := json.Marshal(name)
	if err != nil {
		return fmt.Errorf("safetensors: %s: %w", tensor.Label(name), err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("safetensors: %s: %w", tensor.Label(name), err)
	}
	header.WriteString(before)
	header.Write(key)
	header.WriteByte(':')
	header.Write(text)
	return nil
}

// Append adds data, row-major and little endian, to tensor i, behind what it has. It does not keep data. More than the tensor's shape takes is an error.
func (w *Writer) Append(i int, data []byte) error {
	p := &w.parts[i]
	if have := p.at + int64(len(p.buf)); int64(len(data)) > p.end-have {
		return fmt.Errorf("safetensors: %s: %d bytes are too many behind %d of %d", tensor.Label(p.name), len(data), have-p.begin, p.end-p.begin)
	}
	p.buf = append(p.buf, data...)
	if len(p.buf) < partBuffer {
		return nil
	}
	return w.flush(p)
}

// flush writes what is in a tensor's buffer.
func (w *Writer) flush(p *part) error {
	n, err := w.to.WriteAt(p.buf, p.at)
	p.at += int64(n)
	p.buf = p.buf[:0]
	return err
}

// Close writes what is left in memory. A tensor that has not all of its data is an error.
func (w *Writer) Close() error {
	for i := range w.parts {
		p := &w.parts[i]
		if err := w.flush(p); err != nil {
			return err
		}
		if p.at != p.end {
			return fmt.Errorf("safetensors: %s: %d bytes of %d were given", tensor.Label(p.name), p.at-p.begin, p.end-p.begin)
		}
	}
	return nil
}
