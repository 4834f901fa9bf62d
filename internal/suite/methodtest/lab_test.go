package methodtest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/engine/adapters"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
	"grove/method"
	"grove/method/datastore"
)

const (
	vocabulary = 61
	period     = 10  // of what the models like to say
	length     = 256 // of the context
)

// long says that every check meets every model and sampling, and that distributions are compared with many texts; the project's CI sets it.
var long = os.Getenv("GROVE_LONG") != ""

// brief returns a number of the long run, or the one that a short run has in its place.
func brief(whole, short int) int {
	if long {
		return whole
	}
	return short
}

// few texts show a fault; many show that there is none.
const few = 400

// lab holds the models of the suite: a target, and a draft model that mostly agrees with it. Both prefer one successor of
// each token, so that texts repeat and drafts are accepted, and neither is sure of it.
type lab struct {
	tb            testing.TB
	pool          *par.Pool // of one thread: the models are small
	two           *par.Pool // of two threads
	target, other model.Model
	between       model.Model        // a middle model
	draws         int                // texts that a distribution is compared with
	texts         map[string]outcome // of plain decoding
	store         *datastore.Store
	free          bool          // answers of the target do not follow the texts that are given
	modules       []model.Model // draft modules of the target, some that draft what it prefers and some that never do
	helpers       map[model.Model]*engine.Engine
	blocks        model.Model // what canvas opened
}

// outcome is how a story ended.
type outcome struct {
	tokens []sample.Token
	err    error
}

// newLab makes a lab of models of attention alone.
func newLab(tb testing.TB) *lab {
	tb.Helper()
	return labOf(tb, func(l *lab, seed uint64) model.Model { return l.model(modeltest.Spec{Seed: seed}) })
}

// labOf makes a lab of models by a seed.
func labOf(tb testing.TB, open func(l *lab, seed uint64) model.Model) *lab {
	tb.Helper()
	l := &lab{tb: tb, pool: par.New(1), two: par.New(2), draws: few, texts: map[string]outcome{}, helpers: map[model.Model]*engine.Engine{}}
	if long {
		l.draws = 10_000
	}
	tb.Cleanup(l.pool.Close)
	tb.Cleanup(l.two.Close)
	l.target, l.other, l.between, l.store = open(l, 1), open(l, 2), open(l, 3), l.datastore()
	l.modules = l.openModules()
	return l
}

// openModules opens a draft module of each family for the target, where that lends its head. The layers are random and add little; the
// other weights make each module prefer what the target prefers, at least for the first draft.
func (l *lab) openModules() (all []model.Model) {
	if _, lends := l.target.(model.Lender); !lends {
		return nil
	}
	info := l.target.Info()
	of := synthetic.Spec{Width: info.Width, Vocab: info.Vocabulary, Layers: len(info.Layers)}
	for _, m := range []synthetic.Module{
		{Family: "medusa", Blocks: 1, Own: true}, {Family: "hydra", Blocks: 1, Prefix: true}, {Family: "eagle"}, {Family: "clover"}, {Family: "chimera"},
		{Family: "eagle3", Taps: []int32{1, 2, 3}, Own: true}, {Family: "kangaroo"}, {Family: "m2r2", Exit: 2}, {Family: "ppd"}, {Family: "transfer", Exit: 1},
		{Family: "dflash", Taps: []int32{2, 3}, Own: true}, {Family: "dflare", Taps: []int32{4, 1}, Anchor: true},
		{Family: "falcon", Block: 2, Pairs: 2, Own: true},
		{Family: "dspark", Taps: []int32{1}, Anchor: true, Own: true, Rank: info.Width / 2},
		{Family: "fspad"}, {Family: "peagle", Taps: []int32{1, 2, 3}, Own: true, Blocks: 2},
		{Family: "specblock", Taps: []int32{1, 2, 3}, Own: true},
	} {
		if m.Family == "m2r2" && !info.Adapts("blk.0.attn_q.weight") {
			continue
		}
		m.Target, m.Seed = of, 5
		metadata, tensors, err := m.Parts()
		if err != nil {
			l.tb.Fatal(err)
		}
		if info.Vocabulary == vocabulary { // else the target prefers nothing
			l.teach(m.Family, tensors, info.Width)
		}
		opened, err := model.OpenModule(l.file(metadata, tensors), l.pool, l.target, model.Options{})
		if err != nil {
			l.tb.Fatal(err)
		}
		all = append(all, opened)
	}
	return all
}

// teach makes a module prefer what the target prefers. Medusa's heads read the state of the token before the last one. Hydra's pass the embedding of the
// last token on, EAGLE's that of the token, of which the target's head prefers the successor.
// EAGLE-3's, and the first row of P-EAGLE's, pass the features on, which are those of the token before: its own head prefers the successor's successor.
// Hidden Transfer's matrices turn the embedding of a token into that of a successor.
// DFlash's mask tokens are zeros, and so is its context: they read the text's last token alone. DFlare's first row passes the embedding on.
// SpecBlock's slots pass the block's token on, so that the first one prefers its successor.
// DSpark's matrices prefer the successor of each draft.
func (l *lab) teach(family string, tensors []tensor.View, width int) {
	l.tb.Helper()
	find := func(name string) tensor.View {
		return tensors[slices.IndexFunc(tensors, func(t tensor.View) bool { return t.Name == name })]
	}
	put := func(name string, values []float32) {
		t := find(name)
		if err := tensor.Pack(tensor.F32, t.Data, values); err != nil {
			l.tb.Fatal(err)
		}
	}
	switch family {
	case "medusa":
		for k := range 3 {
			put(fmt.Sprintf("blk.%d.output.weight", k), ahead(width, k+2))
		}
	case "hydra":
		for k := range 3 {
			last := make([]float32, k+2)
			last[k+1] = 1
			put(fmt.Sprintf("blk.%d.skip.weight", k), identities(width, last...))
		}
	case "chimera": // heads read the last of three embeddings, which the layer adds little to
		put("trigram.out.weight", identities(width, 0, 0, 1))
		for k := range 3 {
			put(fmt.Sprintf("blk.%d.mix.weight", k), identities(width, 0, 1))
		}
	case "clover": // the cell before the layers adds the embedding: its queries and keys are the same everywhere
		one, zero := slices.Repeat([]float32{1}, width), make([]float32, width*width)
		for _, name := range []string{"mix.attn_q", "mix.attn_k"} {
			put(name+".weight", zero)
			put(name+".bias", one)
		}
		put("mix.attn_v.weight", identities(width, 10))
		put("first.weight", identities(width, 1))
		put("next.weight", identities(width, 0, 1))
	case "eagle", "fspad":
		put("fc.weight", identities(width, 1, 0))
	case "falcon": // the LSTM passes the embedding on, small enough for tanh to be a line, and forgets the pair before
		const small = 0.05
		none := make([]float32, 4*width*width)
		put("lstm.0.ih.weight", slices.Concat(none, identities(width, small, 0), none[:2*width*width]))
		put("lstm.1.ih.weight", slices.Concat(none[:2*width*width], identities(width, 1), none[:width*width]))
		open := slices.Concat(slices.Repeat([]float32{10}, width), slices.Repeat([]float32{-10}, width), make([]float32, width), slices.Repeat([]float32{10}, width))
		for _, name := range []string{"lstm.0.", "lstm.1."} {
			put(name+"ih.bias", open)
			clear(find(name + "hh.bias").Data)
			clear(find(name + "hh.weight").Data)
		}
		clear(find("blk.0.attn_output.weight").Data)
		clear(find("blk.0.ffn_down.weight").Data)
		head := ahead(width, 2)
		for i := range head {
			head[i] /= small
		}
		put("output.weight", head)
	case "ppd": // a vector does not know the token before it: each is the sum of a period's tokens, whose successors are the candidates
		in, _ := periodic(width)
		sum := make([]float32, width)
		for id := 2 * period; id < 3*period; id++ {
			for i := range sum {
				sum[i] += in[id*width+i]
			}
		}
		put("prompt.weight", slices.Concat(sum, sum, sum))
	case "transfer":
		for k := range 3 {
			put(fmt.Sprintf("blk.%d.transfer.weight", k), turned(width, k+1))
		}
	case "eagle3", "peagle":
		put("fc.weight", identities(width, 1, 1, 1))
		put("output.weight", ahead(width, 2))
	case "specblock": // slots pass the block's token on: the own head prefers its successor, and the rank head a few children
		put("fuse.weight", identities(width, 0, 10, 0))
		put("blk.1.shift.weight", identities(width, 1, 0))
		put("output.weight", ahead(width, 1))
		put("rank_out.bias", []float32{9, 0, 0, 0})
	case "dflash":
		in, out := periodic(width)
		clear(in[(vocabulary-1)*width:])
		put("token_embd.weight", in)
		put("output.weight", out)
		put("fc.weight", make([]float32, 2*width*width))
		put("blk.0.attn_v.weight", identities(width, 1))
		back := make([]float32, width*2*width) // two heads give each half of the values
		for i := range width {
			back[2*width*i+i+i/(width/2)*width/2] = 3000 // all tokens that are seen share what they give
		}
		put("blk.0.attn_output.weight", back)
	case "dspark":
		in, out := periodic(width)
		var w1, w2 []float32
		for id := range vocabulary {
			w1, w2 = append(w1, in[id*width:][:width/2]...), append(w2, out[id*width:][:width/2]...)
		}
		put("token_embd.weight", in)
		put("output.weight", out)
		put("markov_w1.weight", w1)
		put("markov_w2.weight", w2)
		put("conf_proj.weight", make([]float32, width+width/2))
		put("conf_proj.bias", []float32{3})
	}
}

// identities returns a matrix of width rows, multiples of the identity side by side.
func identities(width int, factors ...float32) []float32 {
	m := make([]float32, len(factors)*width*width)
	for i := range width {
		for k, f := range factors {
			m[(i*len(factors)+k)*width+i] = f
		}
	}
	return m
}

// ahead returns a head that prefers the n-th successor of a token by its embedding.
func ahead(width, n int) []float32 {
	_, head := periodic(width) // of the first
	out := make([]float32, len(head))
	for id := range token.ID(vocabulary) {
		far := next(id)
		for range n - 1 {
			far = next(far)
		}
		copy(out[int(far)*width:][:width], head[int(next(id))*width:])
	}
	return out
}

// turned returns a matrix whose product with the embedding of a token is nearly that of its n-th successor.
func turned(width, n int) []float32 {
	in, _ := periodic(width)
	m := make([]float32, width*width)
	for id := range token.ID(vocabulary) {
		far, row, norm := id, in[int(id)*width:][:width], float32(0)
		for range n {
			far = next(far)
		}
		for _, v := range row {
			norm += v * v
		}
		for o, to := range in[int(far)*width:][:width] {
			for i, v := range row {
				m[o*width+i] += to * v / norm
			}
		}
	}
	return m
}

// offers reports whether the lab has what a method needs: modules need a target that lends its head, those that add to its layers one whose layers attend, and masks one of blocks.
func (l *lab) offers(info method.Info) bool {
	switch {
	case info.Name == "masks":
		return l.target.Info().Diffusion != nil
	case info.Name == "m2r2":
		return l.modules != nil && l.target.Info().Adapts("blk.0.attn_q.weight")
	}
	return info.Kind != method.KindHeads || l.modules != nil
}

// heads returns the modules as methods of an engine see them, each with an engine of its own.
func (l *lab) heads(e *engine.Engine) []*method.Module {
	return l.headsBy(e, l.helper)
}

// headsBy is heads with what runs the rows of each.
func (l *lab) headsBy(e *engine.Engine, open func(model.Model) method.Model) (all []*method.Module) {
	for _, m := range l.modules {
		of := &method.Module{Model: open(m), Module: *m.Info().Module}
		if a := m.Info().Adds; a != nil {
			of.Accelerated = method.Accelerated{Layers: a.Layers, Adapter: e.Accelerate(&adapters.Set{Name: a.Name, List: []compute.Adapted{{Adapter: a.Adapter, Scale: 1}}})}
		}
		all = append(all, of)
		if of.Family == "eagle" { // the same rows, from a file of their own
			mtp, next := *of, *of // two predictors, with the same weights
			next.Model = open(m)
			mtp.Family, mtp.Next, mtp.Chained = "mtp", []*method.Module{&next}, of.FeedsState
			all = append(all, &mtp)
		}
	}
	return all
}

// datastore returns texts to draft from: what the models prefer, and other texts.
func (l *lab) datastore() *datastore.Store {
	v, err := spelled()
	if err != nil {
		l.tb.Fatal(err)
	}
	b := datastore.NewBuilder(v)
	for _, text := range [][]token.ID{l.cycle(0, 100), l.cycle(21, 100), l.cycle(42, 100), {3, 9, 3, 9, 22, 23, 25}, {}} {
		if err := b.Add(text); err != nil {
			l.tb.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := b.Write(&file); err != nil {
		l.tb.Fatal(err)
	}
	s, err := datastore.Parse(file.Bytes())
	if err != nil {
		l.tb.Fatal(err)
	}
	return s
}

// doubtful returns a head that reads the states of a draft model, and by them expects some drafts to be accepted.
func doubtful(width int) *method.AcceptanceHead {
	h := &method.AcceptanceHead{Width: width, Weight: [2][]float32{make([]float32, width), make([]float32, width)}}
	for i := range width {
		h.Weight[1][i] = 4 - 8*float32(i%2)
	}
	return h
}

// periodic returns an embedding and a head that prefer the next token of a period.
func periodic(width int) (in, out []float32) {
	rng := rand.New(rand.NewPCG(9, 9))
	in, out = make([]float32, vocabulary*width), make([]float32, vocabulary*width)
	for id := range token.ID(vocabulary) {
		row, norm := in[int(id)*width:][:width], 0.0
		for i := range row {
			row[i] = 4 * float32(rng.NormFloat64())
			norm += float64(row[i]) * float64(row[i])
		}
		for i, v := range row {
			out[int(next(id))*width+i] = 0.8 * v / float32(math.Sqrt(norm))
		}
	}
	return in, out
}

// recurrent is model for one with every recurrence.
func (l *lab) recurrent(c modeltest.Recurrent) model.Model {
	l.tb.Helper()
	c.Vocab, c.Context = vocabulary, length
	c.Embed, c.Head = periodic(modeltest.RecurrentWidth)
	for i := range c.Embed { // the layers add more than those of attention do
		c.Embed[i], c.Head[i] = 2*c.Embed[i], 1.4*c.Head[i]
	}
	return c.Open(l.tb, l.pool)
}

// model makes a model whose layers are random by a seed, and whose embedding and head prefer the next token of a
// period.
func (l *lab) model(s modeltest.Spec) model.Model {
	l.tb.Helper()
	s.Layers = 4
	return l.louder(s, 1)
}

// louder is model with embeddings times factor, for layers that add more, and as many layers as the specification has.
func (l *lab) louder(s modeltest.Spec, factor float32) model.Model {
	l.tb.Helper()
	const width = 64
	s.Vocab, s.Width, s.Context = vocabulary, width, length
	metadata, tensors := s.Parts(l.tb)
	in, out := periodic(width)
	for i := range in {
		in[i] *= factor
	}
	for name, values := range map[string][]float32{"token_embd.weight": in, "output.weight": out} {
		t := tensors[slices.IndexFunc(tensors, func(t tensor.View) bool { return t.Name == name })]
		if err := tensor.Pack(tensor.F32, t.Data, values); err != nil {
			l.tb.Fatal(err)
		}
	}
	return l.open(metadata, tensors)
}

// open returns the model that a file of the metadata and tensors has.
func (l *lab) open(metadata []gguf.KV, tensors []tensor.View) model.Model {
	l.tb.Helper()
	m, err := model.Open(l.file(metadata, tensors), l.pool, model.Options{})
	if err != nil {
		l.tb.Fatal(err)
	}
	return m
}

// file returns the file of metadata and tensors.
func (l *lab) file(metadata []gguf.KV, tensors []tensor.View) *gguf.File {
	l.tb.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		l.tb.Fatal(err)
	}
	file, err := gguf.Parse(b.Bytes())
	if err != nil {
		l.tb.Fatal(err)
	}
	return file
}

// next is the successor that the models prefer.
func next(id token.ID) token.ID {
	from := id / period * period
	return from + (id+1-from)%min(period, vocabulary-from)
}

// cycle returns n tokens that follow each other.
func (l *lab) cycle(id token.ID, n int) (ids []token.ID) {
	for range n {
		ids = append(ids, id)
		id = next(id)
	}
	return ids
}

// prompt is a text with a few surprises that then repeats.
func (l *lab) prompt() []token.ID {
	return slices.Concat([]token.ID{0, vocabulary - 1, 33, 17, 17}, l.cycle(21, 25))
}

// after is what the models expect behind the prompt.
func (l *lab) after() token.ID {
	if s := l.target.Info().Source; s != nil {
		return next(s.Start) // the prompt is the source
	}
	p := l.prompt()
	return next(p[len(p)-1])
}

// engine makes an engine for the target.
func (l *lab) engine(c engine.Config) *engine.Engine {
	l.tb.Helper()
	return l.engineOf(l.target, c)
}

// helper returns a model that drafts as methods see it. Checks and methods share its engine: texts that end leave nothing in it.
func (l *lab) helper(m model.Model) method.Model {
	l.tb.Helper()
	e, ok := l.helpers[m]
	if !ok {
		e = l.engineOf(m, engine.Config{Seqs: 4})
		l.helpers[m] = e
	}
	return e.Model()
}

// canvas returns a draft model of masked diffusion. One of the suite's vocabulary drafts what the target prefers, first of all.
func (l *lab) canvas() method.Model {
	l.tb.Helper()
	if l.blocks != nil {
		return l.helper(l.blocks)
	}
	s := modeltest.Spec{Seed: 2, Arch: "dream"}
	if n := l.other.Info().Vocabulary; n != vocabulary {
		s.Vocab, s.Context = n, l.other.Info().Context
		metadata, tensors := s.Parts(l.tb)
		l.blocks = l.open(metadata, tensors)
	} else {
		l.blocks = l.model(s)
	}
	return l.helper(l.blocks)
}

func (l *lab) engineOf(m model.Model, c engine.Config) *engine.Engine {
	l.tb.Helper()
	e, err := engine.New(m, l.pool, c)
	if err != nil {
		l.tb.Fatal(err)
	}
	return e
}
