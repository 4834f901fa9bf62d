//go:build amd64 && !purego

package matmul

import (
	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

//go:generate go -C ../_asm run ./matmul -set avx2 -out ../matmul/z_tiles_amd64.s -stubs ../matmul/z_tiles_amd64.go -pkg matmul
//go:generate go -C ../_asm run ./matmul -set avx512 -out ../matmul/z_tiles_avx512_amd64.s -stubs ../matmul/z_tiles_avx512_amd64.go -pkg matmul
//go:generate go -C ../_asm run ./matmul -set avx-vnni -out ../matmul/z_tiles_vnni256_amd64.s -stubs ../matmul/z_tiles_vnni256_amd64.go -pkg matmul
//go:generate go -C ../_asm run ./matmul -set avx512-vnni -out ../matmul/z_tiles_vnni512_amd64.s -stubs ../matmul/z_tiles_vnni512_amd64.go -pkg matmul
//go:generate go -C ../_asm run ./matmul -set avx512-amx -out ../matmul/z_tiles_amx_amd64.s -stubs ../matmul/z_tiles_amx_amd64.go -pkg matmul

// tileSets are in the order of preference. Where the first set that is on has no tile for a type or for so few rows, the
// next one that is on serves, and last the portable product.
var tileSets = [...]tileSet{
	{"avx512-amx", &kernel.AMX, tilesAMX},
	{"avx512-vnni", &kernel.VNNI512, tilesVNNI512},
	{"avx512", &kernel.AVX512, tilesAVX512},
	{"avx-vnni", &kernel.VNNI256, tilesVNNI256},
	{"avx2", &kernel.AVX2, tilesAVX2},
}

// tilesAVX2 serve every number of rows: a type without one has the portable product.
var tilesAVX2 = []tile{
	tensor.F32:    {rows: 6, floats: tileF32AVX2, groups: []groupsTile{{4, 1, tileF32x4AVX2}, {2, 3, tileF32x2AVX2}}},
	tensor.F16:    {rows: 6, floats: tileF16AVX2, groups: []groupsTile{{4, 1, tileF16x4AVX2}, {2, 3, tileF16x2AVX2}}},
	tensor.BF16:   {rows: 6, floats: tileBF16AVX2, groups: []groupsTile{{4, 1, tileBF16x4AVX2}, {2, 3, tileBF16x2AVX2}}},
	tensor.Q8_0:   {rows: 6, signed: tileQ8_0AVX2},
	tensor.Q4_0:   {rows: 8, summed: tileQ4_0AVX2},
	tensor.Q4_1:   {rows: 8, summed: tileQ4_1AVX2},
	tensor.Q5_0:   {rows: 8, summed: tileQ5_0AVX2},
	tensor.Q5_1:   {rows: 8, summed: tileQ5_1AVX2},
	tensor.Q2_K:   {rows: 8, signed: tileQ2_KAVX2},
	tensor.Q3_K:   {rows: 8, signed: tileQ3_KAVX2},
	tensor.Q4_K:   {rows: 8, summed: tileQ4_KAVX2},
	tensor.Q5_K:   {rows: 8, summed: tileQ5_KAVX2},
	tensor.Q6_K:   {rows: 8, signed: tileQ6_KAVX2},
	tensor.IQ4_NL: {rows: 6, signed: tileIQ4_NLAVX2},
	tensor.IQ4_XS: {rows: 6, signed: tileIQ4_XSAVX2},
	tensor.MXFP4:  {rows: 8, summed: tileMXFP4AVX2},
}

// tilesVNNI256 have the dot product of bytes in 256 bits. One row of Q2_K takes more work to unpack than it saves.
var tilesVNNI256 = []tile{
	tensor.Q8_0:   {rows: 8, summed: tileQ8_0VNNI256},
	tensor.Q4_0:   {rows: 8, summed: tileQ4_0VNNI256},
	tensor.Q4_1:   {rows: 8, summed: tileQ4_1VNNI256},
	tensor.Q5_0:   {rows: 8, summed: tileQ5_0VNNI256},
	tensor.Q5_1:   {rows: 8, summed: tileQ5_1VNNI256},
	tensor.Q2_K:   {rows: 8, fewest: 2, signed: tileQ2_KVNNI256},
	tensor.Q3_K:   {rows: 8, signed: tileQ3_KVNNI256},
	tensor.Q4_K:   {rows: 8, summed: tileQ4_KVNNI256},
	tensor.Q5_K:   {rows: 8, summed: tileQ5_KVNNI256},
	tensor.Q6_K:   {rows: 8, signed: tileQ6_KVNNI256},
	tensor.IQ4_NL: {rows: 8, summed: tileIQ4_NLVNNI256},
	tensor.IQ4_XS: {rows: 8, summed: tileIQ4_XSVNNI256},
	tensor.MXFP4:  {rows: 8, summed: tileMXFP4VNNI256},
}

// tilesAVX512 have 512 bits. One row of floats only waits for memory, and AVX2 keeps the higher clock.
var tilesAVX512 = []tile{
	tensor.F32:  {rows: 12, fewest: 2, floats: tileF32AVX512, groups: []groupsTile{{4, 3, tileF32x4AVX512}, {2, 12, tileF32x2AVX512}}},
	tensor.F16:  {rows: 12, fewest: 2, floats: tileF16AVX512, groups: []groupsTile{{4, 3, tileF16x4AVX512}, {2, 12, tileF16x2AVX512}}},
	tensor.BF16: {rows: 12, fewest: 2, floats: tileBF16AVX512, groups: []groupsTile{{4, 3, tileBF16x4AVX512}, {2, 12, tileBF16x2AVX512}}},
	tensor.Q8_0: {rows: 12, signed: tileQ8_0AVX512},
	tensor.Q4_0: {rows: 8, summed: tileQ4_0AVX512},
	tensor.Q4_K: {rows: 8, summed: tileQ4_KAVX512},
	tensor.Q6_K: {rows: 8, signed: tileQ6_KAVX512},
}

// tilesVNNI512 have the dot product of bytes in 512 bits. One row of Q3_K does not pay for the multiplication of its weights
// by their scales.
var tilesVNNI512 = []tile{
	tensor.Q8_0:   {rows: 12, summed: tileQ8_0VNNI512},
	tensor.Q4_0:   {rows: 12, summed: tileQ4_0VNNI512},
	tensor.Q4_1:   {rows: 12, summed: tileQ4_1VNNI512},
	tensor.Q5_0:   {rows: 12, summed: tileQ5_0VNNI512},
	tensor.Q5_1:   {rows: 12, summed: tileQ5_1VNNI512},
	tensor.Q2_K:   {rows: 12, summed: tileQ2_KVNNI512},
	tensor.Q3_K:   {rows: 12, fewest: 2, summed: tileQ3_KVNNI512},
	tensor.Q4_K:   {rows: 12, summed: tileQ4_KVNNI512},
	tensor.Q5_K:   {rows: 12, summed: tileQ5_KVNNI512},
	tensor.Q6_K:   {rows: 12, summed: tileQ6_KVNNI512},
	tensor.IQ4_XS: {rows: 12, summed: tileIQ4_XSVNNI512},
	tensor.IQ4_NL: {rows: 12, summed: tileIQ4_NLVNNI512},
	tensor.MXFP4:  {rows: 12, summed: tileMXFP4VNNI512},
}

// tilesAMX multiply matrices of bytes: up to 12 rows a tile of dot products does as well. Weights that are not bytes are
// expanded to bytes for many rows.
var tilesAMX = []tile{
	tensor.Q8_0:   {rows: 16, fewest: 13, signed: tileQ8_0AMX},
	tensor.Q4_0:   {rows: 16, fewest: 13, expansion: toBytes(expandQ4_0AMX), signed: tileBytesAMX},
	tensor.Q5_0:   {rows: 16, fewest: 13, expansion: toBytes(expandQ5_0AMX), signed: tileBytesAMX},
	tensor.Q4_K:   {rows: 16, fewest: 13, expansion: toScaled(expandQ4_KAMX), summed: tileScaledAMX},
	tensor.Q5_K:   {rows: 16, fewest: 13, expansion: toScaled(expandQ5_KAMX), summed: tileScaledAMX},
	tensor.IQ4_NL: {rows: 16, fewest: 13, expansion: toBytes(expandIQ4_NLAMX), signed: tileBytesAMX},
	tensor.MXFP4:  {rows: 16, fewest: 13, expansion: toBytes(expandMXFP4AMX), signed: tileBytesAMX},
}

// What expanded blocks of 32 inputs hold before their bytes: a scale as a float for each output; or a sub-block's integer and
// minimum, d and dmin.
const (
	bytesHead  = 4 * lanes
	scaledHead = 4 * bytesHead
)

// The least rows make up for the expansion.
func toBytes(expand func(to, w *byte, nb int)) expansion {
	return expansion{least: 48, bytes: bytesHead + kernel.QBlock*lanes, expand: expand}
}

func toScaled(expand func(to, w *byte, nb int)) expansion {
	return expansion{least: 64, bytes: scaledHead + kernel.QBlock*lanes, expand: expand}
}
