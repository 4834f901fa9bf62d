package states

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// memory is a file in memory.
type memory struct{ b []byte }

func (m *memory) WriteAt(b []byte, off int64) (int, error) {
	if n := int(off) + len(b) - len(m.b); n > 0 {
		m.b = append(m.b, make([]byte, n)...)
	}
	return copy(m.b[off:], b), nil
}

// model opens a model of random weights whose tokens are bytes, and whose streams are so many times as large.
func model(t *testing.T, times float32) *grove.Model {
	t.Helper()
	metadata, tensors, err := synthetic.Spec{Vocabulary: true, Vocab: 300, Context: 64}.Parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tensors {
		if v.Name != "token_embd.weight" {
			continue
		}
		x := make([]float32, v.Elems())
		err := tensor.Unpack(v.Type, x, v.Data)
		for i := range x {
			x[i] *= times
		}
		if err = errors.Join(err, tensor.Pack(v.Type, v.Data, x)); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenBytes(b.Bytes(), grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// list gives texts by their number.
func list(texts ...string) Texts {
	return func(do func(name, text string) error) error {
		for i, text := range texts {
			if err := do(fmt.Sprint("text ", i), text); err != nil {
				return err
			}
		}
		return nil
	}
}

// ids writes a file of ids.
func ids(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ids.bin")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWrite reads files of states back, and compares the states with those of the library.
func TestWrite(t *testing.T) {
	m := model(t, 1)
	begin, err := m.Tokenize("", true, true)
	if err != nil || len(begin) != 1 {
		t.Fatal(begin, err)
	}
	bytesOf := func(text string) []token.ID {
		ids, err := m.Tokenize(text, true, true)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	long := strings.Repeat("some text ", 30)
	tail := func(text string) []token.ID { return bytesOf(text)[1:] }
	var cut [][]token.ID // of the context, 64 tokens
	for part := range slices.Chunk(tail(long), 63) {
		cut = append(cut, append(slices.Clone(begin), part...))
	}
	all := grove.StatesOptions{Layers: []int{0, 2}, Final: true}
	for _, c := range []struct {
		name  string
		o     Options
		texts [][]token.ID
	}{
		{"texts", Options{Type: tensor.F32, States: all, Texts: list("a", "some\xfftext", long)}, append([][]token.ID{bytesOf("a"), bytesOf("some\xfftext")}, cut...)},
		{"half the bits", Options{Type: tensor.F16, States: grove.StatesOptions{Final: true}, Texts: list("abc")}, [][]token.ID{bytesOf("abc")}},
		{"texts of two tokens", Options{Type: tensor.F32, States: all, Texts: list("ab", "c"), Length: 2}, [][]token.ID{bytesOf("a"), bytesOf("b"), bytesOf("c")}},
		{"some tokens", Options{Type: tensor.F32, States: all, Texts: list("abc", "def", "ghi"), MaxTokens: 7}, [][]token.ID{bytesOf("abc"), bytesOf("de")}},
		{"no room for a token of the next", Options{Type: tensor.F32, States: all, Texts: list("abc", "def", ""), MaxTokens: 5}, [][]token.ID{bytesOf("abc")}},
		{"ids", Options{Type: tensor.F32, States: all, IDs: ids(t, "\x01\x00\x02\x01\x03\x00"), Bytes: 2, Length: 2}, [][]token.ID{{1, 258}, {3}}},
		{"wide ids", Options{Type: tensor.F32, States: all, IDs: ids(t, "\x01\x00\x00\x00\x02\x01\x00\x00"), Bytes: 4, MaxTokens: 1}, [][]token.ID{{1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var to memory
			var told []int
			c.o.Metadata, c.o.Progress = map[string]string{"note": "x"}, func(done, all int) { told = append(told, done, all) }
			texts, tokens, err := Write(t.Context(), m, c.o, &to)
			if err != nil {
				t.Fatal(err)
			}
			want := wanted(t, m, c.texts, c.o)
			got, err := safetensors.Parse(to.b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if n := want[0].Shape[0]; texts != len(c.texts) || tokens != n || len(told) != 2*n || told[2*n-2] != n || told[1] != n {
				t.Errorf("%d texts, %d tokens, told %v", texts, tokens, told)
			}
			for _, entry := range []string{`"note":"x"`, `"numerics":"` + grove.Numerics + `"`, fmt.Sprintf(`"sample_digest":"%x"`, m.Info().SampleDigest)} {
				if !bytes.Contains(to.b[:600], []byte(entry)) {
					t.Errorf("the metadata lacks %s", entry)
				}
			}
		})
	}
}

// wanted makes the tensors of texts.
func wanted(t *testing.T, m *grove.Model, texts [][]token.ID, o Options) []safetensors.Tensor {
	t.Helper()
	states := make([][]byte, len(o.States.Layers)+1)
	var ids, starts []byte
	n := 0
	for _, text := range texts {
		starts = binary.LittleEndian.AppendUint64(starts, uint64(n))
		n += len(text)
		for _, id := range text {
			ids = binary.LittleEndian.AppendUint32(ids, uint32(id))
		}
		err := m.States(t.Context(), text, o.States, func(row [][]float32) error {
			for i, v := range row {
				size, _ := o.Type.RowBytes(len(v))
				b := make([]byte, size)
				if err := tensor.Pack(o.Type, b, v); err != nil {
					return err
				}
				states[i] = append(states[i], b...)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	starts = binary.LittleEndian.AppendUint64(starts, uint64(n))
	all := []safetensors.Tensor{{Name: "ids", Type: "I32", Shape: []int{n}, Data: ids}, {Name: "starts", Type: "I64", Shape: []int{len(texts) + 1}, Data: starts}}
	for i, k := range o.States.Layers {
		all = append(all, safetensors.Tensor{Name: fmt.Sprintf("layer.%d", k), Data: states[i]})
	}
	all = append(all, safetensors.Tensor{Name: "final", Data: states[len(states)-1]})
	for i := range all[2:] {
		all[2+i].Type, all[2+i].Shape = safetensors.DType(o.Type.String()), []int{n, m.Info().Width}
	}
	return all
}

// TestWriteErrors goes through what cannot be written.
func TestWriteErrors(t *testing.T) {
	m, large := model(t, 1), model(t, 1e6)
	final := grove.StatesOptions{Final: true}
	odd, far, negative, empty := ids(t, "\x01\x00\x02"), ids(t, "\x01\x00\x2c\x01"), ids(t, "\xff\xff\xff\xff"), ids(t, "")
	for _, c := range []struct {
		name   string
		m      *grove.Model
		o      Options
		option bool
		want   string
	}{
		{"type", m, Options{Type: tensor.Q8_0, States: final, Texts: list("a")}, true, "states: values of type Q8_0; F32 and F16 can be written"},
		{"bytes of an id", m, Options{Type: tensor.F32, States: final, IDs: odd, Bytes: 3}, true, "states: ids of 3 bytes; they have 2 or 4"},
		{"length", m, Options{Type: tensor.F32, States: final, Texts: list("a"), Length: -1}, true, "states: texts of -1 tokens, all of them of 0; 0 or more"},
		{"length of the beginning", m, Options{Type: tensor.F32, States: final, Texts: list("a"), Length: 1}, true, "states: texts of 1 tokens; it must be 2 or more: a text of this model begins with 1 of its own"},
		{"length beyond the context", m, Options{Type: tensor.F32, States: final, Texts: list(strings.Repeat("a", 100)), Length: 80}, false, "engine: 80 tokens do not fit: the context is full of 64 tokens"},
		{"no states", m, Options{Type: tensor.F32, Texts: list("a")}, true, "grove: no states are asked for; name layers, or the final state"},
		{"a layer", m, Options{Type: tensor.F32, States: grove.StatesOptions{Layers: []int{4}}, Texts: list("a")}, true, "grove: layer 4: the model has states from 0 (the embeddings) to 3 (behind its layers)"},
		{"no texts", m, Options{Type: tensor.F32, States: final, Texts: list()}, false, "states: there is no text"},
		{"an empty text", m, Options{Type: tensor.F32, States: final, Texts: list("a", "")}, false, "states: text 1: it is empty"},
		{"half an id", m, Options{Type: tensor.F32, States: final, IDs: odd, Bytes: 2}, false, "states: " + odd + ": it ends with 1 bytes of an id, behind 1 ids of 2 bytes; the file is cut off, or has ids of another type"},
		{"an id", m, Options{Type: tensor.F32, States: final, IDs: far, Bytes: 2}, false, "states: " + far + ": token id 300 at index 1 (byte 2) is out of range: the vocabulary has 300"},
		{"a negative id", m, Options{Type: tensor.F32, States: final, IDs: negative, Bytes: 4}, false, "states: " + negative + ": token id -1 at index 0 (byte 0) is out of range: the vocabulary has 300"},
		{"no ids", m, Options{Type: tensor.F32, States: final, IDs: empty, Bytes: 2}, false, "states: " + empty + ": the file is empty: it has no token ids"},
		{"a folder of ids", m, Options{Type: tensor.F32, States: final, IDs: filepath.Dir(empty), Bytes: 2}, false, "states: open " + filepath.Dir(empty) + ": it is a directory; a regular file is needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Write(t.Context(), c.m, c.o, new(memory))
			if option := new(grove.OptionError); err == nil || err.Error() != c.want || errors.As(err, &option) != c.option {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
	t.Run("beyond F16", func(t *testing.T) {
		_, _, err := Write(t.Context(), large, Options{Type: tensor.F16, States: grove.StatesOptions{Layers: []int{0}}, Texts: list("a")}, new(memory))
		if err == nil || !strings.HasPrefix(err.Error(), "states: layer.0 of token 0 has the value ") || !strings.HasSuffix(err.Error(), ", and F16 reaches 65504; write F32") {
			t.Error(err)
		}
		w := writer{o: Options{Type: tensor.F16}, names: []string{"final"}}
		for _, v := range []float32{-65520, float32(math.Inf(1))} {
			if err := w.row(0, []float32{1, v}); err == nil {
				t.Errorf("%v is written", v)
			}
		}
	})
	t.Run("texts that change", func(t *testing.T) {
		for second, want := range map[string]string{"some text": "states: the texts have changed: ", "so": "states: the texts have changed: "} {
			times := 0
			_, _, err := Write(t.Context(), m, Options{Type: tensor.F32, States: final, Texts: func(do func(name, text string) error) error {
				if times++; times == 2 {
					return do("text", second)
				}
				return do("text", "some")
			}}, new(memory))
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v; want %s", err, want)
			}
		}
	})
	t.Run("an end", func(t *testing.T) {
		for _, o := range []Options{{Texts: list(strings.Repeat("a", 500))}, {IDs: ids(t, strings.Repeat("\x01\x00", 500)), Bytes: 2}} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o.Type, o.States, o.Progress = tensor.F32, final, func(done, _ int) {
				if done == 100 {
					cancel()
				}
			}
			if _, _, err := Write(ctx, m, o, new(memory)); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		broken := errors.New("broken")
		if _, _, err := Write(t.Context(), m, Options{Type: tensor.F32, States: final, Texts: func(func(name, text string) error) error { return broken }}, new(memory)); err != broken {
			t.Error(err)
		}
		if _, _, err := Write(t.Context(), m, Options{Type: tensor.F32, States: final, Texts: list("a")}, io.NewOffsetWriter(closed(t), 0)); !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
}

// closed returns a file that cannot be written.
func closed(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}
