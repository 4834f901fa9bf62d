package hf

import (
	"encoding/binary"
	"math"
	"slices"

	"grove/weights/gguf"
	"grove/weights/tensor"
)

// recurrence is the settings of Mamba's blocks.
type recurrence struct {
	inner, taps, state int
	rank               int // Mamba 1: of the matrix that makes the steps; Mamba 2: heads
	groups             int // Mamba 2; 0: Mamba 1
}

// Limits on recurrences.
const (
	maxTaps  = 1 << 6
	maxState = 1 << 12
)

// describe adds the settings of the blocks.
func (r recurrence) describe(b *builder) {
	b.setCount(".ssm.inner_size", r.inner)
	b.setCount(".ssm.conv_kernel", r.taps)
	b.setCount(".ssm.state_size", r.state)
	b.setCount(".ssm.time_step_rank", r.rank)
	if r.groups > 0 {
		b.setCount(".ssm.group_count", r.groups)
	}
}

// mamba2Settings reads the settings of Mamba 2's blocks, whose keys begin with prefix or have names of their own, and refuses
// those that GGUF cannot tell.
func (b *builder) mamba2Settings(inner int, keys map[string]string) recurrence {
	c := b.config
	r := recurrence{
		inner: inner, taps: c.countOr(keys["taps"], 4, 2, maxTaps), state: c.countOr(keys["state"], 128, 1, maxState),
		rank: c.count(keys["heads"], 1, maxHeads), groups: c.countOr(keys["groups"], 1, 1, maxHeads),
	}
	size := inner / r.rank
	if c.word(keys["size"]) != "auto" {
		size = c.countOr(keys["size"], size, 1, maxWidth)
	}
	if b.ok() && (r.rank*size != inner || r.rank%r.groups != 0) {
		c.fail("%s is %d and %s %d; %d heads of %d values must make %d, and the groups divide the heads", keys["heads"], r.rank, keys["groups"], r.groups, r.rank, size, inner)
	}
	b.timeLimit()
	return r
}

// word returns the text of a key that may have a number instead; then it is empty.
func (c *config) word(key string) string {
	if v := c.values[key]; len(v) > 0 && v[0] == '"' {
		return c.textOr(key, "")
	}
	return ""
}

// timeLimit refuses limits on steps: files cannot tell of them.
func (b *builder) timeLimit() {
	var limit []float64
	c := b.config
	if c.value("time_step_limit", &limit, "two numbers") && (len(limit) != 2 || limit[0] > 0 || limit[1] < math.MaxFloat32) {
		c.fail("time_step_limit is %.40s; only [0, Infinity] is supported", c.values["time_step_limit"])
	}
}

// setLayers replaces a number by one for each layer.
func (b *builder) setLayers(key string, counts []int) {
	of := make([]uint32, len(counts))
	for i, n := range counts {
		of[i] = uint32(n)
	}
	b.metadata = slices.DeleteFunc(b.metadata, func(kv gguf.KV) bool { return kv.Key == b.arch+key })
	b.setValue(key, gguf.ArrayOf(of))
}

// values adds a tensor in float32 under another shape, of as many values, each changed by change.
func (b *builder) values(to, from string, source, shape []int, change func(i int, x float32) float32) {
	t, ok := b.find(from, source...)
	if !ok {
		return
	}
	b.add(to, tensor.F32, shape, func(dst []byte) {
		toF32(dst, t, 0)
		for i := 0; change != nil && i < len(dst); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(dst[i:]))
			binary.LittleEndian.PutUint32(dst[i:], math.Float32bits(change(i/4, x)))
		}
	})
}

// scaled adds a tensor whose rows are multiplied by the numbers that factor gives, in the folder's type.
func (b *builder) scaled(to, from string, factor func(row int) float32, shape ...int) {
	t, ok := b.find(from, shape...)
	if !ok {
		return
	}
	typ := typeOf(to, t)
	b.add(to, typ, shape, func(dst []byte) {
		row := 1
		if len(shape) == 2 {
			row = shape[1]
		}
		n := shape[0] * row
		size := len(t.Data) / n
		values := make([]float32, row)
		for r := range shape[0] {
			if err := tensor.Unpack(floatTypes[t.Type], values, t.Data[r*row*size:(r+1)*row*size]); err != nil {
				panic(err) // a float type of as many elements
			}
			k := factor(r)
			for i := range values {
				values[i] = float32(values[i] * k)
			}
			out := len(dst) / n
			if err := tensor.Pack(typ, dst[r*row*out:(r+1)*row*out], values); err != nil {
				panic(err)
			}
		}
	})
}

// halves adds the two halves of the rows of a matrix, or of each matrix of a stack of n, as tensors of their own.
func (b *builder) halves(first, second, from string, n, rows, in int) {
	source, shape := []int{2 * rows, in}, []int{rows, in}
	if n > 0 {
		source, shape = append([]int{n}, source...), append([]int{n}, shape...)
	}
	t, ok := b.find(from, source...)
	if !ok {
		return
	}
	for half, to := range []string{first, second} {
		b.add(to, floatTypes[t.Type], shape, func(dst []byte) {
			size := len(t.Data) / max(1, n) / 2
			for e := range max(1, n) {
				copy(dst[e*size:(e+1)*size], t.Data[(2*e+half)*size:])
			}
		})
	}
}

// scaledBoth adds a weight whose products are multiplied by w, and its bias, multiplied by bias.
func (b *builder) scaledBoth(to, from string, w, bias float32, out, in int) {
	b.scaled(to+".weight", from+".weight", func(int) float32 { return w }, out, in)
	if b.has(from + ".bias") {
		b.scaled(to+".bias", from+".bias", func(int) float32 { return bias }, out)
	}
}

// decay is what a folder has as the logarithm of a rate: -exp(x), rounded once, with the same bits on every machine.
func decay(_ int, x float32) float32 {
	const ln2high, ln2low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	if !(x > -80 && x < 80) {
		return -float32(math.Exp(float64(x))) // 0, an infinity or NaN, or what a recurrence cannot tell from these
	}
	k := math.Floor(float64(float64(x)/math.Ln2) + 0.5)
	r := float64(float64(x)-float64(k*ln2high)) - float64(k*ln2low)
	sum := 1.0
	for n := 14; n > 0; n-- {
		sum = 1 + float64(float64(r/float64(n))*sum)
	}
	return -float32(math.Ldexp(sum, int(k)))
}

// mamba1 adds a block of Mamba 1, whose tensors in the folder begin with root.
func (b *builder) mamba1(r recurrence, width int, to func(string) string, root string) {
	b.both(to("ssm_in"), root+"in_proj", 2*r.inner, width)
	b.conv1d(r, r.inner, to, root)
	b.copy(to("ssm_x.weight"), root+"x_proj.weight", r.rank+2*r.state, r.inner)
	b.values(to("ssm_dt.weight"), root+"dt_proj.weight", []int{r.inner, r.rank}, []int{r.inner, r.rank}, nil)
	b.copy(to("ssm_dt.bias"), root+"dt_proj.bias", r.inner)
	b.values(to("ssm_a"), root+"A_log", []int{r.inner, r.state}, []int{r.inner, r.state}, decay)
	b.copy(to("ssm_d"), root+"D", r.inner)
	b.both(to("ssm_out"), root+"out_proj", width, r.inner)
}

// conv1d adds a convolution of n channels; the folder has one channel of inputs for each.
func (b *builder) conv1d(r recurrence, n int, to func(string) string, root string) {
	b.values(to("ssm_conv1d.weight"), root+"conv1d.weight", []int{n, 1, r.taps}, []int{n, r.taps}, nil)
	b.copyIf(to("ssm_conv1d.bias"), root+"conv1d.bias", n)
}

// mamba2 adds a block of Mamba 2, whose tensors in the folder begin with root. in multiplies the products of the rows of its
// first matrix, out those of its last.
func (b *builder) mamba2(r recurrence, width int, to func(string) string, root string, in func(row int) float32, out float32) {
	conv := r.inner + 2*r.groups*r.state
	first := root + "in_proj"
	if in == nil {
		b.both(to("ssm_in"), first, r.inner+conv+r.rank, width)
	} else {
		b.scaled(to("ssm_in.weight"), first+".weight", in, r.inner+conv+r.rank, width)
	}
	b.conv1d(r, conv, to, root)
	b.copy(to("ssm_dt.bias"), root+"dt_bias", r.rank)
	b.values(to("ssm_a"), root+"A_log", []int{r.rank}, []int{r.rank, 1}, decay)
	b.values(to("ssm_d"), root+"D", []int{r.rank}, []int{r.rank, 1}, nil)
	if b.has(root + "norm.weight") {
		b.values(to("ssm_norm.weight"), root+"norm.weight", []int{r.inner}, []int{r.groups, r.inner / r.groups}, nil)
	}
	if out == 1 {
		b.both(to("ssm_out"), root+"out_proj", width, r.inner)
		return
	}
	b.scaledBoth(to("ssm_out"), root+"out_proj", out, out, width, r.inner)
}
