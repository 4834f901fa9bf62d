package kv

import (
	"bytes"
	"errors"
	"testing"

	"grove/internal/forest"
	"grove/internal/weights/tensor"
)

// recurrent is a cache of one state of 32 values, with records of 3.
var recurrent = Config{
	Layers: []Layer{{States: []State{{Parts: 4, Size: 8, Record: 3}}}},
	Type:   tensor.Q8_0, Context: 5000, Tokens: 5000, Seqs: 2, Scratch: 64, Records: 10,
}

// TestStatesRefused expects states without values, and states beyond memory, to be refused by name.
func TestStatesRefused(t *testing.T) {
	for _, s := range []State{{0, 8, 3}, {4, 0, 3}, {4, 8, 0}, {-1, 8, 3}} {
		c := recurrent
		c.Layers = []Layer{{}, {States: []State{{1, 1, 1}, s}}}
		if _, err := New(c); err == nil {
			t.Errorf("%+v is not refused", s)
		}
	}
	c := recurrent
	c.Layers = []Layer{{States: []State{{0, 8, 3}}}}
	want := "kv: state 0 of layer 0 has 0 parts of 8 values and records of 3; each must be 1 or more"
	if _, err := New(c); err == nil || err.Error() != want {
		t.Errorf("New: %v, want %s", err, want)
	}
	c = recurrent
	c.Limit = 3000 // 26 states of 128 bytes and 10 records of 12
	want = "kv: the states of recurrent layers take 3448 bytes, those of 2 sequences and the inputs of 10 rows, and 3000 bytes may be used: not enough memory; fewer sequences take less"
	if _, err := New(c); !errors.Is(err, ErrMemory) || err.Error() != want {
		t.Errorf("New: %v, want %s", err, want)
	}
	c.Limit, c.Layers = 0, []Layer{{States: []State{{1 << 30, 1 << 30, 1 << 30}}}}
	if _, err := New(c); !errors.Is(err, ErrMemory) {
		t.Errorf("New: %v, want %v", err, ErrMemory)
	}
}

// TestStatesSizes checks what a cache of recurrent layers says of itself, and a file whose state is not at a border.
func TestStatesSizes(t *testing.T) {
	k, err := New(recurrent)
	if err != nil {
		t.Fatal(err)
	}
	if state, record := k.StateBytes(); state != 128 || record != 12 || k.Cadence() != 256 || !k.Recurrent() || k.Bytes() != 3448 {
		t.Errorf("states of %d bytes, records of %d, each %d tokens, %d bytes in all", state, record, k.Cadence(), k.Bytes())
	}
	s := k.NewSeq("")
	if err := k.Pad(s, 700); err != nil {
		t.Fatal(err)
	}
	if k.Held(s) != 1 || k.Recurrence(s).Index != 700 {
		t.Errorf("a text of constants holds %d states", k.Held(s))
	}
	if n, err := k.Rewind(s, 650); n != 0 || err != nil {
		t.Errorf("a text of constants is cut to %d: %v", n, err)
	}
	held, err := k.Hold(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := held.Write(&file); err != nil {
		t.Fatal(err)
	}
	b := append(file.Bytes()[:40:40], make([]byte, 4*702+32)...)
	b[40], b[41] = 700&255, 700>>8
	b[44+4*700] = 6 // pages, and states are behind each 5
	want := "kv: the file has 2880 bytes and should have 3008: not a session of this model, cache type and salt, or damaged"
	if _, err := k.NewReader(bytes.NewReader(b), int64(len(b)), "", 9); !errors.Is(err, ErrFile) || err.Error() != want {
		t.Errorf("NewReader: %v, want %s", err, want)
	}
	if plain, err := New(small); err != nil || plain.Recurrent() || plain.Cadence() != 0 {
		t.Errorf("a cache of keys: %v", err)
	} else if state, _ := plain.StateBytes(); state != 0 || plain.Advance(plain.Forest.NewStep(1)) != nil {
		t.Error("a cache of keys has states")
	}
	if k.Compare(s, forest.Seq(0)) != 0 {
		t.Error("sequences without pages have an order")
	}
}
