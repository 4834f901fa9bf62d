//go:build arm64 && !purego

package matmul

import (
	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// tileSets are in the order of preference.
var tileSets = [...]tileSet{
	{"i8mm", &kernel.I8MM, tilesI8MM},
	{"neon", &kernel.NEON, tilesNEON},
}

// tilesNEON serve every number of rows and every type.
var tilesNEON = []tile{
	tensor.F32:    {rows: 6, floats: tileF32NEON},
	tensor.F16:    {rows: 6, floats: tileF16NEON},
	tensor.BF16:   {rows: 6, floats: tileBF16NEON},
	tensor.Q8_0:   {rows: 8, signed: tileQ8_0NEON},
	tensor.Q4_0:   {rows: 8, summed: tileQ4_0NEON},
	tensor.Q4_1:   {rows: 8, summed: tileQ4_1NEON},
	tensor.Q5_0:   {rows: 8, summed: tileQ5_0NEON},
	tensor.Q5_1:   {rows: 8, summed: tileQ5_1NEON},
	tensor.Q2_K:   {rows: 8, signed: tileQ2_KNEON},
	tensor.Q3_K:   {rows: 8, signed: tileQ3_KNEON},
	tensor.Q4_K:   {rows: 8, summed: tileQ4_KNEON},
	tensor.Q5_K:   {rows: 8, summed: tileQ5_KNEON},
	tensor.Q6_K:   {rows: 8, signed: tileQ6_KNEON},
	tensor.IQ4_NL: {rows: 8, signed: tileIQ4_NLNEON},
	tensor.IQ4_XS: {rows: 8, signed: tileIQ4_XSNEON},
	tensor.MXFP4:  {rows: 8, signed: tileMXFP4NEON},
}

// tilesI8MM multiply pairs of rows. Fewer rows take fewer instructions by dot products, as does Q2_K.
var tilesI8MM = []tile{
	tensor.Q8_0:   {rows: 8, fewest: 6, signed: tileQ8_0I8MM},
	tensor.Q4_0:   {rows: 8, fewest: 6, summed: tileQ4_0I8MM},
	tensor.Q4_1:   {rows: 8, fewest: 8, summed: tileQ4_1I8MM},
	tensor.Q5_0:   {rows: 8, fewest: 8, summed: tileQ5_0I8MM},
	tensor.Q5_1:   {rows: 8, fewest: 8, summed: tileQ5_1I8MM},
	tensor.Q3_K:   {rows: 8, fewest: 8, signed: tileQ3_KI8MM},
	tensor.Q4_K:   {rows: 8, fewest: 8, summed: tileQ4_KI8MM},
	tensor.Q5_K:   {rows: 8, fewest: 8, summed: tileQ5_KI8MM},
	tensor.Q6_K:   {rows: 8, fewest: 8, signed: tileQ6_KI8MM},
	tensor.IQ4_NL: {rows: 8, fewest: 8, signed: tileIQ4_NLI8MM},
	tensor.IQ4_XS: {rows: 8, fewest: 8, signed: tileIQ4_XSI8MM},
	tensor.MXFP4:  {rows: 8, fewest: 8, signed: tileMXFP4I8MM},
}
