package beam

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"grove/server/batch"
)

func init() {
	register.DoFn4x1[context.Context, Line, func(Line), func(string), error](new(textFn))
	register.Function1x2(embedding)
}

// Files are paths or addresses of Beam's file systems, such as gs://bucket/requests.jsonl.
type Files struct {
	Input  string // may be a pattern, such as requests-*.jsonl
	Output string // the answers; it is replaced
	Errors string // lines without an answer; it is replaced, and empty where there are none; "": beside Output, NAME.errors.jsonl
}

// complete returns the files with their defaults. Errors: files that are missing or equal, file systems that this program does not have.
func (f Files) complete() (Files, error) {
	f.Errors = cmp.Or(f.Errors, strings.TrimSuffix(f.Output, ".jsonl")+".errors.jsonl")
	if f.Input == "" || f.Output == "" {
		return f, errors.New("beam: the input or the output is missing")
	}
	if f.Input == f.Output || f.Input == f.Errors || f.Output == f.Errors {
		return f, fmt.Errorf("beam: %s, %s, %s: input, output and errors need a file each", f.Input, f.Output, f.Errors)
	}
	for _, path := range []string{f.Input, f.Output, f.Errors} {
		if err := served(path); err != nil {
			return f, err
		}
	}
	return f, nil
}

// served returns an error where this program has no file system for a path. It opens none: they may need what the workers alone have.
func served(path string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("beam: %v", p)
		}
	}()
	filesystem.ValidateScheme(path) // which panics
	return nil
}

// Batch answers files of requests: grove batch as a pipeline.
func Batch(s beam.Scope, m Model, f Files) error {
	f, err := f.complete()
	if err != nil {
		return err
	}
	answers, failures, err := Answer(s, m, Read(s, f.Input))
	if err != nil {
		return err
	}
	Write(s, f.Output, answers)
	Write(s, f.Errors, failures)
	return nil
}

// Format is the form of the texts to embed.
type Format string

// The formats.
const (
	Text  Format = "text"  // each line is a text, whose custom_id is the number of the line
	JSONL Format = "jsonl" // each line is an object with the members custom_id and text, and may have others
)

// Embed writes the embeddings of texts: lines {"custom_id": ..., "embedding": [...]}.
func Embed(s beam.Scope, m Model, f Files, format Format) error {
	f, err := f.complete()
	if err != nil {
		return err
	}
	if format != Text && format != JSONL {
		return fmt.Errorf("beam: format is %q; it must be %s or %s", format, Text, JSONL)
	}
	s = s.Scope("grove.Embed")
	lines, refused := beam.ParDo2(s, &textFn{format}, Read(s, f.Input))
	answers, failures, err := Answer(s, m, lines)
	if err != nil {
		return err
	}
	Write(s, f.Output, beam.ParDo(s, embedding, answers))
	Write(s, f.Errors, beam.Flatten(s, refused, failures))
	return nil
}

// textFn makes requests of texts.
type textFn struct{ Format Format }

// ProcessElement implements the DoFn.
func (f *textFn) ProcessElement(ctx context.Context, l Line, emit func(Line), failures func(string)) error {
	id, text, bad := f.read(l)
	if bad != nil {
		return write(ctx, (&batch.Request{Line: l.Number}).Refuse(bad), nil, failures)
	}
	line, err := json.Marshal(map[string]any{"custom_id": id, "method": "POST", "url": "/v1/embeddings", "body": map[string]string{"input": text}})
	if err != nil {
		return err
	}
	emit(Line{l.Number, line})
	return nil
}

// read returns the text of a line and its custom_id.
func (f *textFn) read(l Line) (id, text string, bad *batch.Refusal) {
	switch {
	case len(l.Text) > batch.MaxLine:
		return "", "", &batch.Refusal{Code: "line_too_long", Message: fmt.Sprintf("the line has more than %d bytes", batch.MaxLine)}
	case !utf8.Valid(l.Text):
		return "", "", &batch.Refusal{Code: "invalid_text", Message: "the line is no UTF-8"}
	case f.Format == Text:
		return strconv.Itoa(int(l.Number)), string(bytes.TrimSuffix(l.Text, []byte("\r"))), nil
	}
	var object struct {
		ID   string  `json:"custom_id"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(l.Text, &object); err != nil || object.Text == nil {
		return "", "", &batch.Refusal{Code: "invalid_json", Message: "the line is no object with the texts custom_id and text"}
	}
	return object.ID, *object.Text, nil
}

// embedding takes the embedding out of an answer.
func embedding(answer string) (string, error) {
	var r struct {
		CustomID string `json:"custom_id"`
		Response struct {
			Body struct {
				Data []struct {
					Embedding json.RawMessage `json:"embedding"`
				} `json:"data"`
			} `json:"body"`
		} `json:"response"`
	}
	if err := json.Unmarshal([]byte(answer), &r); err != nil {
		return "", err
	}
	if len(r.Response.Body.Data) != 1 {
		return "", fmt.Errorf("beam: custom_id %q: the answer has %d embeddings, not one", r.CustomID, len(r.Response.Body.Data))
	}
	line, err := json.Marshal(struct {
		CustomID  string          `json:"custom_id"`
		Embedding json.RawMessage `json:"embedding"`
	}{r.CustomID, r.Response.Body.Data[0].Embedding})
	return string(line), err
}
