package front_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"grove"
	"grove/internal/engine"
	"grove/internal/text/token"
)

const goldenModel = "../../../internal/suite/modeltest/testdata/llama-gqa.gguf"

func open(t *testing.T, path string, o grove.Options) *grove.Model {
	t.Helper()
	m, err := grove.Open(path, threaded(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func logits(t *testing.T, m *grove.Model, ids []token.ID) (rows [][]float32) {
	t.Helper()
	err := m.Logits(context.Background(), ids, func(row []float32) error {
		rows = append(rows, slices.Clone(row))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestLogitsBits asks for the same bits of a prefix alone, whatever the chunks and threads.
func TestLogitsBits(t *testing.T) {
	ids := make([]token.ID, 70)
	for i := range ids {
		ids[i] = token.ID(i * 37 % 320)
	}
	want := logits(t, open(t, goldenModel, grove.Options{Threads: 1}), ids)
	if len(want) != len(ids) || len(want[0]) != 320 {
		t.Fatalf("%d rows of %d values, want %d of 320", len(want), len(want[0]), len(ids))
	}
	for _, o := range []grove.Options{{Chunk: 1}, {Chunk: 7, Threads: 2}, {Context: 70, Parallel: 1}} {
		m := open(t, goldenModel, o)
		for _, n := range []int{1, 17, 70} {
			for i, row := range logits(t, m, ids[:n]) {
				if !slices.Equal(row, want[i]) {
					t.Errorf("%+v: row %d of %d differs", o, i, n)
				}
			}
		}
	}
}

// TestLogitsErrors checks each error, and that it leaves the only place for a sequence free.
func TestLogitsErrors(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Context: 40, Parallel: 1})
	ids := make([]token.ID, 40)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	full := errors.New("the disk is full")
	for _, c := range []struct {
		name string
		ctx  context.Context
		ids  []token.ID
		want error
		text string
	}{
		{"too long", context.Background(), make([]token.ID, 41), engine.ErrContext, "engine: 41 tokens do not fit: the context is full of 40 tokens"},
		{"out of range", context.Background(), []token.ID{0, 320}, nil, "grove: token id 320 at index 1 is out of range: the vocabulary has 320"},
		{"negative", context.Background(), []token.ID{-1}, nil, "grove: token id -1 at index 0 is out of range: the vocabulary has 320"},
		{"cancelled", cancelled, ids, context.Canceled, "context canceled"},
		{"write", context.Background(), ids, full, "the disk is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := 0
			err := m.Logits(c.ctx, c.ids, func([]float32) error {
				if rows++; rows == 20 {
					return full
				}
				return nil
			})
			if err == nil || err.Error() != c.text || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			if n := len(logits(t, m, ids)); n != len(ids) {
				t.Errorf("%d rows afterwards, want %d", n, len(ids))
			}
		})
	}
}

// TestLogitsWait lets a slow reader of logits hold up nobody else.
func TestLogitsWait(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	ids := []token.ID{1, 2, 3}
	err := m.Logits(context.Background(), ids, func([]float32) error {
		logits(t, m, ids)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
