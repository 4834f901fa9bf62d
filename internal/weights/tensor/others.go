package tensor

// The types that are not weights: other tensors of a file may have them.
const (
	Q8_1 Type = 9
	Q8_K Type = 15
	I8   Type = 24
	I16  Type = 25
	I32  Type = 26
	I64  Type = 27
	F64  Type = 28
)

// others are the types without a codec: those that a reader can find the end of, and those that it knows by name
// only, for messages.
var others = [...]Codec{
	{Type: Q8_1, Name: "Q8_1", Elems: 32, Bytes: 36},
	{Type: Q8_K, Name: "Q8_K", Elems: 256, Bytes: 292},
	{Type: I8, Name: "I8", Elems: 1, Bytes: 1},
	{Type: I16, Name: "I16", Elems: 1, Bytes: 2},
	{Type: I32, Name: "I32", Elems: 1, Bytes: 4},
	{Type: I64, Name: "I64", Elems: 1, Bytes: 8},
	{Type: F64, Name: "F64", Elems: 1, Bytes: 8},
	{Type: 16, Name: "IQ2_XXS"},
	{Type: 17, Name: "IQ2_XS"},
	{Type: 18, Name: "IQ3_XXS"},
	{Type: 19, Name: "IQ1_S"},
	{Type: 21, Name: "IQ3_S"},
	{Type: 22, Name: "IQ2_S"},
	{Type: 29, Name: "IQ1_M"},
	{Type: 34, Name: "TQ1_0"},
	{Type: 35, Name: "TQ2_0"},
	{Type: 40, Name: "NVFP4"},
}
