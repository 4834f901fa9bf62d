package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"grove"
	"grove/internal/fileio"
	"grove/internal/text/chat"
	"grove/server/wire"
)

// Defaults has the settings that a name gives the requests for its model, where they do not say otherwise.
type Defaults struct {
	System    string          // the message of conversations without one; "": none
	Begins    []grove.Message // with which conversations begin, behind the system message
	Sampling  wire.Sampling   // in place of absent fields
	MaxTokens int             // of an answer; 0: not said
	Context   int             // tokens of a prompt and its answer; 0: those of the model. Ollama's routes alone have such a bound
}

// Conversation returns a conversation with the messages that the name gives it: a system message where it has none, and behind the system
// message those with which conversations begin. Added is their number, from index at on.
func (d *Defaults) Conversation(messages []grove.Message) (all []grove.Message, at, added int) {
	if d == nil || len(messages) == 0 {
		return messages, 0, 0
	}
	return chat.Begin(messages, d.System, d.Begins)
}

// Alias is a name that a client gave a served model, with defaults of its own.
type Alias struct {
	Name, Of string
	Defaults *Defaults
	Made     time.Time
	Record   json.RawMessage // what it was made of, as it is kept
}

// The bounds of [Names].
const (
	MostNames      = 1000
	MostNamesBytes = 16 << 20 // of their records
	mostRecord     = 1 << 20  // of one
)

// Names are the names that clients gave served models. It is safe for concurrent use.
type Names struct {
	mu    sync.Mutex
	all   []*Alias
	bytes int
	file  string // that keeps them; "": none does
}

// Restore reads the names of a file, which keeps those that are made from now on. Read returns a name from its record. A file that is not
// there has none.
func (n *Names) Restore(file string, read func(record json.RawMessage) (*Alias, error)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, err := fileio.ReadRegular(file, 2*MostNamesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		n.file = file
		return nil
	}
	var records []json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &records)
	}
	for i := 0; i < len(records) && err == nil; i++ {
		var a *Alias
		if a, err = read(records[i]); err == nil {
			err = n.put(a)
		}
	}
	if err != nil {
		return fmt.Errorf("server: %s, which keeps the names that clients made: %w; move it away to start without them", file, err)
	}
	n.file = file
	return nil
}

// Get returns the model of a name; nil: clients made none.
func (n *Names) Get(name string) *Alias {
	name = strings.TrimSuffix(name, latest)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.all {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// All returns the names, in the order in which they were made.
func (n *Names) All() []*Alias {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// Put adds a name, or replaces what it stands for.
func (n *Names) Put(a *Alias) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, bytes := slices.Clone(n.all), n.bytes
	err := n.put(a)
	if err == nil {
		err = n.save()
	}
	if err != nil {
		n.all, n.bytes = before, bytes
	}
	return err
}

func (n *Names) put(a *Alias) error {
	a.Name = strings.TrimSuffix(a.Name, latest)
	n.drop(a.Name)
	if len(a.Record) > mostRecord {
		return wire.Refuse("model", "model: the texts of a name have more than %d MiB", mostRecord>>20)
	}
	if len(n.all) == MostNames || n.bytes+len(a.Record) > MostNamesBytes {
		e := wire.Refuse("model", "the server keeps at most %d names of clients, with %d MiB of texts; delete others first", MostNames, MostNamesBytes>>20)
		e.Code = "names_full"
		return e
	}
	n.all, n.bytes = append(n.all, a), n.bytes+len(a.Record)
	return nil
}

// Drop forgets a name, and reports whether clients had made it.
func (n *Names) Drop(name string) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, bytes := slices.Clone(n.all), n.bytes
	if !n.drop(strings.TrimSuffix(name, latest)) {
		return false, nil
	}
	err := n.save()
	if err != nil {
		n.all, n.bytes = before, bytes
	}
	return true, err
}

func (n *Names) drop(name string) bool {
	i := slices.IndexFunc(n.all, func(a *Alias) bool { return a.Name == name })
	if i < 0 {
		return false
	}
	n.bytes -= len(n.all[i].Record)
	n.all = slices.Delete(slices.Clone(n.all), i, i+1)
	return true
}

// save writes the file.
func (n *Names) save() error {
	if n.file == "" {
		return nil
	}
	records := make([]json.RawMessage, len(n.all))
	for i, a := range n.all {
		records[i] = a.Record
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	return fileio.WriteAtomic(n.file, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
