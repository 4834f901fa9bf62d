package safetensors

import (
	"errors"
	"fmt"
	"math"

	"grove/internal/weights/tensor"
)

// FloatTypes are the types of floats that tensors may have.
var FloatTypes = map[DType]tensor.Type{"F32": tensor.F32, "F16": tensor.F16, "BF16": tensor.BF16}

// Floats returns a copy of the values of a tensor. Errors: a type that is not F32, F16 or BF16; a value that is not finite.
func (t *Tensor) Floats() ([]float32, error) {
	kind, ok := FloatTypes[t.Type]
	if !ok {
		return nil, fmt.Errorf("tensor %q has type %s; it must be F32, F16 or BF16", t.Name, t.Type)
	}
	v := make([]float32, len(t.Data)/sizes[t.Type])
	if err := tensor.Unpack(kind, v, t.Data); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("tensor %q: value %d is %v", t.Name, i, x)
		}
	}
	return v, nil
}

// Read opens the file at path, hands its tensors to parse, which copies what it keeps, and closes the file. Errors of parse get the path.
func Read(path string, parse func(tensors []Tensor) error) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	if err = parse(f.Tensors); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(err, f.Close())
}
