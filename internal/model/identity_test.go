package model_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

func identity(t *testing.T, m model.Model) string {
	t.Helper()
	id, err := m.Info().Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestIdentity expects an identity to name whatever decides results, and nothing else.
func TestIdentity(t *testing.T) {
	last := func(p *parts) {
		v := &p.tensors[len(p.tensors)-1]
		v.Data = slices.Clone(v.Data)
		v.Data[len(v.Data)-1] ^= 1
	}
	swapped := func(p *parts) {
		gate, up := slices.IndexFunc(p.tensors, named("blk.0.ffn_gate.weight")), slices.IndexFunc(p.tensors, named("blk.0.ffn_up.weight"))
		p.tensors[gate].Name, p.tensors[up].Name = p.tensors[up].Name, p.tensors[gate].Name
	}
	factors := func(p *parts) {
		setTensor("rope_freqs.weight", tensor.F32, 16)(p)
		for i := 0; i < 64; i += 4 {
			copy(p.tensors[len(p.tensors)-1].Data[i:], "\x00\x00\x00\x40") // 2
		}
	}
	reversed := func(p *parts) {
		slices.Reverse(p.tensors)
		slices.Reverse(p.metadata)
	}
	for _, c := range []struct {
		name   string
		spec   modeltest.Spec
		change func(*parts)
		same   bool // as the plain model's
	}{
		{"nothing", llama, func(*parts) {}, true},
		{"order", llama, reversed, true},
		{"name", llama, set("general.name", "another"), true},
		{"template", llama, set("tokenizer.chat_template", "{{ x }}"), true},
		{"alignment", llama, set("general.alignment", uint32(64)), true},
		{"another family's setting", llama, set("gemma2.rope.freq_base", float32(1)), true},
		{"a late byte", llama, last, false},
		{"the names of two tensors", llama, swapped, false},
		{"seed", modeltest.Spec{Seed: 1}, func(*parts) {}, false},
		{"type", modeltest.Spec{Type: tensor.Q8_0}, func(*parts) {}, false},
		{"rotation", llama, set("llama.rope.freq_base", float32(5000)), false},
		{"epsilon", llama, set("llama.attention.layer_norm_rms_epsilon", float32(2e-5)), false},
		{"context", llama, set("llama.context_length", uint32(77)), false},
		{"factors", llama, factors, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := open(t, c.spec, c.change)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := open(t, llama, func(*parts) {})
			if err != nil {
				t.Fatal(err)
			}
			if same := identity(t, m) == identity(t, plain); same != c.same {
				t.Errorf("one identity with the plain model: %v", same)
			}
		})
	}
}

func named(name string) func(tensor.View) bool {
	return func(v tensor.View) bool { return v.Name == name }
}

// TestIdentityOfBytes changes the last byte of each tensor of each golden model, and expects another identity.
func TestIdentityOfBytes(t *testing.T) {
	for _, golden := range modeltest.Goldens {
		t.Run(golden, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("../suite/modeltest/testdata", golden+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			parse := func() *gguf.File {
				f, err := gguf.Parse(data)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			pool := par.New(1)
			defer pool.Close()
			of := func(f *gguf.File, packed ...bool) string {
				m, err := model.Open(f, pool, model.Options{NoRepack: len(packed) == 0})
				if err != nil {
					t.Fatal(err)
				}
				return identity(t, m)
			}
			plain := of(parse())
			for i, v := range parse().Tensors {
				v.Data[len(v.Data)-1] ^= 1
				if f := parse(); of(f) == plain {
					t.Errorf("%s: the last byte of tensor %d changes nothing", v.Name, i)
				}
				v.Data[len(v.Data)-1] ^= 1
			}
			if of(parse()) != plain || of(parse(), true) != plain {
				t.Error("the same bytes have two identities")
			}
		})
	}
}
