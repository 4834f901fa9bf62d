//go:build amd64 && !purego

package matmul

import "testing"

// TestTiles holds what multiply expects of the tables of tiles.
func TestTiles(t *testing.T) {
	for _, f := range formats {
		for i, one := range f.tiles {
			if one == nil {
				continue
			}
			set := tileSets[i].name
			functions := 0
			for _, is := range []bool{one.floats != nil, one.signed != nil, one.summed != nil} {
				if is {
					functions++
				}
			}
			if functions != 1 || one.floats != nil == f.Quantized {
				t.Errorf("%v: the tile of %s has %d functions; it must have 1, for floats if the type is one", f.Type, set, functions)
			}
			if one.rows > maxTileRows {
				t.Errorf("%v: the tile of %s has %d rows; it must have at most %d", f.Type, set, one.rows, maxTileRows)
			}
		}
		// The last set is on wherever another one is.
		if last := f.tiles[len(tileSets)-1]; f.tiles != (tiles{}) && (last == nil || last.fewest > 1) {
			t.Errorf("%v: no tile of %s multiplies one row", f.Type, tileSets[len(tileSets)-1].name)
		}
	}
}
