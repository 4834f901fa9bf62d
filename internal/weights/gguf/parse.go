package gguf

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"grove/internal/fileio"
	"grove/internal/weights/tensor"
)

// The fewest bytes that a key and a tensor take. A count that the rest of the file cannot hold is refused
// before memory is allocated for it.
const (
	minKeyBytes    = 8 + 1 + 4 + 1
	minTensorBytes = 8 + 1 + 4 + 8 + 4 + 8
)

// Parse reads a file that is in memory. The tensors and values of the result are views of data. One
// part of a split file parses as a file of its own. Errors are [*FormatError] values.
func Parse(data []byte) (*File, error) {
	c := &cursor{data: data}
	f := &File{keys: map[string]int{}, names: map[string]int{}, digest: newDigest()}
	nTensors, nKeys := c.header(f)
	for i := 0; i < nKeys && c.err == nil; i++ {
		c.metadata(f, i)
	}
	p := part{size: len(data), alignment: c.alignment(f)}
	var infos []info
	for i := 0; i < nTensors && c.err == nil; i++ {
		infos = append(infos, c.tensor(f, i))
	}
	c.place(f, &p, infos)
	if c.err != nil {
		return nil, c.err
	}
	f.parts = []part{p}
	return f, nil
}

// cursor reads little-endian fields. The first fault is kept in err, and all later reads return
// zero, so that a caller checks err only before it loops or uses a value.
type cursor struct {
	data []byte
	pos  int
	err  error

	// the item that is being read, for messages: its number, and its name once that is known
	item  string
	index int
	name  string
}

func (c *cursor) fail(at int, format string, args ...any) {
	if c.err != nil {
		return
	}
	msg := fmt.Sprintf(format, args...)
	switch {
	case c.name != "" && c.item == "tensor":
		msg = tensor.Label(c.name) + ": " + msg
	case c.name != "":
		msg = fmt.Sprintf("%s %q: %s", c.item, c.name, msg)
	case c.item != "":
		msg = fmt.Sprintf("%s %d: %s", c.item, c.index, msg)
	}
	c.err = &FormatError{Offset: int64(at), Msg: msg}
}

// take returns the next n bytes, whose capacity ends there too. what names them in the error.
func (c *cursor) take(n uint64, what string) []byte {
	if c.err != nil {
		return nil
	}
	if left := len(c.data) - c.pos; n > uint64(left) {
		c.fail(c.pos, "%s takes %d bytes, %d are left", what, n, left)
		return nil
	}
	b := c.data[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u32(what string) uint32 {
	if b := c.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads the number of items that take at least size bytes each.
func (c *cursor) count(what string, size int) int {
	at := c.pos
	n := c.u64(what)
	if left := len(c.data) - c.pos; n > uint64(left/size) {
		c.fail(at, "%s %d is too large: each takes at least %d bytes, %d are left", what, n, size, left)
		return 0
	}
	return int(n)
}

// header reads up to the counts.
func (c *cursor) header(f *File) (nTensors, nKeys int) {
	if got := c.take(4, "magic"); c.err == nil && string(got) != magic {
		c.fail(0, "magic is %q, want %q%s", got, magic, fileio.InsteadOf(got))
	}
	f.Version = c.u32("version")
	swapped := bits.ReverseBytes32(f.Version)
	switch {
	case c.err != nil || f.Version == 2 || f.Version == 3:
	case f.Version&0xffff == 0 && f.Version != 0:
		c.fail(4, "unsupported version %d in big-endian byte order", swapped)
	default:
		c.fail(4, "unsupported version %d", f.Version)
	}
	nTensors = c.count("tensor count", minTensorBytes)
	nKeys = c.count("key count", minKeyBytes)
	return nTensors, nKeys
}

// string reads a length, called whatLength in messages, and that many bytes, at most limit.
func (c *cursor) string(what, whatLength string, limit uint64) []byte {
	at := c.pos
	n := c.u64(whatLength)
	if n > limit {
		c.fail(at, "%s %d is above %d", whatLength, n, limit)
		return nil
	}
	return c.take(n, what)
}

// begin reads the name of an item: UTF-8, not empty. It returns a copy.
func (c *cursor) begin(item string, index int, limit uint64) string {
	c.item, c.index, c.name = item, index, ""
	at := c.pos
	b := c.string("name", "name length", limit)
	switch {
	case c.err != nil:
	case len(b) == 0:
		c.fail(at, "name is empty")
	case !utf8.Valid(b):
		c.fail(at, "name %q is not UTF-8", b)
	}
	c.name = string(b)
	return c.name
}

func (c *cursor) metadata(f *File, i int) {
	at := c.pos
	key := c.begin("key", i, maxKey)
	if first, twice := f.keys[key]; twice {
		c.fail(at, "duplicate of key %d", first)
	}
	v := c.value()
	if c.err == nil {
		f.keys[key] = len(f.Metadata)
		f.Metadata = append(f.Metadata, KV{key, v})
	}
}

// value reads a type and a value of it.
func (c *cursor) value() Value {
	kind := c.kind("value type")
	v := Value{kind: kind, elem: kind, n: 1, at: int64(c.pos)}
	if kind == Array {
		at := c.pos
		if v.elem = c.kind("array type"); v.elem == Array {
			c.fail(at, "array of arrays is not supported")
		}
		if c.err != nil {
			return v
		}
		v.n = c.count("array length", kinds[v.elem].size)
	}
	if c.err != nil {
		return v
	}
	start := c.pos
	if v.elem == String {
		for i := 0; i < v.n && c.err == nil; i++ {
			c.string("string", "string length", math.MaxUint64)
		}
	} else {
		c.take(uint64(v.n)*uint64(kinds[v.elem].size), "value")
	}
	v.raw = c.data[start:c.pos:c.pos]
	if v.elem == Bool && c.err == nil {
		if i := slices.IndexFunc(v.raw, func(b byte) bool { return b > 1 }); i >= 0 {
			c.fail(start+i, "bool is %d, want 0 or 1", v.raw[i])
		}
	}
	return v
}

func (c *cursor) kind(what string) Kind {
	at := c.pos
	k := Kind(c.u32(what))
	if int64(k) >= int64(len(kinds)) {
		c.fail(at, "%s %d is unknown", what, uint32(k))
		return 0
	}
	return k
}

// info is the place of a tensor's bytes by its entry.
type info struct {
	offset, size uint64
	at           int // where the entry holds the offset
}

// alignment returns the alignment that the metadata asks for.
func (c *cursor) alignment(f *File) int {
	c.item, c.name = "key", keyAlignment
	v, ok := f.Lookup(keyAlignment)
	if !ok {
		return defaultAlignment
	}
	if v.kind != Uint32 {
		c.fail(int(v.at), "want uint32, found %s", v.Type())
		return defaultAlignment
	}
	n, _ := v.integerAt(0)
	if !validAlignment(n) {
		c.fail(int(v.at), "value is %d; it must be a power of two from %d to %d", n, minAlignment, maxAlignment)
	}
	return int(n)
}

// tensor reads the entry of a tensor and adds its view, still without data.
func (c *cursor) tensor(f *File, i int) info {
	at := c.pos
	name := c.begin("tensor", i, maxName)
	if first, twice := f.names[name]; twice {
		c.fail(at, "tensor %d has this name too", first)
	}
	at = c.pos
	shape, n := c.shape()
	typeAt := c.pos
	t := tensor.Type(c.u32("type"))
	elems, bytes, known := t.Block()
	switch {
	case c.err != nil:
		return info{}
	case !known:
		c.fail(typeAt, "%v is not supported", t)
		return info{}
	case shape[len(shape)-1]%elems != 0:
		c.fail(at, "a row of %d elements is not a multiple of %d, the block of %v", shape[len(shape)-1], elems, t)
	case n/elems > math.MaxInt/bytes:
		c.fail(at, "%d elements of %v overflow the size", n, t)
	}
	at = c.pos
	in := info{offset: c.u64("offset"), size: uint64(n / elems * bytes), at: at}
	if c.err == nil {
		f.names[name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, tensor.View{Name: name, Type: t, Shape: shape})
	}
	return in
}

// shape reads the dimensions, which the file holds innermost first, and returns their product n.
func (c *cursor) shape() (shape []int, n int) {
	at := c.pos
	count := c.u32("dimension count")
	if count < 1 || count > maxDims {
		c.fail(at, "dimension count is %d; it must be 1 to %d", count, maxDims)
	}
	if c.err != nil {
		return nil, 0
	}
	shape, n = make([]int, count), 1
	for i := range count {
		at := c.pos
		d := int64(c.u64("dimension"))
		switch {
		case c.err != nil:
			return nil, 0
		case d <= 0:
			c.fail(at, "dimension %d is %d; it must be positive", i, d)
			return nil, 0
		case d > int64(math.MaxInt/n):
			c.fail(at, "dimension %d of %d overflows the number of elements", i, d)
			return nil, 0
		}
		shape[count-1-i] = int(d)
		n *= int(d)
	}
	return shape, n
}

// whole returns the size of a file whose data begins at start. ok is false unless the tensors follow each other with nothing but
// alignment between: then their places cannot be trusted.
func whole(infos []info, start, alignment uint64) (end uint64, ok bool) {
	const most = 1 << 60
	sorted := slices.Clone(infos)
	slices.SortStableFunc(sorted, func(a, b info) int { return cmp.Compare(a.offset, b.offset) })
	for _, in := range sorted {
		if in.offset != (end+alignment-1)/alignment*alignment || in.size > most-end {
			return 0, false
		}
		end = in.offset + in.size
	}
	return start + end, true
}

// place gives the views their data, which starts at the next multiple of the alignment.
func (c *cursor) place(f *File, p *part, infos []info) {
	if c.err != nil || len(infos) == 0 {
		return
	}
	start := alignUp(c.pos, p.alignment)
	if end, ok := whole(infos, uint64(start), uint64(p.alignment)); ok && end > uint64(len(c.data)) {
		c.err = &FormatError{Offset: -1, Msg: fmt.Sprintf("the file is cut off at %d of %d bytes; download it again", len(c.data), end)}
		return
	}
	data := c.data[min(start, len(c.data)):]
	p.offsets = make([]int64, len(infos))
	order := make([]int, len(infos))
	for i, in := range infos {
		order[i] = i
		c.name = f.Tensors[i].Name
		if in.offset%uint64(p.alignment) != 0 {
			c.fail(in.at, "offset is %d; it must be a multiple of the alignment (%d)", in.offset, p.alignment)
			return
		}
		if left := uint64(len(data)); in.offset > left || in.size > left-in.offset {
			c.fail(in.at, "%d bytes at offset %d reach past the end of the data, %d bytes", in.size, in.offset, left)
			return
		}
		end := in.offset + in.size
		f.Tensors[i].Data = data[in.offset:end:end]
		p.offsets[i] = int64(start) + int64(in.offset)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(infos[i].offset, infos[j].offset) })
	for k, i := range order[1:] {
		before := order[k]
		if infos[i].offset < infos[before].offset+infos[before].size {
			c.name = f.Tensors[i].Name
			c.fail(infos[i].at, "data overlaps that of %s", tensor.Label(f.Tensors[before].Name))
			return
		}
	}
}

func alignUp(n, alignment int) int { return (n + alignment - 1) &^ (alignment - 1) }
