package batch

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"grove/internal/fileio"
)

// Clean removes what lies beside an output so that its batch can go on. It must have ended and be closed.
func Clean(out string) error {
	var all error
	for _, suffix := range []string{stateSuffix, lockSuffix} {
		if err := os.Remove(out + suffix); !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// stateVersion is that of the state and of what the answers of a line depend on besides the model: seeds, ids.
const stateVersion = 1

// maxState bounds the bytes of a state.
const maxState = 1 << 20

// state says of which requests an output has the answers.
type state struct {
	Version int    `json:"version"`
	Sum     string `json:"input_sha256"`
	Lines   int    `json:"lines"`
	Model   string `json:"model"` // what answers depend on besides
}

// readState returns the state of an output; nil: there is none.
func readState(path string) (*state, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := new(state)
	if err := json.NewDecoder(io.LimitReader(f, maxState)).Decode(s); err != nil {
		return nil, fmt.Errorf("batch: %s: %w; it is no state of a batch: name another output, or remove it with the output", path, err)
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("batch: %s: the state has version %d, and this grove has version %d: go on with the grove that began the batch, or name another output", path, s.Version, stateVersion)
	}
	return s, nil
}

// checkInput returns an error where an output was begun for other requests.
func (s *state) checkInput(path string, in *input) error {
	if s.Sum != hex.EncodeToString(in.sum[:]) {
		return fmt.Errorf("batch: %s: the output was begun for another file, of %d lines; this one has %d: name another output", path, s.Lines, len(in.lines))
	}
	return nil
}

// ErrMixed reports that an output was begun with another model.
var ErrMixed = errors.New("answers would be mixed; name another output")

// begin keeps the state of a batch, or compares it with that of an output that goes on.
func (b *Batch) begin(model string) error {
	if s := b.state; s != nil {
		if s.Model != model {
			return fmt.Errorf("batch: %s: the output was begun with %s, and now there is %s: %w", b.o.Out, s.Model, model, ErrMixed)
		}
		return nil
	}
	b.state = &state{stateVersion, hex.EncodeToString(b.in.sum[:]), len(b.in.lines), model}
	return fileio.WriteAtomic(b.o.Out+stateSuffix, func(w io.Writer) error { return json.NewEncoder(w).Encode(b.state) })
}
