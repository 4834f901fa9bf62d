package beam

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"grove/server/batch"
)

func init() {
	register.DoFn3x1[context.Context, string, func(Line), error](new(readFn))
	register.DoFn4x1[context.Context, Line, func(string, Line), func(string), error](new(keyFn))
	register.DoFn5x1[context.Context, string, func(*Line) bool, func(Line), func(string), error](new(firstFn))
	register.Emitter1[Line]()
	register.Emitter1[string]()
	register.Emitter2[string, Line]()
	register.Iter1[Line]()
}

// Read reads the lines of the files that a pattern of Beam's file systems names, in the order of their names and as if they were one file, and passes empty lines over. One worker
// reads them, because the numbers of lines go on from file to file. Lines that are too long are cut, and refused as requests.
func Read(s beam.Scope, pattern string) beam.PCollection {
	s = s.Scope("grove.Read")
	return beam.ParDo(s, new(readFn), beam.Create(s, pattern))
}

// readFn reads the files of a pattern.
type readFn struct{}

// ProcessElement implements the DoFn.
func (*readFn) ProcessElement(ctx context.Context, pattern string, emit func(Line)) error {
	fs, err := filesystem.New(ctx, pattern)
	if err != nil {
		return err
	}
	defer fs.Close()
	paths, err := fs.List(ctx, pattern)
	if err != nil {
		return fmt.Errorf("beam: %s: %w", pattern, err)
	}
	if len(paths) == 0 {
		return fmt.Errorf("beam: %s: no file has this name", pattern)
	}
	slices.Sort(paths)
	last := int32(0)
	for _, path := range paths {
		if last, err = readFile(ctx, fs, path, last, emit); err != nil {
			return fmt.Errorf("beam: %s: %w", path, err)
		}
	}
	return nil
}

// readFile reads a file behind another whose last line has a number, and returns the number of its own last line.
func readFile(ctx context.Context, fs filesystem.Interface, path string, before int32, emit func(Line)) (last int32, err error) {
	r, err := fs.OpenRead(ctx, path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	lines := batch.NewLines(r)
	for {
		text, number, err := lines.Next()
		if err == io.EOF {
			return before + number, nil
		}
		if err != nil {
			return 0, err
		}
		if number > batch.MaxLines-before {
			return 0, fmt.Errorf("the files have more than %d lines together; run several pipelines", batch.MaxLines)
		}
		emit(Line{before + number, bytes.Clone(text)})
	}
}

// choose finds the requests among lines. Lines with one custom_id meet in a group, wherever they are: the first is a request, and the others are failures, as are lines that
// are no requests.
func choose(s beam.Scope, lines beam.PCollection) (requests, failures beam.PCollection) {
	s = s.Scope("grove.Choose")
	keyed, refused := beam.ParDo2(s, new(keyFn), lines)
	requests, repeated := beam.ParDo2(s, new(firstFn), beam.GroupByKey(s, keyed))
	return requests, beam.Flatten(s, refused, repeated)
}

// keyFn gives lines their custom_id. Lines that take none are refused.
type keyFn struct{}

// ProcessElement implements the DoFn.
func (*keyFn) ProcessElement(ctx context.Context, l Line, emit func(string, Line), failures func(string)) error {
	if id := batch.CustomID(l.Text); id != "" && len(id) <= batch.MaxCustomID {
		emit(id, l)
		return nil
	}
	q, bad := batch.Parse(l.Number, l.Text) // which refuses it, because of its custom_id
	return write(ctx, q.Refuse(bad), nil, failures)
}

// firstFn finds the request among the lines of a custom_id. One line of a group is in memory at a time, the first request so far, and a number for each of the others.
type firstFn struct{}

// ProcessElement implements the DoFn.
func (*firstFn) ProcessElement(ctx context.Context, id string, lines func(*Line) bool, emit func(Line), failures func(string)) error {
	first, others := int32(math.MaxInt32), []int32(nil) // of all lines; of requests
	var request *batch.Request
	var best Line
	for l := (Line{}); lines(&l); l = (Line{}) {
		first = min(first, l.Number)
		q, bad := batch.Parse(l.Number, l.Text)
		if bad != nil {
			if err := write(ctx, q.Refuse(bad), nil, failures); err != nil {
				return err
			}
			continue
		}
		if others = append(others, l.Number); len(others) > batch.MaxLines {
			return fmt.Errorf("beam: custom_id %q: more than %d lines have it", id, batch.MaxLines)
		}
		if request == nil || l.Number < best.Number {
			request, best = q, l
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	if best.Number == first {
		emit(best)
		others = others[1:]
	}
	for _, request.Line = range others {
		if err := write(ctx, request.Refuse(batch.Repeated(first)), nil, failures); err != nil {
			return err
		}
	}
	return nil
}
