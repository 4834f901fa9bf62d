// Package adapters keeps the adapters that are open for a model, and makes the sets of them that texts ask for.
package adapters

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/lora"
)

// File is a LoRA adapter to open with a model: a GGUF file in llama.cpp's layout, or a folder of PEFT.
type File struct {
	Path  string
	Name  string  // by which requests ask for it; "": that of the file
	Scale float64 // that requests without adapters of their own give it, besides the file's own; 0: they do without it
	ID    int     // its number, where that is greater than those so far, as of an adapter that was open before; else it is the next one
}

// Adapter is an open adapter.
type Adapter struct {
	ID    int // its number in the order of opening, from 0; numbers of closed adapters are not used again
	Name  string
	Path  string
	Scale float64 // that requests without adapters of their own give it
	Pairs int     // tensors that it adds to
	Rank  int     // the largest
	Bytes int     // of memory

	// Invocation is the tokens from whose last place in a prompt on it works; empty: it works everywhere.
	Invocation []token.ID
}

// Scale is an adapter that a request asks for, and how much of it.
type Scale struct {
	ID    int
	Name  string // in place of ID
	Scale float64
}

// ErrAdapter reports an adapter that is not open, or that is open already.
var ErrAdapter = errors.New("adapter")

const (
	// Most is the most adapters that are open at a time.
	Most = 256
	// MaxScale bounds the scale of an adapter.
	MaxScale = 1e6
)

// Set is adapters with their scales, which add in this order. It is read-only and safe for concurrent use; nil is none.
type Set struct {
	List []compute.Adapted
	Name [sha256.Size]byte // a digest of all that decides what they add

	// Invocation, where it is not empty, is the tokens from whose last place in a text's first prompt on the set works. It does
	// not work at all where there is no such place.
	Invocation []token.ID
}

// From returns the index of a first prompt from which the set works; false: it does not.
func (s *Set) From(ids []token.ID) (int, bool) {
	n := len(s.Invocation)
	if n == 0 {
		return 0, true
	}
	for at := len(ids) - n; at >= 0; at-- {
		if slices.Equal(ids[at:at+n], s.Invocation) {
			return at, true
		}
	}
	return 0, false
}

// Base is the model that adapters are for.
type Base struct {
	File *gguf.File
	Info *model.Info
	Pool *par.Pool
}

// Registry is the adapters of a model. It is safe for concurrent use. Sets that it gave stay what they are.
type Registry struct {
	Base Base
	Room func(bytes int) error // returns an error where there is no room for so many bytes; nil: there is

	mu   sync.Mutex
	next int
	open []entry
	sets map[string]*Set // by the adapters and their scales
}

type entry struct {
	Adapter
	packed *weight.Adapter
	digest [sha256.Size]byte
}

// Load opens an adapter. One of another base is refused by the name of what does not fit before anything is allocated. Errors:
// [ErrAdapter] for a name that is taken; that of Room; others are of the file or of the scale.
func (r *Registry) Load(f File) (Adapter, error) {
	if err := checkScale(cmp.Or(f.Name, f.Path), f.Scale); err != nil {
		return Adapter{}, err
	}
	e, err := r.pack(f)
	if err != nil {
		return Adapter{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case slices.ContainsFunc(r.open, func(o entry) bool { return o.Name == e.Name }):
		return Adapter{}, fmt.Errorf("adapters: %w %q is open already; close it first, or give another name", ErrAdapter, e.Name)
	case len(r.open) == Most:
		return Adapter{}, fmt.Errorf("adapters: %s: %d adapters are open, the most that can be", f.Path, Most)
	}
	e.ID = max(r.next, f.ID)
	r.next = e.ID + 1
	r.open, r.sets = append(r.open, e), nil
	return e.Adapter, nil
}

// pack reads an adapter and packs its factors for the model's matrices.
func (r *Registry) pack(f File) (entry, error) {
	info := r.Base.Info
	if info.Source != nil {
		return entry{}, fmt.Errorf("adapters: %s: %s reads a source before it generates; adapters of such models are not supported", f.Path, info.Arch)
	}
	file, err := lora.Open(f.Path, r.Base.File)
	if err != nil {
		return entry{}, err
	}
	defer file.Close()
	if r.Room != nil {
		if err := r.Room(file.Bytes()); err != nil {
			return entry{}, err
		}
	}
	for i, id := range file.Invocation {
		if int(id) >= info.Vocabulary {
			return entry{}, fmt.Errorf("adapters: %s: token %d of its invocation is %d; the vocabulary has %d", f.Path, i, id, info.Vocabulary)
		}
	}
	packed, err := model.Adapt(info, r.Base.Pool, file)
	if err != nil {
		return entry{}, err
	}
	_, rank := file.Ranks()
	a := Adapter{
		Name: cmp.Or(f.Name, file.Name), Path: f.Path, Scale: f.Scale, Pairs: len(file.Pairs), Rank: rank, Bytes: packed.Bytes(), Invocation: file.Invocation,
	}
	return entry{Adapter: a, packed: packed, digest: file.Digest()}, nil
}

// Unload closes an adapter by its name. Sets that have it keep it. Errors: [ErrAdapter].
func (r *Registry) Unload(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, err := r.find(Scale{Name: name, ID: -1})
	if err != nil {
		return err
	}
	r.open, r.sets = slices.Delete(r.open, i, i+1), nil
	return nil
}

// All returns the open adapters in the order of opening.
func (r *Registry) All() []Adapter {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Adapter, len(r.open))
	for i, e := range r.open {
		all[i] = e.Adapter
	}
	return all
}

// Scale sets the scales that texts without adapters of their own give the open adapters: those that are not named get 0. Errors are
// those of [Registry.Set]; nothing has changed then.
func (r *Registry) Scale(scales []Scale) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.set(scales); err != nil {
		return err
	}
	for i := range r.open {
		r.open[i].Scale = 0
	}
	for _, s := range scales {
		i, _ := r.find(s)
		r.open[i].Scale = s.Scale
	}
	return nil
}

// Set returns the set of a text's adapters, nil for none. The same adapters with the same scales are one set. scales nil: all, with
// their own scales. Errors: [ErrAdapter]; a scale out of range; an adapter with an invocation beside others.
func (r *Registry) Set(scales []Scale) (*Set, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if scales == nil {
		for _, e := range r.open {
			scales = append(scales, Scale{ID: e.ID, Scale: e.Adapter.Scale})
		}
	}
	return r.set(scales)
}

// find returns the place of an open adapter.
func (r *Registry) find(s Scale) (int, error) {
	i := slices.IndexFunc(r.open, func(e entry) bool { return s.Name == "" && e.ID == s.ID || s.Name != "" && e.Name == s.Name })
	if i < 0 && s.Name != "" {
		return i, fmt.Errorf("adapters: %w %.80q is not open", ErrAdapter, s.Name)
	}
	if i < 0 {
		return i, fmt.Errorf("adapters: %w %d is not open; %d adapters are", ErrAdapter, s.ID, len(r.open))
	}
	return i, nil
}

func checkScale(name string, scale float64) error {
	if math.IsNaN(scale) || math.Abs(scale) > MaxScale {
		return fmt.Errorf("adapters: %s: scale is %v; it must be within ±%g", name, scale, float64(MaxScale))
	}
	return nil
}

func (r *Registry) set(scales []Scale) (*Set, error) {
	s, seen, key, name := &Set{}, map[int]bool{}, "", ""
	h := sha256.New()
	for _, want := range scales {
		i, err := r.find(want)
		if err != nil {
			return nil, err
		}
		e := &r.open[i]
		if err := checkScale(e.Name, want.Scale); err != nil {
			return nil, err
		}
		if seen[e.ID] {
			return nil, fmt.Errorf("adapters: %q is asked for twice", e.Name)
		}
		scale := float32(want.Scale)
		if seen[e.ID] = true; scale == 0 {
			continue
		}
		if len(e.Invocation) > 0 {
			s.Invocation, name = e.Invocation, e.Name
		}
		s.List = append(s.List, compute.Adapted{Adapter: e.packed, Scale: scale})
		h.Write(e.digest[:])
		h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(scale)))
		key += fmt.Sprintf("%d=%x ", e.ID, math.Float32bits(scale))
	}
	switch {
	case len(s.List) == 0:
		return nil, nil
	case len(s.Invocation) > 0 && len(s.List) > 1:
		return nil, fmt.Errorf("adapters: %q works from its invocation on; it cannot work beside %d others", name, len(s.List)-1)
	case r.sets[key] != nil:
		return r.sets[key], nil
	}
	if s.Name = [sha256.Size]byte(h.Sum(nil)); r.sets == nil || len(r.sets) >= Most { // a set costs little to make anew
		r.sets = map[string]*Set{}
	}
	r.sets[key] = s
	return s, nil
}
