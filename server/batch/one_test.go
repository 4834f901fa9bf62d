package batch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server/batch"
)

// alone answers the lines of a text without a batch, as a program with files of its own does.
func alone(t *testing.T, text string) (answers, failures []string) {
	t.Helper()
	taken := map[string]int32{}
	for lines := batch.NewLines(strings.NewReader(text)); ; {
		line, number, err := lines.Next()
		if err == io.EOF {
			slices.Sort(answers)
			slices.Sort(failures)
			return answers, failures
		}
		if err != nil {
			t.Fatal(err)
		}
		q, bad := batch.Parse(number, line)
		if id := batch.CustomID(line); id != "" {
			if first, ok := taken[id]; !ok {
				taken[id] = number
			} else if bad == nil {
				bad = batch.Repeated(first)
			}
		}
		var r *batch.Result
		if bad != nil {
			r = q.Refuse(bad)
		} else if r, err = batch.Answer(t.Context(), echo, q); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, failed := r.Failed(); failed {
			failures = append(failures, string(out))
		} else {
			answers = append(answers, string(out))
		}
	}
}

// TestAlone: lines that are answered one by one, without files, have the results of a batch.
func TestAlone(t *testing.T) {
	lines := append(mixed(60),
		"", " \t", line("a", "/v1/embeddings", "{}")+"}", line("b", "/v1/embeddings", "{}")+"]", line("b", "/v1/embeddings", "{}"), line("c", "/other", "{}"), line("c", "/v1/embeddings", "{}"),
		`{"custom_id":"d","Custom_ID":null,"method":"POST","url":"/v1/embeddings","body":{}}`, line("d", "/v1/embeddings", "{}"),
		line("e", "/v1/embeddings", `{"refuse":1}`), line("f", "/v1/embeddings", `{"panic":1}`), strings.Repeat("x", batch.MaxLine+2))
	o := put(t, lines...)
	report := run(t, echo, o)
	if report.Failures["invalid_json"] < 3 || report.Failures["repeated_custom_id"] < 3 || report.Failures["line_too_long"] != 1 {
		t.Errorf("%+v", report)
	}
	answers, failures := alone(t, strings.Join(lines, "\n")+"\n")
	if diff := cmp.Diff(read(t, o.Out), answers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(read(t, errorsOf(o)), failures); diff != "" {
		t.Error(diff)
	}
}

// TestLines: numbers count empty lines, a last line needs no end, long lines are cut, and too many are refused.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", batch.MaxLine+5)
	lines := batch.NewLines(strings.NewReader("\n a\r\n\n" + long + "\nlast\n\n"))
	for _, want := range []struct {
		line   string
		number int32
	}{{" a\r", 2}, {long[:batch.MaxLine+1], 4}, {"last", 5}} {
		if line, number, err := lines.Next(); string(line) != want.line || number != want.number || err != nil {
			t.Errorf("line %d of %d bytes, %v; want line %d", number, len(line), err, want.number)
		}
	}
	if _, all, err := lines.Next(); all != 6 || err != io.EOF {
		t.Errorf("%d lines, %v", all, err)
	}
	lines = batch.NewLines(bytes.NewReader(bytes.Repeat([]byte("\n"), batch.MaxLines+1)))
	if _, _, err := lines.Next(); err == nil || err.Error() != "more than 16777216 lines; split the file" {
		t.Error(err)
	}
}

// TestAnswerCancelled: a request whose context ends has no result.
func TestAnswerCancelled(t *testing.T) {
	q, bad := batch.Parse(1, []byte(line("a", "/v1/embeddings", "{}")))
	if bad != nil {
		t.Fatal(bad)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if r, err := batch.Answer(ctx, echo, q); r != nil || err != gone {
		t.Errorf("%v, %v", r, err)
	}
}
