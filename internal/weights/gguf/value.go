package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Kind is the type of a metadata value by its number in files.
type Kind uint32

// The kinds of values.
const (
	Uint8 Kind = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

// kinds gives each kind its name and its bytes: for a string those of its length, which come before
// its own, and none for an array.
var kinds = [...]struct {
	name string
	size int
}{
	{"uint8", 1}, {"int8", 1}, {"uint16", 2}, {"int16", 2}, {"uint32", 4}, {"int32", 4}, {"float32", 4},
	{"bool", 1}, {"string", 8}, {"array", 0}, {"uint64", 8}, {"int64", 8}, {"float64", 8},
}

// String returns the kind as Go spells it.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

func (k Kind) integer() bool {
	return k <= Int32 || k == Uint64 || k == Int64
}

// KV is one entry of the metadata.
type KV struct {
	Key   string
	Value Value
}

// Value is a metadata value. A value read from a file is a view of the file's bytes, decoded when
// asked, and must not be used after [File.Close]. Its methods return copies.
// The zero Value holds nothing and cannot be written.
type Value struct {
	kind Kind
	elem Kind // of an array; kind otherwise
	n    int  // elements of an array; 1 otherwise
	raw  []byte
	at   int64 // offset in the file, for messages; -1 where there is none
}

// Basic is the Go type of a value that is not an array.
type Basic interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | float32 | bool | string | uint64 | int64 | float64
}

// Of returns v as a metadata value.
func Of[T Basic](v T) Value {
	k := kindOf[T]()
	return Value{kind: k, elem: k, n: 1, raw: encode(nil, []T{v}), at: -1}
}

// ArrayOf returns a copy of v as a metadata value.
func ArrayOf[T Basic](v []T) Value {
	return Value{kind: Array, elem: kindOf[T](), n: len(v), raw: encode(nil, v), at: -1}
}

func kindOf[T Basic]() Kind {
	switch any(*new(T)).(type) {
	case uint8:
		return Uint8
	case int8:
		return Int8
	case uint16:
		return Uint16
	case int16:
		return Int16
	case uint32:
		return Uint32
	case int32:
		return Int32
	case float32:
		return Float32
	case bool:
		return Bool
	case string:
		return String
	case uint64:
		return Uint64
	case int64:
		return Int64
	default:
		return Float64
	}
}

// encode appends the elements of v as files hold them.
func encode[T Basic](b []byte, v []T) []byte {
	if s, ok := any(v).([]string); ok {
		for _, x := range s {
			b = appendString(b, x)
		}
		return b
	}
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic(err) // all other types of Basic have a fixed size
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// Elem returns the kind of an array's elements, and the kind itself of other values.
func (v Value) Elem() Kind { return v.elem }

// Len returns the number of an array's elements, and 1 for other values.
func (v Value) Len() int { return v.n }

// Type returns the kind as text, such as string or [3]float32.
func (v Value) Type() string {
	if v.kind == Array {
		return "[" + strconv.Itoa(v.n) + "]" + v.elem.String()
	}
	return v.kind.String()
}

// Equal reports whether both values have the same kinds and the same bytes.
func (v Value) Equal(w Value) bool {
	return v.kind == w.kind && v.elem == w.elem && v.n == w.n && string(v.raw) == string(w.raw)
}

func (v Value) empty() bool { return v.kind != Array && v.n == 0 }

// Any returns the value as its Go type: uint8 to float64, bool, string, or a slice of one of them, and
// nil for the zero Value.
func (v Value) Any() any {
	if v.empty() {
		return nil
	}
	switch v.elem {
	case Uint8:
		return decode[uint8](v)
	case Int8:
		return decode[int8](v)
	case Uint16:
		return decode[uint16](v)
	case Int16:
		return decode[int16](v)
	case Uint32:
		return decode[uint32](v)
	case Int32:
		return decode[int32](v)
	case Float32:
		return decode[float32](v)
	case Bool:
		return decode[bool](v)
	case String:
		if v.kind == Array {
			return v.strings(v.n)
		}
		return v.strings(1)[0]
	case Uint64:
		return decode[uint64](v)
	case Int64:
		return decode[int64](v)
	default:
		return decode[float64](v)
	}
}

// head returns an array cut to its first n elements.
func (v Value) head(n int) Value {
	if v.n > n {
		v.n = n
	}
	return v
}

// decode returns the elements of v, a slice for an array; T belongs to v.elem.
func decode[T Basic](v Value) any {
	x := make([]T, v.n)
	if _, err := binary.Decode(v.raw, binary.LittleEndian, x); err != nil {
		panic(err) // the parser has checked the length
	}
	if v.kind == Array {
		return x
	}
	return x[0]
}

// strings returns copies of the first n strings.
func (v Value) strings(n int) []string {
	out := make([]string, n)
	raw := v.raw
	for i := range out {
		size := binary.LittleEndian.Uint64(raw)
		out[i] = string(raw[8 : 8+size])
		raw = raw[8+size:]
	}
	return out
}

// integerAt returns element i of a value of integers, and false where it is beyond int64.
func (v Value) integerAt(i int) (int64, bool) {
	le := binary.LittleEndian
	b := v.raw[i*kinds[v.elem].size:]
	switch v.elem {
	case Uint8:
		return int64(b[0]), true
	case Int8:
		return int64(int8(b[0])), true
	case Uint16:
		return int64(le.Uint16(b)), true
	case Int16:
		return int64(int16(le.Uint16(b))), true
	case Uint32:
		return int64(le.Uint32(b)), true
	case Int32:
		return int64(int32(le.Uint32(b))), true
	default:
		u := le.Uint64(b)
		return int64(u), v.elem == Int64 || u <= math.MaxInt64
	}
}

// floatAt returns element i of a value of floats.
func (v Value) floatAt(i int) float64 {
	b := v.raw[i*kinds[v.elem].size:]
	if v.elem == Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
