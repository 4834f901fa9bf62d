package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

// falconArch is the architecture of files of the family falcon: Falcon is also the name of language models, whose files have its name.
const falconArch = "falcon-draft"

func init() { model.RegisterModule(falconArch, openFalcon) }

// Bounds of an LSTM.
const (
	maxCells = 4  // layers
	maxPairs = 16 // pairs that a row carries
)

// falcon drafts a block of k tokens in one pass (Falcon, Gao et al. 2025, section 3). A row is a pair, a token and the target's final state before it, as EAGLE's, and
// stands for the state k places on. The k rows of a block see each other: the block of the last k pairs of a text gives the next k tokens, and the pairs of these
// and of the states that the rows gave are the next block. Behind the rows' layers is the target's head.
//
// What the layers read is the result of an LSTM (Hochreiter and Schmidhuber 1997) that begins with zeros at each row: it reads the row's pair behind the pairs
// before it, Pairs in all, and so a row depends on the inputs that it carries alone, wherever blocks begin. Zeros stand for pairs that are not there. Published files have
// one pair: their code hands the LSTM rows where it takes the texts of a batch, so that each row is a sequence of one and no state is carried on. Rows of the
// text outside the block see the rows before them; of a module of one layer they are the same as in a block.
//
// Keys of a file, behind its architecture: block_count, layers; block_size, k; lstm_pairs, 1 unless it is there; and those of attention. Tensors: lstm.N.ih [4 width, inputs]
// and, of several pairs, lstm.N.hh [4 width, width], the gates i, f, g and o in this order, each with a bias; lstm.0 reads an embedding and then a state; blk.N.* as EAGLE's;
// output_norm and output, where the module has them.
type falcon struct {
	info   *model.Info
	hp     model.Hyperparameters
	lent   model.Lent
	cells  []lstmCell
	layers []moduleLayer
	norm   compute.Vector      // empty: none
	own    *compute.Projection // nil: the target's head is lent
}

// lstmCell is a layer of an LSTM. Its gates are those of the input, of forgetting, the candidate and the output's.
type lstmCell struct {
	in    compute.Projection
	back  *compute.Matrix // of the cell's last result; nil: there is none
	bias  compute.Vector  // of it; empty: none
	width int
}

// lstmState is what a cell has read of some rows.
type lstmState struct{ out, cell compute.Buf }

func openFalcon(l *model.Loader) model.Model {
	s := l.ModuleHyperparameters(l.Count("block_count", 1, maxLayers), true)
	m := &falcon{info: l.Info(), hp: s, lent: l.Lent()}
	b := &forest.Block{Size: l.Count("block_size", 1, maxBlock), Sees: true}
	b.Pairs = l.CountOr("lstm_pairs", 1, 1, max(1, min(maxPairs, b.Size)))
	m.info.Module = &forest.Module{Family: "falcon", FeedsState: true, Block: b}
	inputs := 2 * s.Width
	for i := 0; i < maxCells && (i == 0 || l.Has(fmt.Sprintf("lstm.%d.ih.weight", i))); i++ {
		m.cells = append(m.cells, openLSTM(l, fmt.Sprintf("lstm.%d.", i), s.Width, inputs, b.Pairs > 1))
		inputs = s.Width
	}
	if name := fmt.Sprintf("lstm.%d.ih.weight", maxCells); l.Has(name) {
		l.Fail("tensor %q is there; an LSTM has %d layers at most", name, maxCells)
	}
	rope := l.Rope(s, l.BoolOr("rope.neox", true))
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, openLayer(l, s, i, s.Width, rope))
	}
	m.norm, m.own = l.VectorIf("output_norm.weight", s.Width), ownHead(l, s, nil)
	return m
}

// openLSTM loads a cell; back says that it reads its own results.
func openLSTM(l *model.Loader, prefix string, width, inputs int, back bool) lstmCell {
	c := lstmCell{in: l.Projection(prefix+"ih", 4*width, inputs), bias: l.VectorIf(prefix+"hh.bias", 4*width), width: width}
	if back {
		c.back = l.Matrix(prefix+"hh.weight", 4*width, width)
	}
	return c
}

// Info implements [model.Model].
func (m *falcon) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *falcon) Forward(x *compute.Exec) {
	width, pairs := m.info.Width, m.info.Module.Block.Pairs
	x.EmbedPairs(m.lent.Embed, m.lent.EmbedScale, pairs*width, pairs-1)
	for i := range m.layers {
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		if i == 0 {
			x.CopyHeads(stream, 0, m.read(x, stream), 0, width, 1)
		}
		x.Leave(m.layers[i].forward(x, stream, m.hp.Eps))
	}
	headOf(x, &m.lent, m.norm, m.own, m.hp.Eps)
}

// read returns what the LSTM makes of the pairs that rows carry, the farthest first. A row's own pair comes first in what it carries: its
// features are followed by the embeddings of the tokens before its own.
func (m *falcon) read(x *compute.Exec, own compute.Buf) (h compute.Buf) {
	var states [maxCells]lstmState
	width, pairs := m.info.Width, m.info.Module.Block.Pairs
	for back := pairs - 1; back >= 0; back-- {
		embedding := own
		if back > 0 {
			embedding = x.Carried((pairs+back-1)*width, width)
		}
		h = x.Join(embedding, x.Carried(back*width, width))
		for i := range m.cells {
			m.cells[i].read(x, h, &states[i], back == pairs-1)
			h = states[i].out
		}
	}
	return h
}

// read reads a row more: c = f c + i g, and the result is o tanh(c).
func (c *lstmCell) read(x *compute.Exec, h compute.Buf, s *lstmState, first bool) {
	gates, w := x.Linear(c.in, h), c.width
	if !first {
		gates = x.Add(gates, x.Linear(compute.Projection{Matrix: c.back}, s.out))
	}
	if c.bias.Len() > 0 {
		gates = x.AddVector(gates, c.bias)
	}
	cell := x.Mul(x.Tanh(x.Part(gates, 2*w, w)), x.Sigmoid(x.Part(gates, 0, w)))
	if !first {
		cell = x.Add(cell, x.Mul(x.Sigmoid(x.Part(gates, w, w)), s.cell))
	}
	s.cell = cell
	s.out = x.Mul(x.Tanh(x.Part(cell, 0, w)), x.Sigmoid(x.Part(gates, 3*w, w)))
}
