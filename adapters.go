package grove

import "grove/internal/engine/adapters"

// AdapterFile is a LoRA adapter to open with a model: a GGUF file in llama.cpp's layout, or a folder of PEFT.
type AdapterFile = adapters.File

// Adapter is an open adapter.
type Adapter = adapters.Adapter

// AdapterScale is an adapter that a request asks for, and how much of it.
type AdapterScale = adapters.Scale

// ErrAdapter reports an adapter that is not open, or that is open already.
var ErrAdapter = adapters.ErrAdapter

// LoadAdapter opens an adapter while the model is in use. Errors: an [*OptionError] for a file that cannot be read, for an adapter of
// another base, which is refused by the name of what does not fit before anything is allocated, and for a scale out of range;
// [ErrAdapter] for a name that is taken; [ErrMemory].
func (m *Model) LoadAdapter(f AdapterFile) (Adapter, error) { return m.resident.LoadAdapter(f) }

// UnloadAdapter closes an adapter by its name. Answers that use it go on with it. Errors: [ErrAdapter].
func (m *Model) UnloadAdapter(name string) error { return m.resident.UnloadAdapter(name) }

// Adapters returns the open adapters in the order of opening.
func (m *Model) Adapters() []Adapter { return m.resident.Adapters.All() }

// ScaleAdapters sets the scales that requests without adapters of their own give the open adapters: those that are not named get 0.
// Errors: [ErrAdapter], an [*OptionError]; nothing has changed then.
func (m *Model) ScaleAdapters(scales []AdapterScale) error { return m.resident.ScaleAdapters(scales) }
