//go:build (amd64 || arm64) && !purego

package matmul

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

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

// TestVNNI256Encoding: the tiles of avx-vnni run on CPUs without AVX-512, so nothing in them may be encoded for it: no dot
// product by the assembler, no register above 15, no 512 bits, no mask.
func TestVNNI256Encoding(t *testing.T) {
	text, err := os.ReadFile("z_tiles_vnni256_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	wide := regexp.MustCompile(`\b(VPDPBUSD|[XY](1[6-9]|2\d|3[01])|Z\d+|K[0-7]|\w+\.(BCST|Z))\b`)
	dots := 0
	for i, line := range strings.Split(string(text), "\n") {
		code, comment, _ := strings.Cut(line, "//")
		if wide.MatchString(code) {
			t.Errorf("line %d needs AVX-512: %s", i+1, line)
		}
		if strings.HasPrefix(comment, " VEX VPDPBUSD") {
			dots++
		}
	}
	if dots == 0 {
		t.Error("no dot product")
	}
}
