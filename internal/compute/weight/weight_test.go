package weight

import "testing"

// TestTake: matrices share allocations but no byte, and the memory stays near what was asked.
func TestTake(t *testing.T) {
	const mib = 1 << 20
	w := New(nil, nil)
	var taken [][]byte
	for _, n := range []int{1, 0, 3 * mib, 100, 40*mib + 1, 5000, 7 * mib, 2 * mib, mib, 31 * mib, 1, 9 * mib} {
		b := w.take(n)
		if len(b) != n || cap(b) != n {
			t.Fatalf("take(%d) has %d bytes and room for %d", n, len(b), cap(b))
		}
		w.bytes += n
		taken = append(taken, b)
	}
	for i, b := range taken {
		for j := range b {
			if b[j] != 0 {
				t.Fatalf("byte %d of piece %d belongs to piece %d too", j, i, b[j]-1)
			}
			b[j] = byte(i + 1)
		}
	}
	if len(w.room) > 32*mib {
		t.Errorf("%d bytes are kept for what may come", len(w.room))
	}
}
