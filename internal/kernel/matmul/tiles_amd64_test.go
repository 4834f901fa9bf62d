//go:build amd64 && !purego

package matmul

import "testing"

// TestTiles holds what multiply expects of the tables of tiles.
func TestTiles(t *testing.T) {
	for _, f := range formats {
		for name, one := range map[string]*tile{"narrow": f.tiles.narrow, "wide": f.tiles.wide} {
			if one == nil {
				continue
			}
			functions := 0
			for _, set := range []bool{one.floats != nil, one.signed != nil, one.summed != nil} {
				if set {
					functions++
				}
			}
			if functions != 1 || one.floats != nil == f.Quantized {
				t.Errorf("%v: the %s tile has %d functions; it must have 1, for floats if the type is one", f.Type, name, functions)
			}
			if one.rows > maxTileRows {
				t.Errorf("%v: the %s tile has %d rows; it must have at most %d", f.Type, name, one.rows, maxTileRows)
			}
		}
		if wide := f.tiles.wide; wide != nil && wide.fewest > 1 && f.tiles.narrow == nil {
			t.Errorf("%v: nothing multiplies fewer than %d rows", f.Type, wide.fewest)
		}
	}
}
