package oracle

import (
	"math"
	"slices"
)

// ModuleSlot has the results of a slot of a block: its stream behind the last layer, its state and its logits.
type ModuleSlot struct{ Stream, State, Logits []float64 }

// slotRow has a slot's input and the rows that it sees.
type slotRow struct {
	x     []float64
	place int
	prior int   // the row before it in its block; of the first, itself
	sees  []int // rows, itself last
}

// Slots returns the slots of blocks (SpecBlock, 2026): of one behind each pair, and of one behind each pair of behind, whose Feature is nil and whose slot of the last block of the
// text is at its place in slots.
func (m *Module) Slots(pairs, behind []Pair, slots []int) [][]ModuleSlot {
	var rows []slotRow
	size := m.own.Count("block_size")
	for i, p := range pairs {
		var text []int
		for r := range rows {
			text = append(text, r)
		}
		rows = m.slots(rows, text, m.own.Tensor("fc.weight").Mul(p.Feature), p.ID, i+1)
	}
	n := len(rows)
	streams := m.slotStreams(rows)
	for i, p := range behind {
		from := n - size + slots[i]
		rows = m.slots(rows, rows[from].sees, streams[from], p.ID, rows[from].place+1)
	}
	streams = m.slotStreams(rows)
	var all [][]ModuleSlot
	for at := 0; at < len(rows); at += size {
		var block []ModuleSlot
		for _, x := range streams[at : at+size] {
			state := RMSNorm(x, m.own.Tensor("output_norm.weight"), m.eps())
			block = append(block, ModuleSlot{x, state, m.head(state)})
		}
		all = append(all, block)
	}
	return all
}

func (m *Module) eps() float64 { return m.own.FloatOr("attention.layer_norm_rms_epsilon", 1e-5) }

// slots adds the rows of a block of a condition and a token, whose first slot is at a place.
func (m *Module) slots(rows []slotRow, sees []int, condition []float64, id, place int) []slotRow {
	from := m.target
	if m.own.Has("token_embd.weight") {
		from = m.own
	}
	sees, first := slices.Clone(sees), len(rows)
	for k := range m.own.Count("block_size") {
		in := slices.Concat(RMSNorm(condition, m.own.Tensor("fc_norm.weight"), m.eps()), RMSNorm(from.Tensor("token_embd.weight").Row(id), m.own.Tensor("token_norm.weight"), m.eps()),
			RMSNorm(m.own.Tensor("queries.weight").Row(k), m.own.Tensor("query_norm.weight"), m.eps()))
		sees = append(sees, len(rows))
		rows = append(rows, slotRow{m.own.Tensor("fuse.weight").Mul(in), place + k, max(first, len(rows)-1), slices.Clone(sees)})
	}
	return rows
}

// slotStreams returns the streams of rows behind the last layer.
func (m *Module) slotStreams(rows []slotRow) [][]float64 {
	var x [][]float64
	for _, r := range rows {
		x = append(x, r.x)
	}
	heads, kvHeads, size := m.own.Count("attention.head_count"), m.own.Count("attention.head_count_kv"), m.own.Count("attention.key_length")
	freq := Yarn(size, m.own.FloatOr("rope.freq_base", 10000), 1, 4096, 32, 1, true)
	for l := range m.own.Count("block_count") {
		q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
		if l > 0 {
			was := slices.Clone(x)
			for i, r := range rows {
				x[i] = m.own.Tensor("blk.%d.shift.weight", l).Mul(slices.Concat(was[i], was[r.prior]))
			}
		}
		for i, r := range rows {
			q[i], k[i], v[i] = m.own.Queries(l, RMSNorm(x[i], m.own.Tensor("blk.%d.attn_norm.weight", l), m.eps()))
			for _, y := range [][]float64{q[i], k[i]} {
				for at := 0; at < len(y); at += size {
					Rotate(y[at:at+size], freq, r.place, 1, true)
				}
			}
		}
		for i, r := range rows {
			var keys, values [][]float64
			for _, j := range r.sees {
				keys, values = append(keys, k[j]), append(values, v[j])
			}
			var a []float64
			for h := range heads {
				at := h / (heads / kvHeads) * size
				a = append(a, Attend(q[i][h*size:(h+1)*size], Part(keys, at, size), Part(values, at, size), 1/math.Sqrt(float64(size)), nil)...)
			}
			x[i] = Plus(x[i], m.own.Tensor("blk.%d.attn_output.weight", l).Mul(a))
			x[i] = Plus(x[i], m.own.GatedBlock(l, RMSNorm(x[i], m.own.Tensor("blk.%d.ffn_norm.weight", l), m.eps())))
		}
	}
	return x
}
