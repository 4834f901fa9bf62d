// Package reference is speculative decoding as the papers write it, to be read first: models are tables of conditionals,
// probabilities are float64, a draft tree is nodes with children, and a rule is a function of the tree. It shares no code with the engine.
// Tests hold the engine to it for every rule and every method: with the same random numbers, the same tokens and the same accepted drafts.
//
// This file is the round; rules.go has the acceptance rules.
package reference

import "slices"

// Model returns the distribution of the token behind a text, over a vocabulary of tokens from 0 on.
type Model func(text []int) []float64

// Node is a draft in its tree, or the root, which stands for the text.
type Node struct {
	Token int
	Next  []*Node   // the drafts behind it, in the order in which they were drawn; equal draws are one node, listed each time
	Q     []float64 // the distribution that Next was drawn from; nil: its drafts are no draws
	Text  []int     // down to it, its own token the last; set by the target's pass
	P     []float64 // the target's distribution of the token behind Text; set by the target's pass
}

// Dice are the random numbers of a text.
type Dice interface {
	// Draw returns the token that plain decoding draws behind a text, whose distribution is p.
	Draw(text []int, p []float64) int
	// Pick returns a token drawn from p, for a place in the text.
	Pick(p []float64, place int) int
	// Pass returns true with a probability. Tests of one place in the text have numbers.
	Pass(probability float64, place, test int) bool
}

// Drafter returns the root of a tree of drafts behind a text.
type Drafter func(text []int) *Node

// Rule decides which path of drafts becomes text, and which token follows it.
type Rule func(root *Node, d Dice) (accepted []*Node, next int)

// Decode adds at least n tokens to a text, round by round, and returns the text and the number of accepted drafts.
func Decode(text []int, n int, target Model, draft Drafter, rule Rule, d Dice) (_ []int, accepted int) {
	for end := len(text) + n; len(text) < end; {
		path, next := Round(text, target, draft, rule, d)
		for _, node := range path {
			text = append(text, node.Token)
		}
		text = append(text, next)
		accepted += len(path)
	}
	return text, accepted
}

// Round drafts a tree, passes the target over it once, and returns what the rule accepts: a path of drafts and one token more.
func Round(text []int, target Model, draft Drafter, rule Rule, d Dice) (accepted []*Node, next int) {
	root := draft(text)
	root.Text = text
	root.pass(target)
	return rule(root, d)
}

// pass computes the target's distribution behind a node and all below it: in the engine, the rows of one step.
func (n *Node) pass(target Model) {
	n.P = target(n.Text)
	for _, child := range n.Next {
		child.Text = append(slices.Clip(n.Text), child.Token)
		child.pass(target)
	}
}

// Draws returns a drafter of trees in which each node of a depth has widths[depth] draws from q: without replacement, or, of
// independent draws, widths[0] chains of len(widths) drafts that share their beginnings.
func Draws(q Model, independent bool, widths []int, d Dice) Drafter {
	var behind func(text []int, token, draws, depth int) *Node
	behind = func(text []int, token, draws, depth int) *Node {
		n := &Node{Token: token}
		if depth == len(widths) {
			return n
		}
		n.Q = q(text)
		left, count := slices.Clone(n.Q), map[int]int{}
		var ids []int
		for range draws {
			if sum(left) == 0 {
				break // all tokens of q were drawn
			}
			id := d.Pick(normalised(left), len(text))
			if ids = append(ids, id); !independent {
				left[id] = 0
			}
			count[id]++
		}
		nodes := map[int]*Node{}
		for _, id := range ids {
			if nodes[id] == nil {
				next := count[id]
				if !independent && depth+1 < len(widths) {
					next = widths[depth+1]
				}
				nodes[id] = behind(append(slices.Clip(text), id), id, next, depth+1)
			}
			n.Next = append(n.Next, nodes[id])
		}
		return n
	}
	return func(text []int) *Node { return behind(text, -1, widths[0], 0) }
}
