package hf

import (
	"encoding/binary"
	"math"

	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

const maxDeltaHeads = 1 << 12

// columnsOf adds a matrix [rows, in] whose column j is column from(j) of the folder's.
func (b *FolderBuilder) columnsOf(to, name string, rows, in int, from func(column int) int) {
	t, ok := b.Find(name, rows, in)
	if !ok {
		return
	}
	b.Note(Source{To: to, From: name, Rows: rows, Shape: []int{rows, in}, Column: from})
	b.Add(to, safetensors.FloatTypes[t.Type], []int{rows, in}, func(dst []byte) {
		size := len(dst) / (rows * in)
		for i := range rows {
			for j := range in {
				copy(dst[(i*in+j)*size:(i*in+j+1)*size], t.Data[(i*in+from(j))*size:])
			}
		}
	})
}

// Delta is the settings of gated delta nets.
type Delta struct {
	width, keys, heads, size, taps int
	tiled                          bool // GGUF has the heads of values by turns of the heads of keys
}

// group returns how many heads of values read a head of keys.
func (d Delta) group() int { return d.heads / max(1, d.keys) }

// head returns the head of the folder that is head h of GGUF: folders have the heads of values that read a head of keys side by side.
func (d Delta) head(h int) int {
	if !d.tiled {
		return h
	}
	return h%d.keys*d.group() + h/d.keys
}

// value returns the place of a value of all heads in the
func (d Delta) value(i int) int { return d.head(i/d.size)*d.size + i%d.size }

// DeltaNet reads the settings of gated delta nets of a width and adds them. With tiled, GGUF has the heads of values by turns of the
// heads of keys.
func (b *FolderBuilder) DeltaNet(width int, tiled bool) Delta {
	c := b.Config
	d := Delta{
		width: width, keys: c.Count("linear_num_key_heads", 1, maxDeltaHeads), heads: c.Count("linear_num_value_heads", 1, maxDeltaHeads),
		size: c.Count("linear_key_head_dim", 1, maxDeltaHeads), taps: c.CountOr("linear_conv_kernel_dim", 4, 2, 64), tiled: tiled,
	}
	if n := c.CountOr("linear_value_head_dim", d.size, 1, maxDeltaHeads); n != d.size {
		c.Fail("linear_value_head_dim is %d; it must be linear_key_head_dim (%d)", n, d.size)
	}
	if b.OK() && d.heads%d.keys != 0 {
		c.Fail("linear_num_key_heads is %d; it must divide linear_num_value_heads (%d)", d.keys, d.heads)
	}
	b.SetCount(".ssm.conv_kernel", d.taps)
	b.SetCount(".ssm.state_size", d.size)
	b.SetCount(".ssm.group_count", d.keys)
	b.SetCount(".ssm.time_step_rank", d.heads)
	b.SetCount(".ssm.inner_size", d.heads*d.size)
	return d
}

// Layer adds a delta net, without its first products.
func (d Delta) Layer(b *FolderBuilder, to, from func(string) string) {
	keys, inner := 2*d.keys*d.size, d.heads*d.size
	b.GatheredAs(to("ssm_conv1d.weight"), from("linear_attn.conv1d.weight"), []int{keys + inner, 1, d.taps}, []int{keys + inner, d.taps}, d.behindKeys)
	b.GatheredAs(to("ssm_dt.bias"), from("linear_attn.dt_bias"), []int{d.heads}, []int{d.heads}, d.head)
	if t, ok := b.Find(from("linear_attn.A_log"), d.heads); ok {
		b.Add(to("ssm_a"), tensor.F32, []int{d.heads}, func(dst []byte) {
			rates := make([]byte, len(dst))
			ToF32(rates, t, 0)
			for i := range d.heads {
				x := math.Float32frombits(binary.LittleEndian.Uint32(rates[4*d.head(i):]))
				binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(Decay(i, x)))
			}
		})
	}
	b.Norm(to("ssm_norm.weight"), from("linear_attn.norm.weight"), d.size, 0)
	if d.tiled {
		b.columnsOf(to("ssm_out.weight"), from("linear_attn.out_proj.weight"), d.width, inner, d.value)
		return
	}
	b.Copy(to("ssm_out.weight"), from("linear_attn.out_proj.weight"), d.width, inner)
}

// behindKeys returns the folder's channel of queries, keys and values: queries and keys stay.
func (d Delta) behindKeys(i int) int {
	keys := 2 * d.keys * d.size
	if i < keys {
		return i
	}
	return keys + d.value(i-keys)
}

// Next35 adds the first products of Qwen 3.5.
func (d Delta) Next35(b *FolderBuilder, to, from func(string) string) {
	keys, inner := 2*d.keys*d.size, d.heads*d.size
	b.GatheredAs(to("attn_qkv.weight"), from("linear_attn.in_proj_qkv.weight"), []int{keys + inner, d.width}, []int{keys + inner, d.width}, d.behindKeys)
	b.GatheredAs(to("attn_gate.weight"), from("linear_attn.in_proj_z.weight"), []int{inner, d.width}, []int{inner, d.width}, d.value)
	b.GatheredAs(to("ssm_beta.weight"), from("linear_attn.in_proj_b.weight"), []int{d.heads, d.width}, []int{d.heads, d.width}, d.head)
	b.GatheredAs(to("ssm_alpha.weight"), from("linear_attn.in_proj_a.weight"), []int{d.heads, d.width}, []int{d.heads, d.width}, d.head)
}

// Next adds the first products of Qwen 3 Next: the folder has them by heads of keys.
func (d Delta) Next(b *FolderBuilder, to, from func(string) string) {
	n, group := d.keys*d.size, d.group()
	inner, each := d.heads*d.size, (2+2*group)*d.size
	all := []int{d.keys * each, d.width}
	b.GatheredAs(to("attn_qkv.weight"), from("linear_attn.in_proj_qkvz.weight"), all, []int{2*n + inner, d.width}, func(i int) int {
		switch {
		case i < n:
			return i/d.size*each + i%d.size
		case i < 2*n:
			return (i-n)/d.size*each + d.size + (i-n)%d.size
		}
		i -= 2 * n
		return i/(group*d.size)*each + 2*d.size + i%(group*d.size)
	})
	b.GatheredAs(to("attn_gate.weight"), from("linear_attn.in_proj_qkvz.weight"), all, []int{inner, d.width}, func(i int) int {
		return i/(group*d.size)*each + (2+group)*d.size + i%(group*d.size)
	})
	b.Copy(to("ssm_ba.weight"), from("linear_attn.in_proj_ba.weight"), 2*d.heads, d.width)
}
