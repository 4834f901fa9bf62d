package heads

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// checksumKey is where a head says which model's states it reads.
const checksumKey = "heads.target.checksum"

// checksum returns 16 hexadecimal digits that tell a target from others: those of the values of its final norm, which files of all weight types
// have as float32. It is "" for a model without one.
func checksum(target *gguf.File) (string, error) {
	v, ok := target.Tensor("output_norm.weight")
	if !ok || v.Elems() > maxWidth {
		return "", nil
	}
	v, err := target.Load(v)
	if err != nil {
		return "", err
	}
	values := make([]float32, v.Elems())
	if err := tensor.Unpack(v.Type, values, v.Data); err != nil {
		return "", err
	}
	data := make([]byte, 4*len(values))
	if err := tensor.Pack(tensor.F32, data, values); err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// fitsChecksum refuses a head that says that it is another model's.
func fitsChecksum(head, target *gguf.File) error {
	says, ok, err := head.String(checksumKey)
	if !ok || err != nil {
		return err
	}
	is, err := checksum(target)
	if err == nil && is != "" && is != says {
		err = fmt.Errorf("the head was converted for a model whose final norm has the checksum %.40q; that of its target has %q: convert it with --target for this model if it is to draft for it", says, is)
	}
	return err
}
