package compute

import "unsafe"

// Kept is room for copies of what rows gave: a [Result] is the executor's only until the next step. The room is used
// again after [Kept.Reset]. The zero value is ready; a Kept is for one goroutine at a time.
type Kept struct {
	top    []TopEntry
	floats []float32
	hidden [][]float32
}

// Reset makes the room of all copies free again.
func (k *Kept) Reset() { k.top, k.floats, k.hidden = k.top[:0], k.floats[:0], k.hidden[:0] }

// Reserve makes room for so many values, entries of tops and hidden states altogether, and no more, so that copying them moves nothing. It
// is called behind Reset.
func (k *Kept) Reserve(floats, tops, hidden int) {
	if cap(k.floats) < floats {
		k.floats = make([]float32, 0, floats)
	}
	if cap(k.top) < tops {
		k.top = make([]TopEntry, 0, tops)
	}
	if cap(k.hidden) < hidden {
		k.hidden = make([][]float32, 0, hidden)
	}
}

// Bytes returns the room that was made.
func (k *Kept) Bytes() int {
	return 4*cap(k.floats) + int(unsafe.Sizeof(TopEntry{}))*cap(k.top) + int(unsafe.Sizeof([]float32{}))*cap(k.hidden)
}

// Keep returns a copy of what a row gave, valid until Reset. Where the room is moved, the copies made before stay where
// they were.
func (k *Kept) Keep(from *Result) Result {
	own := Result{Logits: k.Copy(from.Logits), State: k.Copy(from.State), LSE: from.LSE}
	n := len(k.top)
	k.top = append(k.top, from.Top...)
	own.Top = k.top[n:len(k.top):len(k.top)]
	n = len(k.hidden)
	for _, h := range from.Hidden {
		k.hidden = append(k.hidden, k.Copy(h))
	}
	own.Hidden = k.hidden[n:len(k.hidden):len(k.hidden)]
	return own
}

// Copy returns a copy of values, valid until Reset; nil stays nil.
func (k *Kept) Copy(v []float32) []float32 {
	if v == nil {
		return nil
	}
	n := len(k.floats)
	k.floats = append(k.floats, v...)
	return k.floats[n:len(k.floats):len(k.floats)]
}
