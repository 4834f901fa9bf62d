package wire

import (
	"cmp"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// A field is a field of a struct that bodies are read into. Its tags have its bounds; 0 is no bound but that of the body.
//
//	most:"64"          elements of its lists in the whole body, or fields of its object
//	bytes:"4096"       bytes of a text, also where it is in a list
//	holds:"json"       the text, or the value where it is a text, is JSON whose values count to [MaxValues]
//	range:"-1 100 off" the lowest and the highest number, and the meaning of the lowest; the highest may be *: no bound
type field struct {
	index       []int // for [reflect.Value.FieldByIndex]
	most, bytes int
	holds       bool
	ranged      bool
	low, high   float64
	lowest      string // " (off)"
}

// shape is what the objects of a struct's type may have.
type shape struct {
	fields    map[string]*field
	tolerated map[string]Toleration
}

// shapes has the shape of each type that was asked for: a body may have very many objects of a few types.
var shapes sync.Map

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{fields: map[string]*field{}}
	s.add(t, nil)
	if own, ok := reflect.New(t).Interface().(Tolerant); ok {
		s.tolerated = tableOf(own.Tolerated())
	}
	actual, _ := shapes.LoadOrStore(t, s) // one of each: lists are counted by their field
	return actual.(*shape)
}

// add adds the fields of a struct, those of embedded structs among them.
func (s *shape) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		if f.Anonymous {
			s.add(f.Type, at)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			s.fields[name] = newField(f, at)
		}
	}
}

func newField(f reflect.StructField, index []int) *field {
	number := func(text string) float64 {
		if text == "*" {
			return math.Inf(1)
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic("wire: the tag of " + f.Name + ": " + err.Error()) // a fault of the code, which each test finds
		}
		return n
	}
	n := &field{index: index}
	n.most, n.bytes = int(number(cmp.Or(f.Tag.Get("most"), "0"))), int(number(cmp.Or(f.Tag.Get("bytes"), "0")))
	_, n.holds = f.Tag.Lookup("holds")
	if tag, ok := f.Tag.Lookup("range"); ok {
		low, rest, _ := strings.Cut(tag, " ")
		high, lowest, named := strings.Cut(rest, " ")
		if n.ranged, n.low, n.high = true, number(low), number(high); named {
			n.lowest = " (" + lowest + ")"
		}
	}
	return n
}

// span returns the range of a number.
func (f *field) span() string {
	low, high := strconv.FormatFloat(f.low, 'f', -1, 64), strconv.FormatFloat(f.high, 'f', -1, 64)
	if math.IsInf(f.high, 1) {
		return low + f.lowest + " or more"
	}
	return "from " + low + f.lowest + " to " + high
}
