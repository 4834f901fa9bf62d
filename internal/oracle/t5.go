package oracle

import "math"

// t5 is Raffel et al. 2020, section 2.1, and their published code: attention without a scale, a bias for each head and
// bucket of distances, which all layers of a part share, RMSNorm before each block, a head that is the table scaled down.
func (m *Model) t5(ids []int) [][]float64 {
	states := m.t5Part("enc", m.Source, nil)
	x := m.t5Part("dec", ids, states)
	head, scale := "output.weight", 1.0
	if !m.Has("output.weight") {
		head, scale = "token_embd.weight", 1/math.Sqrt(float64(m.Count("embedding_length")))
	}
	for i := range x {
		x[i] = Times(scale, m.Tensor("%s", head).Mul(x[i]))
	}
	return x
}

// t5Part computes the encoder, or the decoder behind the encoder's states.
func (m *Model) t5Part(part string, ids []int, states [][]float64) [][]float64 {
	eps, heads := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5), m.Count("attention.head_count")
	buckets := m.Count("attention.relative_buckets_count")
	table := m.Tensor("%s.blk.0.attn_rel_b.weight", part)
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = m.Tensor("token_embd.weight").Row(id)
	}
	block := func(name string, l int, from [][]float64, bias func(head, i, j int) float64, sees func(i int) int) {
		q, k, v := make([][]float64, len(x)), make([][]float64, len(from)), make([][]float64, len(from))
		norm := func(row []float64) []float64 { return RMSNorm(row, m.Tensor(name+"_norm.weight", l), eps) }
		for i := range x {
			q[i] = m.Tensor(name+"_q.weight", l).Mul(norm(x[i]))
		}
		for j := range from {
			row := from[j]
			if states == nil || &from[0] != &states[0] {
				row = norm(row)
			}
			k[j], v[j] = m.Tensor(name+"_k.weight", l).Mul(row), m.Tensor(name+"_v.weight", l).Mul(row)
		}
		size := len(q[0]) / heads
		for i := range x {
			var all []float64
			for h := range heads {
				scores := make([]float64, sees(i))
				for j := range scores {
					scores[j] = dot(q[i][h*size:(h+1)*size], k[j][h*size:(h+1)*size]) + bias(h, i, j)
				}
				out := make([]float64, size)
				for j, p := range Softmax(scores) {
					out = Plus(out, Times(p, v[j][h*size:(h+1)*size]))
				}
				all = append(all, out...)
			}
			x[i] = Plus(x[i], m.Tensor(name+"_o.weight", l).Mul(all))
		}
	}
	for l := range m.Count("block_count") {
		before := append([][]float64(nil), x...)
		block(part+".blk.%d.attn", l, before, func(h, i, j int) float64 {
			return table.Row(t5Bucket(j-i, buckets, part == "enc"))[h]
		}, func(i int) int {
			if part == "enc" {
				return len(x)
			}
			return i + 1
		})
		if part == "dec" {
			block(part+".blk.%d.cross_attn", l, states, func(int, int, int) float64 { return 0 }, func(int) int { return len(states) })
		}
		for i := range x {
			h := RMSNorm(x[i], m.Tensor(part+".blk.%d.ffn_norm.weight", l), eps)
			up := m.Tensor(part+".blk.%d.ffn_up.weight", l).Mul(h)
			if m.Has(part+".blk.%d.ffn_gate.weight", l) {
				for j, g := range m.Tensor(part+".blk.%d.ffn_gate.weight", l).Mul(h) {
					up[j] *= gelu(g)
				}
			} else {
				for j := range up {
					up[j] = math.Max(0, up[j])
				}
			}
			x[i] = Plus(x[i], m.Tensor(part+".blk.%d.ffn_down.weight", l).Mul(up))
		}
	}
	for i := range x {
		x[i] = RMSNorm(x[i], m.Tensor("%s.output_norm.weight", part), eps)
	}
	return x
}

// t5Bucket is the bucket of a key at a distance from the row, of which half a side's are exact and the others grow up to
// 128.
func t5Bucket(distance, buckets int, both bool) int {
	at, n := 0, -distance
	if both {
		buckets /= 2
		if distance > 0 {
			at, n = buckets, distance
		}
	}
	n = max(0, n)
	exact := buckets / 2
	if n < exact {
		return at + n
	}
	grown := math.Log(float64(n)/float64(exact)) / math.Log(128/float64(exact)) * float64(buckets-exact)
	return at + min(buckets-1, exact+int(grown+1e-9))
}
