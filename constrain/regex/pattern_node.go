package regex

// op is what a node of an expression does.
type op uint8

const (
	opEmpty  op = iota // the empty text
	opSet              // one character of set
	opCat              // subs, one after the other
	opAlt              // one of subs
	opRepeat           // subs[0], min to max times; max < 0: without bound
	opLook             // the text after this place begins with subs[0]; negated: it does not
	opBehind           // the character before this place is what subs[0] says; negated: it is not
	opStart            // no character stands before this place
	opEnd              // no character stands after this place
	opLine             // a line starts here
	opStop             // a line ends here
	opBound            // a word begins or ends here; negated: none does
)

// patternNode is a part of an expression.
type patternNode struct {
	op       op
	negated  bool
	pure     bool // nothing below looks at the text around it
	set      patternSet
	subs     []*patternNode
	min, max int
	at       int // byte of the source
}

// nothing is the node of the empty text.
func nothing(at int) *patternNode { return &patternNode{op: opEmpty, pure: true, at: at} }

// character is the node of one character.
func character(s patternSet, at int) *patternNode {
	return &patternNode{op: opSet, pure: true, set: s, at: at}
}

// group joins nodes by an operation: opCat or opAlt.
func group(o op, subs []*patternNode, at int) *patternNode {
	if len(subs) == 1 {
		return subs[0]
	}
	if len(subs) == 0 {
		return nothing(at)
	}
	n := &patternNode{op: o, pure: true, subs: subs, at: at}
	for _, sub := range subs {
		n.pure = n.pure && sub.pure
	}
	return n
}

// patternRepeat repeats a node.
func patternRepeat(sub *patternNode, lo, hi, at int) *patternNode {
	return &patternNode{op: opRepeat, pure: sub.pure, subs: []*patternNode{sub}, min: lo, max: hi, at: at}
}

// empty reports whether a node consumes no character whatever the text is.
func (n *patternNode) empty() bool {
	switch n.op {
	case opSet:
		return false
	case opCat, opAlt, opRepeat:
		for _, sub := range n.subs {
			if !sub.empty() {
				return false
			}
		}
	}
	return true
}
