package compute

import "unsafe"

// Arena is room for copies of what rows gave: a [Result] is the executor's only until the next step. The room is used
// again after [Arena.Reset]. The zero value is ready; an Arena is for one goroutine at a time.
type Arena struct {
	top    []TopEntry
	floats []float32
	hidden [][]float32
}

// Reset makes the room of all copies free again.
func (a *Arena) Reset() { a.top, a.floats, a.hidden = a.top[:0], a.floats[:0], a.hidden[:0] }

// Reserve makes room for so many values, entries of tops and hidden states altogether, and no more, so that copying them moves nothing. It
// is called behind Reset.
func (a *Arena) Reserve(floats, tops, hidden int) {
	if cap(a.floats) < floats {
		a.floats = make([]float32, 0, floats)
	}
	if cap(a.top) < tops {
		a.top = make([]TopEntry, 0, tops)
	}
	if cap(a.hidden) < hidden {
		a.hidden = make([][]float32, 0, hidden)
	}
}

// Bytes returns the room that was made.
func (a *Arena) Bytes() int {
	return 4*cap(a.floats) + int(unsafe.Sizeof(TopEntry{}))*cap(a.top) + int(unsafe.Sizeof([]float32{}))*cap(a.hidden)
}

// Keep returns a copy of what a row gave, valid until Reset. Where the room is moved, the copies made before stay where
// they were.
func (a *Arena) Keep(from *Result) Result {
	own := Result{Logits: a.Copy(from.Logits), State: a.Copy(from.State), LSE: from.LSE}
	n := len(a.top)
	a.top = append(a.top, from.Top...)
	own.Top = a.top[n:len(a.top):len(a.top)]
	n = len(a.hidden)
	for _, h := range from.Hidden {
		a.hidden = append(a.hidden, a.Copy(h))
	}
	own.Hidden = a.hidden[n:len(a.hidden):len(a.hidden)]
	return own
}

// Copy returns a copy of values, valid until Reset; nil stays nil.
func (a *Arena) Copy(v []float32) []float32 {
	if v == nil {
		return nil
	}
	n := len(a.floats)
	a.floats = append(a.floats, v...)
	return a.floats[n:len(a.floats):len(a.floats)]
}
