package grow

import (
	"grove/internal/sample"
	"grove/method"
)

// MemoryFor returns what trees of a shape take, of so many drafts at most.
func (g *Grower) MemoryFor(drafts int, p sample.Params, model method.Size) method.Memory {
	r := PassMemory(model, max(1, min(g.shape.Beam, drafts)), g.shape.State)
	if g.shape.Draw != Likeliest {
		r.Distributions = method.DistributionBytes(drafts+1, method.Support(p, g.vocabulary))
	}
	return r
}

// PassMemory returns what passes of so many rows take that want logits: in the model, and the copies that the drafter reads.
func PassMemory(model method.Size, rows int, state bool) method.Memory {
	copied := 4 * rows * model.Vocabulary
	if state {
		copied += 4 * rows * model.Width
	}
	return method.Memory{Logits: model.RowBytes(rows) + copied}
}

// Held returns the room that the grower has made.
func (g *Grower) Held() method.Memory {
	return method.Memory{Distributions: method.DistributionBytes(1, cap(g.pairs.IDs))}
}

// HeldBytes returns the room of the copies that the rows' trunk has made.
func (r *Rows) HeldBytes() int { return HeldBytes(r.Trunk) }

// HeldBytes returns the room of the copies of results that a trunk has made; 0: it makes none, or is nil.
func HeldBytes(trunk method.Trunk) int {
	if t, ok := trunk.(interface{ HeldBytes() int }); ok {
		return t.HeldBytes()
	}
	return 0
}

// MemoryFor implements [method.Sized] for rows behind the text's own trunk, whose logits lie where those of the round's step will: the drafter
// has copies.
func (r *Rows) MemoryFor(int, sample.Params) method.Memory {
	return method.Memory{Logits: 4 * r.Size.Vocabulary * r.Pass}
}

// Held implements [method.Sized].
func (r *Rows) Held() method.Memory { return method.Memory{Logits: r.HeldBytes()} }

// MemoryFor implements [method.Sized].
func (d *Drafter) MemoryFor(drafts int, p sample.Params) method.Memory {
	return d.grower.MemoryFor(drafts, p, d.branch.Size)
}

// Held implements [method.Sized].
func (d *Drafter) Held() method.Memory {
	r := d.grower.Held()
	r.Logits = d.branch.HeldBytes()
	return r
}

// MemoryOf returns what a follower takes for passes in which so many tokens have logits.
func (f *Follower) MemoryOf(rows int) method.Memory { return PassMemory(f.Size, rows, false) }

// FixedSize returns how many drafts a fixed tree of the shape has.
func (s *Shape) FixedSize() (n int) {
	level := 1
	for _, ranks := range s.Ranks {
		made := level * ranks
		n, level = n+made, min(made, s.Beam)
	}
	return n
}
