package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"grove/internal/weights/safetensors"
)

// read reads the states of texts and their labels, one object of roles and concepts a line.
func read(states, labels string) ([][]float64, []map[string]string, error) {
	known, err := readLabels(labels)
	if err != nil {
		return nil, nil, err
	}
	all, err := lastStates(states)
	if err == nil && len(all) != len(known) {
		err = fmt.Errorf("%s has states of %d texts and %s has %d lines; there must be a line for each text", states, len(all), labels, len(known))
	}
	return all, known, err
}

// maxLine is the most bytes of a line of labels.
const maxLine = 1 << 20

// readLabels reads a file of labels.
func readLabels(path string) (all []map[string]string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var labels map[string]string
		if err := json.Unmarshal(lines.Bytes(), &labels); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w; it must be an object of roles and concepts, such as {\"result\": \"int\"}", path, len(all)+1, err)
		}
		if all = append(all, labels); len(all) > maxTexts {
			return nil, fmt.Errorf("%s: more than %d lines", path, maxTexts)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// lastStates reads the states of the last token of each text of a file that lab states wrote, those of all layers one behind the other.
func lastStates(path string) (all [][]float64, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	starts, err := startsOf(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; write it with lab states", path, err)
	}
	if len(starts)-1 > maxTexts {
		return nil, fmt.Errorf("%s: %d texts; at most %d", path, len(starts)-1, maxTexts)
	}
	all = make([][]float64, len(starts)-1)
	for _, t := range f.Tensors {
		if t.Name == "ids" || t.Name == "starts" {
			continue
		}
		if len(t.Shape) != 2 || t.Shape[0] != int(starts[len(all)]) {
			return nil, fmt.Errorf("%s: tensor %q has the shape %v; it must be [%d, width]", path, t.Name, t.Shape, starts[len(all)])
		}
		values, err := t.Floats()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		width := t.Shape[1]
		for i := range all {
			for _, v := range values[(int(starts[i+1])-1)*width : int(starts[i+1])*width] {
				all[i] = append(all[i], float64(v))
			}
		}
	}
	if len(all[0]) == 0 {
		return nil, fmt.Errorf("%s has no states; write some with lab states --layers", path)
	}
	return all, nil
}

// startsOf returns where texts begin, and the number of all tokens.
func startsOf(f *safetensors.File) ([]int64, error) {
	t, ok := f.Tensor("starts")
	if !ok || t.Type != "I64" || len(t.Shape) != 1 || t.Shape[0] < 2 || len(t.Data) != 8*t.Shape[0] {
		return nil, errors.New("there is no tensor starts of the beginnings of texts")
	}
	starts := make([]int64, t.Shape[0])
	if _, err := binary.Decode(t.Data, binary.LittleEndian, starts); err != nil {
		return nil, err
	}
	for i, s := range starts[1:] {
		if s <= starts[i] || starts[0] != 0 {
			return nil, fmt.Errorf("text %d begins at token %d and ends at %d", i, starts[i], s)
		}
	}
	return starts, nil
}
