package oracle

import "math"

// t5Gemma is Zhang et al. 2025 and its published code: Gemma 2's layers in an encoder, whose tokens see each other, and in a
// decoder, where attention to the encoder's states without rotation and window stands behind self attention.
func (m *Model) t5Gemma(ids []int) [][]float64 {
	x := m.t5GemmaPart("dec", ids, m.t5GemmaPart("enc", m.Source, nil))
	cap := m.FloatOr("final_logit_softcapping", 30)
	for i := range x {
		x[i] = m.Tensor("token_embd.weight").Mul(x[i])
		for v := range x[i] {
			x[i][v] = cap * math.Tanh(x[i][v]/cap)
		}
	}
	return x
}

func (m *Model) t5GemmaPart(part string, ids []int, states [][]float64) [][]float64 {
	prefix, table := "", "token_embd.weight"
	if part == "enc" {
		prefix, table = "encoder.", "enc.token_embd.weight"
	}
	of := func(name string) int { return m.CountOr(prefix+name, m.Count(name)) }
	width, heads, kvHeads, size := of("embedding_length"), of("attention.head_count"), of("attention.head_count_kv"), of("attention.key_length")
	eps, window := m.FloatOr("attention.layer_norm_rms_epsilon", 1e-5), m.CountOr(prefix+"attention.sliding_window", 4096)
	scale, softcap := m.FloatOr(prefix+"attention.scale", 1/math.Sqrt(float64(size))), m.FloatOr("attn_logit_softcapping", 50)
	freq := make([]float64, size/2)
	for i := range freq {
		freq[i] = math.Pow(m.FloatOr("rope.freq_base", 10000), -float64(i)/float64(len(freq)))
	}
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = Times(math.Sqrt(float64(width)), m.Tensor("%s", table).Row(id))
	}
	for l := range of("block_count") {
		norm := func(row []float64, name string) []float64 {
			return RMSNorm(row, m.Tensor(part+".blk.%d."+name+".weight", l), eps)
		}
		mul := func(row []float64, name string) []float64 {
			return m.Tensor(part+".blk.%d."+name+".weight", l).Mul(row)
		}
		attend := func(name string, from [][]float64, rotates bool, sees func(i, j int) bool) {
			k, v := make([][]float64, len(from)), make([][]float64, len(from))
			for j := range from {
				k[j], v[j] = mul(from[j], name+"_k"), mul(from[j], name+"_v")
				for h := range kvHeads {
					if rotates {
						Rotate(k[j][h*size:(h+1)*size], freq, j, 1, true)
					}
				}
			}
			for i := range x {
				q := mul(norm(x[i], name+"_norm"), name+"_q")
				var all []float64
				for h := range heads {
					one, at := q[h*size:(h+1)*size], h/(heads/kvHeads)*size
					if rotates {
						Rotate(one, freq, i, 1, true)
					}
					var scores []float64
					var seen []int
					for j := range from {
						if sees(i, j) {
							scores, seen = append(scores, softcap*math.Tanh(scale*dot(one, k[j][at:at+size])/softcap)), append(seen, j)
						}
					}
					out := make([]float64, size)
					for n, p := range Softmax(scores) {
						out = Plus(out, Times(p, v[seen[n]][at:at+size]))
					}
					all = append(all, out...)
				}
				x[i] = Plus(x[i], norm(mul(all, name+"_o"), "post_"+name+"_norm"))
			}
		}
		normed := make([][]float64, len(x))
		for i := range x {
			normed[i] = norm(x[i], "attn_norm")
		}
		attend("attn", normed, true, func(i, j int) bool {
			if l%2 == 0 && (j <= i-window || j >= i+window) {
				return false
			}
			return part == "enc" || j <= i
		})
		if part == "dec" {
			attend("cross_attn", states, false, func(int, int) bool { return true })
		}
		for i := range x {
			h := norm(x[i], "ffn_norm")
			up := mul(h, "ffn_up")
			for n, g := range mul(h, "ffn_gate") {
				up[n] *= gelu(g)
			}
			x[i] = Plus(x[i], norm(mul(up, "ffn_down"), "post_ffw_norm"))
		}
	}
	for i := range x {
		x[i] = RMSNorm(x[i], m.Tensor("%s.output_norm.weight", part), eps)
	}
	return x
}
