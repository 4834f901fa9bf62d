package verify

// Match draws from the target as plain decoding does, and follows the drafts that equal the draws. It takes any tree,
// however it was made. Where drafter and target share the noise of the draw, it is Gumbel-coupled matching.
var Match = register(Rule{
	Name: "match", Paper: "Target-sample matching, as EAGLE and OPT-Tree use it, 2024", Grade: Exact,
	New: func() Acceptor { return new(match) },
})

type match struct{ children []int }

// Accept implements [Acceptor].
func (m *match) Accept(v View, out *Outcome) error { return m.follow(v, out, nil) }

// follow accepts the drafts that equal the target's draws and, where none behind a node does, the one that other returns;
// Root: none.
func (m *match) follow(v View, out *Outcome, other func(v View, node int, children []int) (int, error)) error {
	out.reset()
	for node := Root; ; {
		id, err := v.Draw(node)
		if err != nil {
			return err
		}
		m.children = v.Children(m.children[:0], node)
		at := node
		node = Root
		for _, c := range m.children {
			if v.Token(c) == id {
				node = c
				break
			}
		}
		if node == Root && other != nil && len(m.children) > 0 {
			if node, err = other(v, at, m.children); err != nil {
				return err
			}
		}
		if node == Root {
			out.Next = id
			return nil
		}
		if !out.step(v, node) {
			return nil
		}
	}
}
