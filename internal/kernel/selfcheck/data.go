package selfcheck

import (
	"math"
	"slices"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
)

// Sizes of the checks. They meet every tile and the rest behind its last one, at the least cost of the portable kernels.
const (
	mostRows = 16 // of a product: larger numbers are cut into tiles of these
	outputs  = matmul.Lanes
	floatK   = 21 // inputs of a product over floats
	blocksK  = 3  // blocks of 32 inputs, an odd number
	mostK    = 256
	vector   = 2*32 + 8 + 5 // values of a vector: turns of 32, of 8, and a rest
	logits   = 4*32 + 8 + 5
)

// data are the inputs of all checks: the same in every process.
type data struct {
	random  []byte // bits of all kinds
	floats  []float32
	q       []int8 // activations, rounded as [kernel.Rows.Quantize] rounds
	d       []float32
	sum     []int32
	bias    []int32 // of queries
	room    []byte  // of a check
	scratch matmul.Scratch
}

func newData() *data {
	d := &data{random: make([]byte, 32<<10), floats: make([]float32, mostRows*mostK), room: make([]byte, 64<<10)}
	d.scratch.Expand = true             // the rows are too few to meet those tiles otherwise
	state := uint64(0x9e3779b97f4a7c15) // xorshift64*
	next := func() uint64 {
		state ^= state >> 12
		state ^= state << 25
		state ^= state >> 27
		return state * 0x2545f4914f6cdd1d
	}
	for i := 0; i < len(d.random); i += 8 {
		for j, bits := 0, next(); j < 8; j++ {
			d.random[i+j] = byte(bits >> (8 * j))
		}
	}
	for i := range d.floats { // of both signs, most between 1/16 and 16, some 0 and some tiny
		bits := uint32(d.random[i]) | uint32(d.random[i+len(d.floats)])<<8
		switch v := float32(int32(bits)-1<<15) / (1 << 12); {
		case i%61 == 0:
			d.floats[i] = math.Float32frombits(bits << 31) // +0 or -0
		case i%61 == 1:
			d.floats[i] = v * 0x1p-140
		default:
			d.floats[i] = v
		}
	}
	d.activations()
	return d
}

// activations fills q, d, sum and bias. Some blocks hold the extremes, which meet extreme weights in the products.
func (d *data) activations() {
	blocks := mostRows * mostK / kernel.QBlock
	d.q, d.d = make([]int8, blocks*kernel.QBlock), make([]float32, blocks)
	d.sum, d.bias = make([]int32, blocks), make([]int32, blocks)
	for b := range blocks {
		d.d[b] = float32(1+d.random[b]) / (1 << 12)
		for i := b * kernel.QBlock; i < (b+1)*kernel.QBlock; i++ {
			v := max(int8(d.random[i]), -127)
			switch b % 7 {
			case 0:
				v = 127
			case 1:
				v = -127
			case 2:
				v = int8(127 - 254*(i&1))
			case 3:
				v = int8(127 - 254*(i>>2&1))
			}
			d.q[i] = v
			d.sum[b] += int32(v)
		}
		d.bias[b] = -128 * d.sum[b]
	}
}

// bytes returns n random bytes that the caller may change. They are valid until the next call.
func (d *data) bytes(n int) []byte {
	for i := 0; i < n; {
		i += copy(d.room[i:n], d.random[i%1021:])
	}
	return d.room[:n]
}

// pages returns the bytes of a page's keys and values. Bit 6 of every second byte is 0, so that no float among them, whose upper
// byte it is, is an infinity or larger than 2.
func (d *data) page(f *kernel.CacheFormat, size int) (keys, values []byte) {
	n := f.KeyBytes(size)
	b := d.bytes(n + f.ValueBytes(size))
	for i := 1; i < len(b); i += 2 {
		b[i] &^= 1 << 6
	}
	return b[:n], b[n:]
}

// wild returns n values among which are infinities, NaN and numbers of every magnitude.
func (d *data) wild(n int) []float32 {
	x := append([]float32(nil), d.floats[:n]...)
	for i := 3; i < n; i += 5 {
		x[i] = math.Float32frombits(uint32(d.random[i])<<24 | uint32(d.random[i+1])<<16 | uint32(d.random[i+2]))
	}
	x[n/2], x[n/3], x[n-1] = float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())
	return x
}

// masked returns n values of which some are -Inf.
func (d *data) masked(n int) []float32 {
	x := append([]float32(nil), d.floats[:n]...)
	for i := 1; i < n; i += 11 {
		x[i] = float32(math.Inf(-1))
	}
	return x
}

// grow returns dst with n zeros behind it.
func grow(dst []float32, n int) []float32 {
	y := slices.Grow(dst, n)[:len(dst)+n]
	clear(y[len(dst):])
	return y
}
