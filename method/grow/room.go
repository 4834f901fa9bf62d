package grow

import (
	"grove/method"
	"grove/sample"
)

// RoomFor returns what trees of a shape take, of so many drafts at most.
func (g *Grower) RoomFor(drafts int, p sample.Params, model method.Size) method.Room {
	r := passRoom(model, max(1, min(g.shape.Beam, drafts)), g.shape.State)
	if g.shape.Draw != Likeliest {
		r.Distributions = method.DistributionBytes(drafts+1, method.Support(p, g.vocabulary))
	}
	return r
}

// passRoom returns what passes of so many rows take that want logits: in the model, and the copies that the drafter reads.
func passRoom(model method.Size, rows int, state bool) method.Room {
	copied := 4 * rows * model.Vocabulary
	if state {
		copied += 4 * rows * model.Width
	}
	return method.Room{Logits: model.RowBytes(rows) + copied}
}

// Held returns the room that the grower has made.
func (g *Grower) Held() method.Room {
	return method.Room{Distributions: method.DistributionBytes(1, cap(g.pairs.IDs))}
}

// HeldBytes returns the room of the copies that the rows' trunk has made.
func (r *Rows) HeldBytes() int {
	if t, ok := r.Trunk.(interface{ HeldBytes() int }); ok {
		return t.HeldBytes()
	}
	return 0
}

// RoomFor implements [method.Sized] for rows behind the text's own trunk, whose logits lie where those of the round's step will: the drafter
// has copies.
func (r *Rows) RoomFor(int, sample.Params) method.Room {
	return method.Room{Logits: 4 * r.Size.Vocabulary * r.Pass}
}

// Held implements [method.Sized].
func (r *Rows) Held() method.Room { return method.Room{Logits: r.HeldBytes()} }

// RoomFor implements [method.Sized].
func (d *Drafter) RoomFor(drafts int, p sample.Params) method.Room {
	return d.grower.RoomFor(drafts, p, d.branch.Size)
}

// Held implements [method.Sized].
func (d *Drafter) Held() method.Room {
	r := d.grower.Held()
	r.Logits = d.branch.HeldBytes()
	return r
}

// RoomOf returns what a follower takes for passes in which so many tokens have logits.
func (f *Follower) RoomOf(rows int) method.Room { return passRoom(f.Size, rows, false) }

// Most returns how many drafts a fixed tree of the shape has.
func (s *Shape) Most() (n int) {
	level := 1
	for _, ranks := range s.Ranks {
		made := level * ranks
		n, level = n+made, min(made, s.Beam)
	}
	return n
}
