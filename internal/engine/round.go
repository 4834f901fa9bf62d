package engine

import (
	"grove/internal/compute"
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// round is the job that runs the last token of a sequence's text and the drafts behind it, and lets the rule turn
// them into text. It is the [verify.View] that the rule sees, and knows the state of the stages behind each node.
type round struct {
	s     *Sequence
	st    *step.Step     // while the rule runs
	root  forest.Node    // of the last token's row
	path  []forest.Node  // the root and the drafts that were accepted, live until they are settled
	drawn []SampledToken // tokens that the last round gave
	taken int            // of these, part of the text

	after  []sample.State // behind the text and the first tokens drawn, as many as there are
	states []sample.State // of the tree's root, and of its nodes by place; unknown: not asked for yet
	draws  []nodeDraw     // made by the rule
	dense  []float64      // a distribution
	must   []token.ID     // forced tokens
	extras extras
	ready  []sample.State // that stages prepare for
}

// nodeDraw is a token that was drawn behind a node.
type nodeDraw struct {
	node  int
	drawn SampledToken
}

const unknown sample.State = -1

// start begins a round: nothing but the root is known.
func (r *round) start() {
	r.states = append(r.states[:0], 0)
	r.draws = r.draws[:0]
}

// keep makes the state behind the tokens that were taken the one of the text's end.
func (r *round) keep() {
	if len(r.after) > 0 {
		r.s.chain.Keep(r.after[r.taken])
		r.after = r.after[:0]
	}
}

// forget forgets what was drawn and not taken.
func (r *round) forget() {
	r.disown()
	r.keep()
	r.drawn = r.drawn[:r.taken]
}

// disown makes rows of the last round that are no longer before the text's last token ones that were not accepted: those of tokens that were
// drawn and not taken, and that of the last token where the rule drew none behind it, which is run anew.
func (r *round) disown() {
	if sp := r.s.drafts; sp != nil && r.taken > 0 {
		sp.Disown(r.taken)
	}
}

// forced returns the tokens that must follow the text, which are drafts for free; none where the rule takes draws alone.
func (r *round) forced() []token.ID {
	r.must = r.must[:0]
	if !r.s.drafts.Rule.Needs.Distributions {
		r.must = r.s.chain.Forced(r.must, 0)
	}
	return r.must
}

// state returns the state behind a node of the tree.
func (r *round) state(node int) sample.State {
	for len(r.states) < node+2 {
		r.states = append(r.states, unknown)
	}
	if r.states[node+1] == unknown {
		n := &r.s.drafts.Tree.Nodes()[node]
		state := r.s.chain.Next(r.state(int(n.Parent)), n.ID)
		r.states[node+1] = state
	}
	return r.states[node+1]
}

// prepare lets stages prepare for the rows of the round while they run.
func (r *round) prepare() {
	if !r.s.chain.Prepares() {
		return
	}
	r.ready = append(r.ready[:0], 0)
	for _, n := range r.s.drafts.Plan.Chosen() {
		r.ready = append(r.ready, r.state(int(n)))
	}
	r.s.chain.Prepare(r.ready...)
}

// Allows implements [method.Legal].
func (r *round) Allows(node int, id token.ID) bool { return r.s.chain.Allows(r.state(node), id) }

// Need implements [step.Job].
func (r *round) Need() (step.Need, error) {
	if err := r.s.settle(); err != nil {
		return step.Need{}, err
	}
	n, err := r.s.reuse()
	if err != nil || n.Rows > 0 { // its prefix was taken
		return n, err
	}
	p := &r.s.drafts.Plan
	n.PageTokens += p.MaxRun()
	n.WindowTokens = min(n.PageTokens, n.WindowTokens+p.MaxRun())
	if n.Prompt > 1 { // its pages were taken: the text is computed anew up to its last token
		n.Prompt--
		return n, nil
	}
	n.Rows, n.Prompt, n.Decodes, n.Drafts = 1, 0, true, p
	return n, nil
}

// place adds the rows of the round. Drafts for which there is no room are left out; rows that drafters have run are
// taken further.
func (r *round) Place(st *step.Step) error {
	s, sp := r.s, r.s.drafts
	if s.trunk.Len() < len(s.text)-1 {
		return s.placeText(st, st.Rows())
	}
	want := sp.Wants.Rows
	want.Logits, want.State = true, want.State || sp.Rule.States
	root, err := st.Add(row(s.text[len(s.text)-1], forest.Trunk, sp.Tree.RootLive(), want))
	if err != nil {
		return err
	}
	r.root = root
	drafts := sp.Tree.Nodes()
	for i := range drafts {
		sp.Nodes[i], sp.Rows[i] = forest.Trunk, 0
	}
	next, live := int32(1), func() int { return s.e.steps.Cache.Forest.Live(s.trunk.Seq) }
	for _, c := range sp.Plan.Chosen() {
		parent := root
		if p := drafts[c].Parent; p != method.Root {
			parent = sp.Nodes[p]
		}
		if parent == forest.Trunk || live() > s.e.limits.Drafts && drafts[c].Live.Node == forest.Trunk {
			continue // its parent was left out, or it has no room beside rows that drafters have left
		}
		node, err := st.Add(row(drafts[c].ID, parent, drafts[c].Live, want))
		if err == nil {
			sp.Nodes[c], sp.Rows[c] = node, next
			next++
		}
	}
	r.placeExtra(st, next)
	return nil
}

// row returns the row of a token, which takes further what is live of it behind the same parent. The stream behind the last layer that it
// has run is there; a row of which earlier ones are wanted is run anew.
func row(id token.ID, parent forest.Node, live method.Live, want forest.Want) forest.Row {
	if live.Node != forest.Trunk && live.Parent == parent && want.Hidden.Minus(forest.LayerRange(0, live.Layer-1)) == want.Hidden {
		return forest.Row{Resume: live.Node, From: live.Layer, Want: want}
	}
	return forest.Row{ID: id, Parent: parent, Want: want}
}

// take lets the rule turn the rows' results into tokens, left to be taken one by one, and keeps the nodes that were
// accepted.
func (r *round) Take(st *step.Step) (done bool, err error) {
	s, sp := r.s, r.s.drafts
	if s.trunk.Len() < len(s.text)-1 {
		_, err := s.takeText(st)
		return false, err
	}
	s.chain.Wait()
	r.st = st
	r.start()
	sp.Outcome.Accepted, sp.Outcome.Next = sp.Outcome.Accepted[:0], token.None
	err = sp.Acceptor.Accept(r, &sp.Outcome)
	if more := r.accept(); err == nil {
		err = more
	}
	if err != nil && len(r.drawn) > 0 {
		err = nil // plain decoding meets it when it gets there
	}
	if err == nil {
		s.keepRound(st)
		r.keepExtra(st)
	} else {
		r.path, r.drawn, r.after = r.path[:0], r.drawn[:0], r.after[:0]
	}
	r.st = nil
	return true, err
}

// accept turns the outcome into tokens, and learns from it.
func (r *round) accept() error {
	s, sp := r.s, r.s.drafts
	r.path, r.drawn, r.taken = append(r.path[:0], r.root), r.drawn[:0], 0
	r.after = append(r.after[:0], 0)
	at := method.Root
	for _, node := range sp.Outcome.Accepted {
		if err := r.push(at, sp.Tree.Nodes()[node].ID); err != nil {
			return err
		}
		r.path, r.after = append(r.path, sp.Nodes[node]), append(r.after, r.state(node))
		at = node
	}
	id := sp.Outcome.Next
	if id == token.None {
		return nil
	}
	if err := r.push(at, id); err != nil {
		return err
	}
	r.after = append(r.after, s.chain.Next(r.state(at), id))
	return nil
}

// push makes a token behind a node one that the round gave.
func (r *round) push(node int, id token.ID) error {
	d, err := r.drawnAt(node, id)
	if err != nil {
		return err
	}
	r.drawn = append(r.drawn, d)
	r.s.drafts.Tree.Learn(node, id)
	return nil
}

// drawnAt returns the token as the rule drew it behind a node, or describes one that the rule did not draw.
func (r *round) drawnAt(node int, id token.ID) (SampledToken, error) {
	for i := range r.draws {
		if d := &r.draws[i]; d.node == node && d.drawn.ID == id {
			return d.drawn, nil
		}
	}
	return r.s.answer.describe(r.s.chain, r.state(node), r.result(node).Logits, r.index(node), id)
}

// result returns what the row of a node that was run gave.
func (r *round) result(node int) *compute.Result {
	if node == method.Root {
		return r.st.Result(0)
	}
	return r.st.Result(int(r.s.drafts.Rows[node]))
}

// index returns the place in the text of the token behind a node.
func (r *round) index(node int) int {
	return len(r.s.text) + r.s.drafts.Tree.DepthOf(node)
}

// Children implements [verify.View]. Of draws without replacement it leaves out those from the first one on that was
// not run: it has no row because there are too many drafts before it, whatever they are, so that the text keeps its
// distribution.
func (r *round) Children(dst []int, node int) []int {
	tree, n := r.s.drafts.Tree, len(dst)
	dst = tree.Children(dst, node)
	if len(tree.DraftDistribution(node).IDs) == 0 {
		return dst
	}
	for i := n; i < len(dst); i++ {
		if !r.Ran(dst[i]) && tree.Nodes()[dst[i]].Samples == 0 {
			return dst[:i]
		}
	}
	return dst
}

// Ran implements [verify.View].
func (r *round) Ran(node int) bool { return r.s.drafts.Rows[node] > 0 }

// Token implements [verify.View].
func (r *round) Token(node int) token.ID { return r.s.drafts.Tree.Nodes()[node].ID }

// Samples implements [verify.View].
func (r *round) Samples(node int) uint64 { return r.s.drafts.Tree.Samples(node) }

// DraftDistribution implements [verify.View].
func (r *round) DraftDistribution(node int) verify.Distribution {
	return r.s.drafts.Tree.DraftDistribution(node)
}

// Draw implements [verify.View].
func (r *round) Draw(node int) (token.ID, error) {
	d, err := r.s.answer.draw(r.s.chain, r.state(node), r.result(node).Logits, r.index(node))
	if err != nil {
		return token.None, err
	}
	r.draws = append(r.draws, nodeDraw{node, d})
	return d.ID, nil
}

// Probs implements [verify.View].
func (r *round) Probs(node int) ([]float64, error) {
	if r.dense == nil {
		r.dense = make([]float64, r.s.e.vocab)
	}
	return r.dense, r.s.chain.Probs(r.dense, r.state(node), r.result(node).Logits, r.index(node))
}

// Logits implements [verify.View].
func (r *round) Logits(node int) ([]float32, error) {
	return r.s.chain.Process(r.state(node), r.result(node).Logits), nil
}

// State implements [verify.View].
func (r *round) State(node int) []float32 { return r.result(node).State }

// Number implements [verify.View].
func (r *round) Number(node int, use verify.Purpose) float64 {
	return r.s.chain.Number(r.index(node), use)
}

// Pick implements [verify.View].
func (r *round) Pick(node int, p []float64) token.ID {
	return r.s.chain.Pick(p, r.index(node), verify.PurposeNext)
}
