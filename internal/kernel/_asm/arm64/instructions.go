package arm64

// Integers, and logic of bits.
var (
	ADD   = three("add", 0x0e208400, integers)
	SUB   = three("sub", 0x2e208400, integers)
	MUL   = three("mul", 0x0e209c00, upTo32)
	MLA   = three("mla", 0x0e209400, upTo32)
	MLS   = three("mls", 0x2e209400, upTo32)
	CMGT  = three("cmgt", 0x0e203400, integers)
	CMGE  = three("cmge", 0x0e203c00, integers)
	CMEQ  = three("cmeq", 0x2e208c00, integers)
	CMHI  = three("cmhi", 0x2e203400, integers)
	CMHS  = three("cmhs", 0x2e203c00, integers)
	CMTST = three("cmtst", 0x0e208c00, integers)
	SMAX  = three("smax", 0x0e206400, upTo32)
	SMIN  = three("smin", 0x0e206c00, upTo32)
	UMAX  = three("umax", 0x2e206400, upTo32)
	UMIN  = three("umin", 0x2e206c00, upTo32)
	ADDP  = three("addp", 0x0e20bc00, integers)
	SMAXP = three("smaxp", 0x0e20a400, upTo32)
	UMAXP = three("umaxp", 0x2e20a400, upTo32)
	SSHL  = three("sshl", 0x0e204400, integers)
	USHL  = three("ushl", 0x2e204400, integers)

	AND = logical("and", 0x0e201c00)
	BIC = logical("bic", 0x0e601c00)
	ORR = logical("orr", 0x0ea01c00)
	ORN = logical("orn", 0x0ee01c00)
	EOR = logical("eor", 0x2e201c00)
	BSL = logical("bsl", 0x2e601c00) // d = n where d has ones, m elsewhere
	BIT = logical("bit", 0x2ea01c00) // d = n where m has ones
	BIF = logical("bif", 0x2ee01c00) // d = n where m has zeros

	NEG   = two("neg", 0x2e20b800, integers, "")
	ABS   = two("abs", 0x0e20b800, integers, "")
	CMGT0 = two("cmgt", 0x0e208800, integers, ", #0")
	CMGE0 = two("cmge", 0x2e208800, integers, ", #0")
	CMEQ0 = two("cmeq", 0x0e209800, integers, ", #0")
	CMLE0 = two("cmle", 0x2e209800, integers, ", #0")
	CMLT0 = two("cmlt", 0x0e20a800, integers, ", #0")
	NOT   = two("not", 0x2e205800, bytesOnly, "")
	CNT   = two("cnt", 0x0e205800, bytesOnly, "")
	REV64 = two("rev64", 0x0e200800, upTo32, "")

	SHL  = shift("shl", 0x0f005400, false)
	SLI  = shift("sli", 0x2f005400, false)
	SSHR = shift("sshr", 0x0f000400, true)
	USHR = shift("ushr", 0x2f000400, true)
	SSRA = shift("ssra", 0x0f001400, true)
	USRA = shift("usra", 0x2f001400, true)
	SRI  = shift("sri", 0x2f004400, true)

	SSHLL  = shiftWiden("sshll", 0x0f00a400)
	USHLL  = shiftWiden("ushll", 0x2f00a400)
	SHRN   = shiftNarrow("shrn", 0x0f008400)
	SQSHRN = shiftNarrow("sqshrn", 0x0f009400)

	XTN    = narrow("xtn", 0x0e212800)
	SQXTN  = narrow("sqxtn", 0x0e214800)
	UQXTN  = narrow("uqxtn", 0x2e214800)
	SQXTUN = narrow("sqxtun", 0x2e212800)
	SHLL   = widen("shll", 0x2e213800, true) // by the bits of a lane of the source

	SADDLP = pairwise("saddlp", 0x0e202800)
	UADDLP = pairwise("uaddlp", 0x2e202800)
	SADALP = pairwise("sadalp", 0x0e206800)
	UADALP = pairwise("uadalp", 0x2e206800)

	SMULL = widenThree("smull", 0x0e20c000)
	UMULL = widenThree("umull", 0x2e20c000)
	SMLAL = widenThree("smlal", 0x0e208000)
	UMLAL = widenThree("umlal", 0x2e208000)
	SMLSL = widenThree("smlsl", 0x0e20a000)
	SADDL = widenThree("saddl", 0x0e200000)
	SADDW = wide("saddw", 0x0e201000)
	UADDW = wide("uaddw", 0x2e201000)

	ADDV   = across("addv", 0x0e31b800, false)
	SMAXV  = across("smaxv", 0x0e30a800, false)
	SMINV  = across("sminv", 0x0e31a800, false)
	UMAXV  = across("umaxv", 0x2e30a800, false)
	UMINV  = across("uminv", 0x2e31a800, false)
	SADDLV = across("saddlv", 0x0e303800, true)
	UADDLV = across("uaddlv", 0x2e303800, true)

	MULElem = elem("mul", 0x0f808000, []Arr{S2, S4})
	MLAElem = elem("mla", 0x2f800000, []Arr{S2, S4})
)

// Dot products of bytes: of 4 (FEAT_DotProd), and products of 2x8 by 8x2 matrices (FEAT_I8MM, as is all with US).
var (
	SDOT      = dot("sdot", 0x4e809400)
	UDOT      = dot("udot", 0x6e809400)
	USDOT     = dot("usdot", 0x4e809c00)
	SMMLA     = dot("smmla", 0x4e80a400)
	UMMLA     = dot("ummla", 0x6e80a400)
	USMMLA    = dot("usmmla", 0x4e80ac00)
	SDOTElem  = dotElem("sdot", 0x4f80e000)
	UDOTElem  = dotElem("udot", 0x6f80e000)
	USDOTElem = dotElem("usdot", 0x4f80f000)
)

// Order of lanes.
var (
	ZIP1 = three("zip1", 0x0e003800, integers)
	ZIP2 = three("zip2", 0x0e007800, integers)
	UZP1 = three("uzp1", 0x0e001800, integers)
	UZP2 = three("uzp2", 0x0e005800, integers)
	TRN1 = three("trn1", 0x0e002800, integers)
	TRN2 = three("trn2", 0x0e006800, integers)

	TBL = table("tbl", 0x4e000000) // zero where no byte of the table has the number
	TBX = table("tbx", 0x4e001000) // d unchanged there
)

// Floats.
var (
	FADD    = floatThree("fadd", 0x0e20d400)
	FSUB    = floatThree("fsub", 0x0ea0d400)
	FMUL    = floatThree("fmul", 0x2e20dc00)
	FDIV    = floatThree("fdiv", 0x2e20fc00)
	FMLA    = floatThree("fmla", 0x0e20cc00) // d = n*m + d, rounded once
	FMLS    = floatThree("fmls", 0x0ea0cc00) // d = d - n*m, rounded once
	FMAX    = floatThree("fmax", 0x0e20f400) // a NaN where one is
	FMIN    = floatThree("fmin", 0x0ea0f400)
	FMAXNM  = floatThree("fmaxnm", 0x0e20c400) // the number where the other is a quiet NaN
	FMINNM  = floatThree("fminnm", 0x0ea0c400)
	FCMEQ   = floatThree("fcmeq", 0x0e20e400)
	FCMGE   = floatThree("fcmge", 0x2e20e400)
	FCMGT   = floatThree("fcmgt", 0x2ea0e400)
	FACGE   = floatThree("facge", 0x2e20ec00)
	FACGT   = floatThree("facgt", 0x2ea0ec00)
	FADDP   = floatThree("faddp", 0x2e20d400)
	FMAXP   = floatThree("fmaxp", 0x2e20f400)
	FMINP   = floatThree("fminp", 0x2ea0f400)
	FMAXNMP = floatThree("fmaxnmp", 0x2e20c400)
	FMINNMP = floatThree("fminnmp", 0x2ea0c400)

	FABS   = floatTwo("fabs", 0x0ea0f800, "")
	FNEG   = floatTwo("fneg", 0x2ea0f800, "")
	FSQRT  = floatTwo("fsqrt", 0x2ea1f800, "")
	FRINTN = floatTwo("frintn", 0x0e218800, "") // to nearest, ties to even
	FRINTM = floatTwo("frintm", 0x0e219800, "") // down
	FRINTP = floatTwo("frintp", 0x0ea18800, "") // up
	FRINTZ = floatTwo("frintz", 0x0ea19800, "")
	FCVTNS = floatTwo("fcvtns", 0x0e21a800, "")
	FCVTMS = floatTwo("fcvtms", 0x0e21b800, "")
	FCVTZS = floatTwo("fcvtzs", 0x0ea1b800, "")
	FCVTNU = floatTwo("fcvtnu", 0x2e21a800, "")
	FCVTZU = floatTwo("fcvtzu", 0x2ea1b800, "")
	SCVTF  = floatTwo("scvtf", 0x0e21d800, "")
	UCVTF  = floatTwo("ucvtf", 0x2e21d800, "")
	FCMGT0 = floatTwo("fcmgt", 0x0ea0c800, ", #0.0")
	FCMGE0 = floatTwo("fcmge", 0x2ea0c800, ", #0.0")
	FCMEQ0 = floatTwo("fcmeq", 0x0ea0d800, ", #0.0")
	FCMLE0 = floatTwo("fcmle", 0x2ea0d800, ", #0.0")
	FCMLT0 = floatTwo("fcmlt", 0x0ea0e800, ", #0.0")

	FCVTL = convert("fcvtl", 0x0e217800, true)
	FCVTN = convert("fcvtn", 0x0e216800, false)

	FMAXV   = acrossFloat("fmaxv", 0x6e30f800)
	FMINV   = acrossFloat("fminv", 0x6eb0f800)
	FMAXNMV = acrossFloat("fmaxnmv", 0x6e30c800)
	FMINNMV = acrossFloat("fminnmv", 0x6eb0c800)

	FMLAElem = elem("fmla", 0x0f801000, floats)
	FMLSElem = elem("fmls", 0x0f805000, floats)
	FMULElem = elem("fmul", 0x0f809000, floats)
)
