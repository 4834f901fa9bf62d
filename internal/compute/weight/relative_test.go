package weight

import (
	"math"
	"testing"
)

// bucketOf is T5's function of a distance as the paper's code has it, in float64. A whole quotient may come out a little
// less, so the bucket begins a little early.
func bucketOf(relative, buckets, reach int, both bool) int {
	at := 0
	if both {
		buckets /= 2
		if relative > 0 {
			at = buckets
		}
		relative = max(relative, -relative)
	} else {
		relative = max(0, -relative)
	}
	exact := buckets / 2
	if relative < exact {
		return at + relative
	}
	far := exact + int(math.Log(float64(relative)/float64(exact))/math.Log(float64(reach)/float64(exact))*float64(buckets-exact)+1e-9)
	return at + min(far, buckets-1)
}

// TestRelativeBuckets compares with the published function, for several numbers of buckets.
func TestRelativeBuckets(t *testing.T) {
	const heads = 3
	for _, c := range []struct {
		buckets, reach int
		both           bool
	}{{32, 128, true}, {32, 128, false}, {8, 20, true}, {7, 100, false}, {2, 3, false}, {64, 1000, true}} {
		table := Vector{F: make([]float32, c.buckets*heads)}
		for i := range table.F {
			table.F[i] = float32(i)
		}
		r, err := NewRelative(table, heads, c.reach, c.both)
		if err != nil {
			t.Fatal(err)
		}
		for d := -2000; d < 2000; d += 1 + max(d, -d)/300 {
			for i, v := range r.Of(1, d) {
				if want := float32(bucketOf(d+i, c.buckets, c.reach, c.both)*heads + 1); v != want {
					t.Fatalf("%+v: distance %d has the value %v, want %v", c, d+i, v, want)
				}
			}
		}
	}
	for _, c := range []struct {
		values, heads, reach int
		both                 bool
	}{{32, 3, 128, false}, {9, 3, 128, true}, {3, 3, 128, false}, {32, 1, 16, false}, {32, 1, 1 << 20, false}, {32, 0, 128, false}} {
		if r, err := NewRelative(Vector{F: make([]float32, c.values)}, c.heads, c.reach, c.both); err == nil {
			t.Errorf("%+v: made %+v", c, r)
		}
	}
}
