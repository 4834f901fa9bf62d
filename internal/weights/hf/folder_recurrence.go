package hf

import (
	"encoding/binary"
	"math"
	"slices"

	"grove/internal/weights/gguf"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// Recurrence is the settings of Mamba's blocks.
type Recurrence struct {
	Inner, Taps, State int
	Rank               int // Mamba 1: of the matrix that makes the steps; Mamba 2: heads
	Groups             int // Mamba 2; 0: Mamba 1
}

// Limits on recurrences.
const (
	maxTaps          = 1 << 6
	maxState         = 1 << 12
	folderMaxHeads   = 1 << 12
	folderMaxWidth   = 1 << 20
	folderMaxContext = 1 << 24
	maxExperts       = 1 << 12
)

// Describe adds the settings of the blocks.
func (r Recurrence) Describe(b *FolderBuilder) {
	b.SetCount(".ssm.inner_size", r.Inner)
	b.SetCount(".ssm.conv_kernel", r.Taps)
	b.SetCount(".ssm.state_size", r.State)
	b.SetCount(".ssm.time_step_rank", r.Rank)
	if r.Groups > 0 {
		b.SetCount(".ssm.group_count", r.Groups)
	}
}

// Mamba2Settings reads the settings of Mamba 2's blocks, whose keys begin with prefix or have names of their own, and refuses
// those that GGUF cannot tell.
func (b *FolderBuilder) Mamba2Settings(inner int, keys map[string]string) Recurrence {
	c := b.Config
	r := Recurrence{
		Inner: inner, Taps: c.CountOr(keys["taps"], 4, 2, maxTaps), State: c.CountOr(keys["state"], 128, 1, maxState),
		Rank: c.Count(keys["heads"], 1, folderMaxHeads), Groups: c.CountOr(keys["groups"], 1, 1, folderMaxHeads),
	}
	size := inner / r.Rank
	if c.Word(keys["size"]) != "auto" {
		size = c.CountOr(keys["size"], size, 1, folderMaxWidth)
	}
	if b.OK() && (r.Rank*size != inner || r.Rank%r.Groups != 0) {
		c.Fail("%s is %d and %s %d; %d heads of %d values must make %d, and the groups divide the heads", keys["heads"], r.Rank, keys["groups"], r.Groups, r.Rank, size, inner)
	}
	b.TimeLimit()
	return r
}

// Word returns the text of a key that may have a number instead; then it is empty.
func (c *FolderConfig) Word(key string) string {
	if v := c.Values[key]; len(v) > 0 && v[0] == '"' {
		return c.TextOr(key, "")
	}
	return ""
}

// TimeLimit refuses limits on steps: files cannot tell of them.
func (b *FolderBuilder) TimeLimit() {
	var limit []float64
	c := b.Config
	if c.Value("time_step_limit", &limit, "two numbers") && (len(limit) != 2 || limit[0] > 0 || limit[1] < math.MaxFloat32) {
		c.Fail("time_step_limit is %.40s; only [0, Infinity] is supported", c.Values["time_step_limit"])
	}
}

// SetLayers replaces a number by one for each layer.
func (b *FolderBuilder) SetLayers(key string, counts []int) {
	of := make([]uint32, len(counts))
	for i, n := range counts {
		of[i] = uint32(n)
	}
	b.Metadata = slices.DeleteFunc(b.Metadata, func(kv gguf.KV) bool { return kv.Key == b.Arch+key })
	b.SetValue(key, gguf.ArrayOf(of))
}

// Values adds a tensor in float32 under another shape, of as many values, each changed by change.
func (b *FolderBuilder) Values(to, from string, source, shape []int, change func(i int, x float32) float32) {
	t, ok := b.Find(from, source...)
	if !ok {
		return
	}
	b.noteRows(to, from, source, shape, nil)
	b.Add(to, tensor.F32, shape, func(dst []byte) {
		ToF32(dst, t, 0)
		for i := 0; change != nil && i < len(dst); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(dst[i:]))
			binary.LittleEndian.PutUint32(dst[i:], math.Float32bits(change(i/4, x)))
		}
	})
}

// Scaled adds a tensor whose rows are multiplied by the numbers that factor gives, in the folder's type.
func (b *FolderBuilder) Scaled(to, from string, factor func(row int) float32, shape ...int) {
	t, ok := b.Find(from, shape...)
	if !ok {
		return
	}
	if len(shape) == 2 {
		b.Note(Source{To: to, From: from, Rows: shape[0], Shape: shape, Factor: factor})
	}
	typ := TypeOf(to, t)
	b.Add(to, typ, shape, func(dst []byte) {
		row := 1
		if len(shape) == 2 {
			row = shape[1]
		}
		n := shape[0] * row
		size := len(t.Data) / n
		values := make([]float32, row)
		for r := range shape[0] {
			if err := tensor.Unpack(safetensors.FloatTypes[t.Type], values, t.Data[r*row*size:(r+1)*row*size]); err != nil {
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

// Halves adds the two halves of the rows of a matrix, or of each matrix of a stack of n, as tensors of their own.
func (b *FolderBuilder) Halves(first, second, from string, n, rows, in int) {
	source, shape := []int{2 * rows, in}, []int{rows, in}
	if n > 0 {
		source, shape = append([]int{n}, source...), append([]int{n}, shape...)
	}
	t, ok := b.Find(from, source...)
	if !ok {
		return
	}
	for half, to := range []string{first, second} {
		b.noteRows(to, from, source, shape, func(i int) int { return half*rows + i })
		b.Add(to, safetensors.FloatTypes[t.Type], shape, func(dst []byte) {
			size := len(t.Data) / max(1, n) / 2
			for e := range max(1, n) {
				copy(dst[e*size:(e+1)*size], t.Data[(2*e+half)*size:])
			}
		})
	}
}

// ScaledBoth adds a weight whose products are multiplied by w, and its bias, multiplied by bias.
func (b *FolderBuilder) ScaledBoth(to, from string, w, bias float32, out, in int) {
	b.Scaled(to+".weight", from+".weight", func(int) float32 { return w }, out, in)
	if b.Has(from + ".bias") {
		b.Scaled(to+".bias", from+".bias", func(int) float32 { return bias }, out)
	}
}

// Decay turns the logarithm of a rate, as a folder has it, into the rate: -exp(x), rounded once, with the same bits on every machine.
func Decay(_ int, x float32) float32 {
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

// Mamba1 adds a block of Mamba 1, whose tensors in the folder begin with root.
func (b *FolderBuilder) Mamba1(r Recurrence, width int, to func(string) string, root string) {
	b.Both(to("ssm_in"), root+"in_proj", 2*r.Inner, width)
	b.Conv1d(r, r.Inner, to, root)
	b.Copy(to("ssm_x.weight"), root+"x_proj.weight", r.Rank+2*r.State, r.Inner)
	b.Values(to("ssm_dt.weight"), root+"dt_proj.weight", []int{r.Inner, r.Rank}, []int{r.Inner, r.Rank}, nil)
	b.Copy(to("ssm_dt.bias"), root+"dt_proj.bias", r.Inner)
	b.Values(to("ssm_a"), root+"A_log", []int{r.Inner, r.State}, []int{r.Inner, r.State}, Decay)
	b.Copy(to("ssm_d"), root+"D", r.Inner)
	b.Both(to("ssm_out"), root+"out_proj", width, r.Inner)
}

// Conv1d adds a convolution of n channels; the folder has one channel of inputs for each.
func (b *FolderBuilder) Conv1d(r Recurrence, n int, to func(string) string, root string) {
	b.Values(to("ssm_conv1d.weight"), root+"conv1d.weight", []int{n, 1, r.Taps}, []int{n, r.Taps}, nil)
	b.CopyIf(to("ssm_conv1d.bias"), root+"conv1d.bias", n)
}

// Mamba2 adds a block of Mamba 2, whose tensors in the folder begin with root. in multiplies the products of the rows of its
// First matrix, out those of its last.
func (b *FolderBuilder) Mamba2(r Recurrence, width int, to func(string) string, root string, in func(row int) float32, out float32) {
	conv := r.Inner + 2*r.Groups*r.State
	first := root + "in_proj"
	if in == nil {
		b.Both(to("ssm_in"), first, r.Inner+conv+r.Rank, width)
	} else {
		b.Scaled(to("ssm_in.weight"), first+".weight", in, r.Inner+conv+r.Rank, width)
	}
	b.Conv1d(r, conv, to, root)
	b.Copy(to("ssm_dt.bias"), root+"dt_bias", r.Rank)
	b.Values(to("ssm_a"), root+"A_log", []int{r.Rank}, []int{r.Rank, 1}, Decay)
	b.Values(to("ssm_d"), root+"D", []int{r.Rank}, []int{r.Rank, 1}, nil)
	if b.Has(root + "norm.weight") {
		b.Values(to("ssm_norm.weight"), root+"norm.weight", []int{r.Inner}, []int{r.Groups, r.Inner / r.Groups}, nil)
	}
	if out == 1 {
		b.Both(to("ssm_out"), root+"out_proj", width, r.Inner)
		return
	}
	b.ScaledBoth(to("ssm_out"), root+"out_proj", out, out, width, r.Inner)
}
