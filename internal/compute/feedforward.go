package compute

import "grove/internal/kernel"

// A Gate is the activation of a gated feed-forward block.
type Gate int

// The gates. GeluGate is the approximation by tanh, GeluErfGate GELU itself.
const (
	noGate Gate = iota
	SiluGate
	GeluGate
	GeluErfGate
)

// FeedForward returns the products of each row with down, of gate(g) * u, where g and u are its products with the two
// matrices of gateUp, of as many outputs each (N1, N4). The thread that has computed some outputs of both gates them, and
// rounds them for the next product: they are in its cache.
func (x *Exec) FeedForward(gateUp []Projection, down Projection, gate Gate, a Buf) Buf {
	t := &x.linearTask
	t.begin(x, a)
	g, u := x.alloc(a.rows, gateUp[0].Matrix.Out()), x.alloc(a.rows, gateUp[1].Matrix.Out())
	t.add(gateUp[0], g, nil)
	t.add(gateUp[1], u, nil)
	t.gate = gate
	if down.Matrix.Format.Quantized {
		t.rounded = x.otherRows(g)
	}
	t.run()
	g = x.changed(g)
	if t.rounded != nil {
		x.current, x.quantizedID = 1-x.current, g.id
	}
	return x.Linear(down, g)
}

// unitGroups is the groups of both matrices that a gate takes together: their outputs are a block of rounded activations.
const unitGroups = kernel.QBlock / SubsetGroup

// unitsOf returns the groups of the units [first, end).
func (t *linearTask) unitsOf(first, end int) (from, to int) {
	return first * unitGroups, min(end*unitGroups, t.parts[0].groups)
}

// gated computes the units [first, end) of a gated product, for the rows from row on.
func (t *linearTask) gated(worker int, rows *kernel.Rows, row, first, end int) {
	g, u := &t.parts[0], &t.parts[1]
	first, end = t.unitsOf(first, end)
	t.multiply(g, worker, rows, row, first, end)
	t.multiply(u, worker, rows, row, first, end)
	lo, hi := first*g.Matrix.Format.Group, min(end*g.Matrix.Format.Group, g.Matrix.Out())
	for r := row; r < row+rows.N; r++ {
		gate, up := g.dst.row(r)[lo:hi], u.dst.row(r)[lo:hi]
		switch t.gate {
		case SiluGate:
			kernel.SiluMul(gate, gate, up)
		case GeluGate:
			kernel.GeluMul(gate, gate, up)
		case GeluErfGate:
			kernel.GeluErfMul(gate, gate, up)
		}
		if t.rounded != nil {
			round(t.rounded, r, lo, hi)
		}
	}
}
