package lora

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"grove/internal/fileio"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

const (
	peftConfig  = "adapter_config.json"
	peftWeights = "adapter_model.safetensors"
	maxConfig   = 1 << 20
	maxPatterns = 1 << 12
)

// peft is adapter_config.json. Settings that change what the adapter computes and that are not honoured are refused by name.
type peft struct {
	Type         string             `json:"peft_type"`
	Rank         int                `json:"r"`
	Alpha        float64            `json:"lora_alpha"`
	Rooted       bool               `json:"use_rslora"`
	FanInFanOut  bool               `json:"fan_in_fan_out"`
	RankPattern  map[string]int     `json:"rank_pattern"`
	AlphaPattern map[string]float64 `json:"alpha_pattern"`
	Invocation   []int              `json:"alora_invocation_tokens"`

	pairs  map[string]Pair // by module, until they are translated
	tables map[string]bool // the modules that are tables of embeddings
}

func isPEFT(path string) bool {
	info, err := os.Stat(filepath.Join(path, peftConfig))
	return err == nil && !info.IsDir()
}

// readPEFT reads a folder of PEFT. The pairs have the names of modules.
func readPEFT(path string) (*Adapter, error) {
	fail := func(err error) (*Adapter, error) { return nil, fmt.Errorf("lora: %s: %w", path, err) }
	text, err := fileio.ReadRegular(filepath.Join(path, peftConfig), maxConfig)
	if err != nil {
		return fail(err)
	}
	c, err := parsePEFT(text)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", peftConfig, err))
	}
	f, err := safetensors.Open(filepath.Join(path, peftWeights))
	if errors.Is(err, os.ErrNotExist) {
		if _, old := os.Stat(filepath.Join(path, "adapter_model.bin")); old == nil {
			return fail(fmt.Errorf("adapter_model.bin is not supported; weights must be in %s", peftWeights))
		}
	}
	if err != nil {
		return fail(err)
	}
	a := &Adapter{Path: path, Name: filepath.Base(path), PEFT: true, peft: c, closers: []io.Closer{f}}
	if whole, err := filepath.Abs(path); err == nil {
		a.Name = filepath.Base(whole)
	}
	if a.Invocation, err = invocation(c.Invocation); err == nil {
		err = a.modules(f)
	}
	if err != nil {
		return fail(errors.Join(err, f.Close()))
	}
	return a, nil
}

// parsePEFT reads adapter_config.json.
func parsePEFT(text []byte) (*peft, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	c := &peft{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("a setting has a wrong kind: %w", err)
	}
	if c.Type != "LORA" {
		return nil, fmt.Errorf("peft_type is %.40q; LORA is supported", c.Type)
	}
	// These settings must ask for nothing.
	refused := []string{
		"modules_to_save", "lora_bias", "layer_replication", "target_parameters", "trainable_token_indices", "arrow_config", "corda_config",
		"lora_ga_config", "megatron_config",
	}
	for _, key := range slices.Sorted(maps.Keys(all)) { // use_dora, use_qalora, and what is to come
		if strings.HasPrefix(key, "use_") && key != "use_rslora" {
			refused = append(refused, key)
		}
	}
	for _, key := range refused {
		switch v := string(bytes.TrimSpace(all[key])); v {
		case "", "null", "false", "[]", "{}":
		default:
			return nil, fmt.Errorf("%s is %.40s; it is not supported", key, v)
		}
	}
	if v := textOf(all["bias"]); v != "" && v != "none" {
		return nil, fmt.Errorf("bias is %.40q; only none is supported", v)
	}
	// These ways to begin change the base's weights too, so that the adapter is for another base than the one named.
	if v := textOf(all["init_lora_weights"]); strings.HasPrefix(v, "pissa") || v == "olora" || v == "corda" || v == "loftq" || v == "lora_ga" {
		return nil, fmt.Errorf("init_lora_weights is %.40q: the adapter is for a base whose weights were changed; let PEFT convert it when it saves", v)
	}
	if c.Rank < 1 || c.Rank > MaxRank {
		return nil, fmt.Errorf("r is %d; it must be 1 to %d", c.Rank, MaxRank)
	}
	if len(c.RankPattern)+len(c.AlphaPattern) > maxPatterns {
		return nil, fmt.Errorf("%d patterns of ranks and alphas; at most %d are supported", len(c.RankPattern)+len(c.AlphaPattern), maxPatterns)
	}
	return c, nil
}

// textOf returns the string of a setting, "" where it is none.
func textOf(v json.RawMessage) (s string) {
	_ = json.Unmarshal(v, &s) // other kinds are no text
	return s
}

// modules makes pairs of the folder's tensors.
func (a *Adapter) modules(f *safetensors.File) error {
	if len(f.Tensors) > 2*MaxPairs {
		return fmt.Errorf("%d tensors; an adapter has at most %d", len(f.Tensors), 2*MaxPairs)
	}
	a.peft.pairs, a.peft.tables = map[string]Pair{}, map[string]bool{}
	for _, t := range f.Tensors {
		module, isA, ok := moduleOf(t.Name)
		typ, float := safetensors.FloatTypes[t.Type]
		switch {
		case !ok:
			return fmt.Errorf("%s: no factor of a LoRA: their names end in lora_A.weight, lora_B.weight, lora_embedding_A or lora_embedding_B", tensor.Label(t.Name))
		case !float || len(t.Shape) != 2:
			return fmt.Errorf("%s: type is %s and shape %v; a factor is a matrix of F32, F16 or BF16", tensor.Label(t.Name), t.Type, t.Shape)
		}
		a.peft.tables[module] = strings.Contains(t.Name[len(module):], "embedding")
		p, v := a.peft.pairs[module], tensor.View{Name: t.Name, Type: typ, Shape: t.Shape, Data: t.Data}
		if p.Name = module; isA {
			p.A = v
		} else {
			p.B = v
		}
		a.peft.pairs[module] = p
	}
	for _, p := range a.peft.pairs {
		if p.A.Shape == nil || p.B.Shape == nil {
			return fmt.Errorf("%s: one of its two factors is missing", tensor.Label(p.Name))
		}
		if err := p.check(); err != nil {
			return err
		}
		var err error
		if p.Scale, err = a.peft.scale(p.Name, p.Rank()); err != nil {
			return err
		}
		a.Pairs = append(a.Pairs, p)
	}
	if len(a.Pairs) == 0 {
		return errors.New("it has no tensors")
	}
	return a.sorted()
}

// moduleOf splits the name of a factor.
func moduleOf(name string) (module string, isA, ok bool) {
	for _, end := range []string{".lora_A.weight", ".lora_A.default.weight", ".lora_embedding_A", ".lora_embedding_A.default"} {
		if m, ok := strings.CutSuffix(name, end); ok {
			return m, true, true
		}
		if m, ok := strings.CutSuffix(name, strings.Replace(end, "_A", "_B", 1)); ok {
			return m, false, true
		}
	}
	return "", false, false
}

// scale returns the scale of a module: alpha over its rank, or over the rank's square root (rsLoRA, Kalajdzievski 2023).
func (c *peft) scale(module string, rank int) (float64, error) {
	want, err := pattern(c.RankPattern, module, c.Rank)
	if err != nil {
		return 0, fmt.Errorf("rank_pattern: %w", err)
	}
	if want != rank {
		return 0, fmt.Errorf("%s: the factors have rank %d; %s says %d", tensor.Label(module), rank, peftConfig, want)
	}
	alpha, err := pattern(c.AlphaPattern, module, c.Alpha)
	if err != nil {
		return 0, fmt.Errorf("alpha_pattern: %w", err)
	}
	scale := alpha / float64(rank)
	if c.Rooted {
		scale = alpha / math.Sqrt(float64(rank))
	}
	if math.IsNaN(scale) || math.Abs(scale) > 1e6 {
		return 0, fmt.Errorf("%s: scale is %v; it must be within ±1e6", tensor.Label(module), scale)
	}
	return scale, nil
}

// pattern returns the value of the first pattern, by name, that stands for a module's name or the end of it.
func pattern[T any](all map[string]T, module string, other T) (T, error) {
	var keys []string
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		e, err := regexp.Compile(`^(.*\.)?(` + k + `)$`)
		if err != nil {
			return other, fmt.Errorf("%.80q is no expression", k)
		}
		if e.MatchString(module) {
			return all[k], nil
		}
	}
	return other, nil
}

// translate gives the pairs the names of GGUF: the factors follow the rows and columns of the base's matrices, a pair of a matrix that the
// base has in parts becomes a pair for each, and the experts of a stack are put together.
func (a *Adapter) translate(base *gguf.File) error {
	sources, err := hf.Sources(base)
	if err != nil {
		return a.fail("%v", err)
	}
	byModule := map[string]Pair{}
	for _, p := range a.Pairs {
		byModule[plainModule(p.Name)] = p
	}
	a.Pairs = nil
	used, stacks := map[string]bool{}, map[string][]hf.Source{}
	for _, s := range sources {
		module := plainModule(strings.TrimSuffix(s.From, ".weight"))
		p, ok := byModule[module]
		if s.Stack {
			stacks[s.To] = append(stacks[s.To], s)
			continue
		}
		if !ok || a.peft.tables[p.Name] != (s.To == table) { // a head that is the table stays as it is
			continue
		}
		used[module] = true
		if s.Problem != "" {
			return a.fail("%s: %s; it cannot be adapted", tensor.Label(p.Name), s.Problem)
		}
		if a.peft.FanInFanOut && !s.Transposed {
			return a.fail("%s: fan_in_fan_out is true; the base has this matrix as [out, in]", tensor.Label(p.Name))
		}
		name := p.Name
		if p.Name = s.To; p.Lookup() { // PEFT has A as [rank, vocabulary]
			p.A = transposed(p.A)
		}
		if err := arranged(&p, s); err != nil {
			return a.fail("%s: %v", tensor.Label(name), err)
		}
		a.Pairs = append(a.Pairs, p)
	}
	maps.DeleteFunc(byModule, func(module string, _ Pair) bool { return used[module] })
	if err := a.stack(stacks, byModule, base); err != nil {
		return err
	}
	for _, p := range byModule {
		return a.fail("%s: the base has no such module: it is another model, or this part of it cannot be adapted", tensor.Label(p.Name))
	}
	a.peft = nil
	return a.sorted()
}

// arranged gives the factors of a pair the rows and columns of a source.
func arranged(p *Pair, s hf.Source) (err error) {
	if s.Row == nil && s.Column == nil && s.Factor == nil {
		return nil
	}
	if p.Lookup() {
		p.A, err = rowsOf(p.A, p.A.Shape[0], nil, s.Factor)
		return err
	}
	if rank := p.Rank(); !slices.Equal(p.A.Shape, []int{rank, s.Shape[1]}) || !slices.Equal(p.B.Shape, []int{s.Shape[0], rank}) {
		return fmt.Errorf("factor A has shape %v and B %v; the base's matrix has %v: it is another model", p.A.Shape, p.B.Shape, s.Shape)
	}
	if s.Row != nil || s.Factor != nil {
		if p.B, err = rowsOf(p.B, s.Rows, s.Row, s.Factor); err != nil {
			return err
		}
	}
	if s.Column != nil {
		if p.A, err = rowsOf(transposed(p.A), s.Shape[1], s.Column, nil); err == nil {
			p.A = transposed(p.A)
		}
	}
	return err
}

// rowsOf returns n rows of a matrix: those that row names, times a factor each, which makes them F32.
func rowsOf(v tensor.View, n int, row func(i int) int, factor func(i int) float32) (tensor.View, error) {
	if factor != nil && v.Type != tensor.F32 {
		values, err := unpack(v)
		if err != nil {
			return v, err
		}
		v.Type, v.Data = tensor.F32, packed(values)
	}
	size := len(v.Data) / v.Shape[0]
	out := tensor.View{Name: v.Name, Type: v.Type, Shape: []int{n, v.Shape[1]}, Data: make([]byte, n*size)}
	for i := range n {
		from := i
		if row != nil {
			from = row(i)
		}
		if from < 0 || from >= v.Shape[0] {
			return v, fmt.Errorf("row %d of the base's matrix is row %d of %d: the base's settings do not fit it", i, from, v.Shape[0])
		}
		copy(out.Data[i*size:], v.Data[from*size:(from+1)*size])
		if factor == nil {
			continue
		}
		for at := i * size; at < (i+1)*size; at += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(out.Data[at:]))
			binary.LittleEndian.PutUint32(out.Data[at:], math.Float32bits(x*factor(i)))
		}
	}
	return out, nil
}

// packed returns the bytes of values.
func packed(values []float32) (data []byte) {
	for _, x := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

// plainModule returns the name of a module without what wrappers put before it.
func plainModule(name string) string {
	name = strings.TrimPrefix(name, "base_model.model.")
	for {
		short := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "model."), "language_model."), "transformer.")
		if short == name {
			return name
		}
		name = short
	}
}

// transposed returns the transposed matrix.
func transposed(v tensor.View) tensor.View {
	rows, columns := v.Shape[0], v.Shape[1]
	size := len(v.Data) / (rows * columns)
	out := tensor.View{Name: v.Name, Type: v.Type, Shape: []int{columns, rows}, Data: make([]byte, len(v.Data))}
	for r := range rows {
		for c := range columns {
			copy(out.Data[(c*rows+r)*size:][:size], v.Data[(r*columns+c)*size:])
		}
	}
	return out
}

// stack puts the experts of stacks together, of equal ranks and scales. An expert without a pair has factors of zeros.
func (a *Adapter) stack(stacks map[string][]hf.Source, modules map[string]Pair, base *gguf.File) error {
	for to, sources := range stacks {
		var first *Pair
		for _, s := range sources {
			if p, ok := modules[plainModule(strings.TrimSuffix(s.From, ".weight"))]; ok && first == nil {
				first = &p
			}
		}
		if first == nil {
			continue
		}
		t, _ := base.Tensor(to)
		if len(t.Shape) != 3 || len(sources) != t.Shape[0] ||
			!slices.Equal(first.A.Shape, []int{first.Rank(), t.Shape[2]}) || !slices.Equal(first.B.Shape, []int{t.Shape[1], first.Rank()}) {
			return a.fail("%s: A has shape %v and B %v, for one of %d experts; the base's %q has shape %v", tensor.Label(first.Name), first.A.Shape, first.B.Shape, len(sources), to, t.Shape)
		}
		joined := *first
		joined.Name = to
		joined.A.Shape, joined.B.Shape = append([]int{len(sources)}, first.A.Shape...), append([]int{len(sources)}, first.B.Shape...)
		joined.A.Data, joined.B.Data = make([]byte, len(sources)*len(first.A.Data)), make([]byte, len(sources)*len(first.B.Data))
		for _, s := range sources {
			module := plainModule(strings.TrimSuffix(s.From, ".weight"))
			p, ok := modules[module]
			if !ok {
				continue
			}
			if p.A.Type != first.A.Type || p.B.Type != first.B.Type || !slices.Equal(p.A.Shape, first.A.Shape) || !slices.Equal(p.B.Shape, first.B.Shape) || p.Scale != first.Scale {
				return a.fail("%s: the experts of a stack must have factors of equal types, shapes and scales", tensor.Label(p.Name))
			}
			copy(joined.A.Data[s.Expert*len(p.A.Data):], p.A.Data)
			copy(joined.B.Data[s.Expert*len(p.B.Data):], p.B.Data)
			delete(modules, module)
		}
		a.Pairs = append(a.Pairs, joined)
	}
	return nil
}
