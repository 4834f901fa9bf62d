package method

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/text/token"
)

// result is a row whose likeliest successors are ids, each half as likely as the one before.
func result(id token.ID, parent int32, accepted bool, ids ...token.ID) RowResult {
	o := RowResult{ID: id, Parent: parent, Accepted: accepted}
	for i, next := range ids {
		o.Top = append(o.Top, compute.TopEntry{ID: next, Logit: -float32(i) * math.Ln2})
	}
	return o
}

func successors(s *Successors, before, id token.ID) (ids []token.ID) {
	var row SuccessorRow
	if !s.Of(&row, before, id) {
		return nil
	}
	for _, next := range row {
		if next.P > 0 {
			ids = append(ids, next.ID)
		}
	}
	return ids
}

// TestSuccessorsOrder: where a token stands in several rows, the accepted one counts, then the first.
func TestSuccessorsOrder(t *testing.T) {
	s := NewSuccessors(10, 0)
	s.Learn([]RowResult{
		result(5, -1, true, 1), result(6, 0, false, 2), result(5, 1, false, 3), result(6, 2, false, 4),
		result(7, 0, true, 5), result(8, 4, false, 6), result(8, 4, true, 7), result(7, 6, false, 8),
	}, token.None)
	for id, want := range map[token.ID][]token.ID{5: {1}, 6: {2}, 7: {5}, 8: {7}, 9: nil, -1: nil, 10: nil} {
		if got := successors(s, token.None, id); !cmp.Equal(got, want) {
			t.Errorf("behind %d: %v, want %v", id, got, want)
		}
	}
	s.Learn([]RowResult{result(12, -1, true, 1), result(-3, 0, false, 1), result(5, 0, false)}, 4)
	if got := successors(s, token.None, 5); !cmp.Equal(got, []token.ID{1}) {
		t.Errorf("a row without logits changed 5 to %v", got)
	}
}

func TestSuccessorsProbabilities(t *testing.T) {
	s := NewSuccessors(20, 0)
	s.Learn([]RowResult{result(5, -1, true, 1, 2, 3), result(6, 0, false, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)}, 4)
	var row SuccessorRow
	s.Of(&row, 4, 5)
	want := SuccessorRow{{1, 4.0 / 7}, {2, 2.0 / 7}, {3, 1.0 / 7}}
	for i := range row {
		if row[i].ID != want[i].ID || math.Abs(float64(row[i].P-want[i].P)) > 1e-6 {
			t.Errorf("successor %d is %v, want %v", i, row[i], want[i])
		}
	}
	s.Of(&row, 4, 6)
	sum := float32(0)
	for _, next := range row {
		sum += next.P
	}
	if row[7].ID != 8 || math.Abs(float64(sum)-1) > 1e-6 {
		t.Errorf("%v sums to %v", row, sum)
	}
}

// TestSuccessorsPairs expects a pair's row before the token's, and old pairs to make room.
func TestSuccessorsPairs(t *testing.T) {
	s := NewSuccessors(10, 16)
	s.Learn([]RowResult{result(5, -1, true, 1), result(6, 0, false, 2)}, 4)
	s.Learn([]RowResult{result(5, -1, true, 3)}, 7)
	for _, c := range []struct {
		before, id token.ID
		want       token.ID
	}{{4, 5, 1}, {7, 5, 3}, {8, 5, 3}, {5, 6, 2}, {0, 6, 2}} {
		if got := successors(s, c.before, c.id); !cmp.Equal(got, []token.ID{c.want}) {
			t.Errorf("behind %d %d: %v, want %d", c.before, c.id, got, c.want)
		}
	}
	for before := range token.ID(1000) {
		s.Learn([]RowResult{result(9, -1, true, before%10)}, before)
		if got := successors(s, before, 9); !cmp.Equal(got, []token.ID{before % 10}) {
			t.Fatalf("behind %d 9: %v", before, got)
		}
	}
	if len(s.pairs) != 16 || successors(s, 4, 5)[0] != 3 {
		t.Errorf("%d pairs; the old one still gives %v", len(s.pairs), successors(s, 4, 5))
	}
}

func TestSuccessorsSaved(t *testing.T) {
	s := NewSuccessors(100, 16)
	for id := range token.ID(50) {
		s.Learn([]RowResult{result(id, -1, true, id+1, id+2)}, 4)
	}
	b, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	other := NewSuccessors(100, 0)
	if err := other.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.rows, other.rows) {
		t.Error("what was saved is not what was loaded")
	}
	set := func(at int, v uint32) []byte {
		c := slices.Clone(b)
		binary.LittleEndian.PutUint32(c[at:], v)
		return c
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "half a row": b[:len(b)-3], "another vocabulary": set(0, 99), "an id beyond": set(4, 100),
		"a successor beyond": set(8, 1<<31), "not a number": set(12, math.Float32bits(float32(math.NaN()))),
		"a large probability": set(12, math.Float32bits(2)), "an empty row": set(12, 0), "too large": make([]byte, MaxSaved+savedRow),
	} {
		fresh := NewSuccessors(100, 0)
		if err := fresh.UnmarshalBinary(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
		if !slices.Equal(fresh.rows, make([]SuccessorRow, 100)) {
			t.Errorf("%s: something was taken over", name)
		}
	}
	large := NewSuccessors(1<<15, 0)
	for id := range token.ID(1 << 15) {
		large.Learn([]RowResult{result(id, -1, true, 1)}, 0)
	}
	if b, _ := large.MarshalBinary(); len(b) > MaxSaved || len(b) < MaxSaved-savedRow || large.UnmarshalBinary(b) != nil {
		t.Errorf("%d bytes of a large table", len(b))
	}
}

// FuzzSuccessors reads hostile records: one that is refused changes nothing, one that is taken over gives itself again.
func FuzzSuccessors(f *testing.F) {
	const vocabulary = 5
	good := NewSuccessors(vocabulary, 0)
	good.rows[1][0], good.rows[4][0] = Successor{2, 0.5}, Successor{0, 1}
	record, err := good.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add(record[:len(record)-1])
	f.Add(record[:4])
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewSuccessors(vocabulary, 0)
		if s.UnmarshalBinary(b) != nil {
			for id, row := range s.rows {
				if row != (SuccessorRow{}) {
					t.Errorf("a record that is refused changes token %d", id)
				}
			}
			return
		}
		for id, row := range s.rows {
			for _, next := range row {
				if next.ID < 0 || next.ID >= vocabulary || !(next.P >= 0 && next.P <= 1) {
					t.Errorf("behind token %d: %+v", id, next)
				}
			}
		}
		again, other := NewSuccessors(vocabulary, 0), s
		b, err := other.MarshalBinary()
		if err == nil {
			err = again.UnmarshalBinary(b)
		}
		if err != nil {
			t.Error(err)
		}
	})
}
