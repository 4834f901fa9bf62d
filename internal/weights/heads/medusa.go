package heads

import (
	"fmt"
	"strings"
)

// oldMedusa is the pattern of the names before heads were saved inside a model's files.
const oldMedusa = `^(\d+)\.(\d+)\.(?:linear\.)?(?:weight|bias)$`

// medusaRoot begins the names of heads inside a model's files.
const medusaRoot = "medusa_head."

// blocks are the numbered modules of Medusa's heads by their names.
type blocks struct{ heads, blocks, output int } // output: the number of the output matrix, -1 where there is none

// medusaBlocks counts the heads and what each has.
func (b *builder) medusaBlocks(root string) blocks {
	n := blocks{output: -1}
	quoted := strings.ReplaceAll(root, ".", `\.`)
	for _, at := range b.numbered(`^` + quoted + `(\d+)\.(\d+)\.linear\.(?:weight|bias)$`) {
		n.heads, n.blocks = max(n.heads, at[0]+1), max(n.blocks, at[1]+1)
	}
	for _, at := range b.numbered(`^` + quoted + `(\d+)\.(\d+)\.weight$`) {
		n.heads, n.output = max(n.heads, at[0]+1), max(n.output, at[1])
	}
	if n.output >= 0 {
		n.blocks = n.output
	}
	return n
}

// medusa presents heads of Medusa (Cai et al. 2024): blocks of a matrix and a bias around which the state passes, then a matrix of the
// vocabulary. Heads are counted by the tensors: settings of older files name another number.
func medusa(b *builder) {
	root := ""
	if b.has(medusaRoot) {
		root = medusaRoot
		b.leaveModel(root)
	}
	n := b.medusaBlocks(root)
	if said := b.Config.CountOr("medusa_num_heads", n.heads, 1, maxHeads); said != n.heads {
		b.note(fmt.Sprintf("config.json says medusa_num_heads %d; the file has %d heads, and all are taken", said, n.heads))
	}
	if n.output < 0 {
		n.blocks = max(n.blocks, b.Config.CountOr("medusa_num_layers", n.blocks, 1, maxHeads))
	}
	width, vocab := b.medusaShape(root, n)
	b.setWidth(width)
	if !b.OK() {
		return
	}
	b.SetCount(".block_count", n.heads)
	b.SetCount(".residual_count", n.blocks)
	b.setVocabulary(vocab)
	for k := range n.heads {
		from := func(j int) string { return fmt.Sprintf("%s%d.%d", root, k, j) }
		b.residual(fmt.Sprintf("blk.%d.res", k), n.blocks, func(j int) string { return from(j) + ".linear" })
		if n.output >= 0 {
			b.take(fmt.Sprintf("blk.%d.output.weight", k), from(n.output)+".weight", vocab, b.width)
		}
	}
}

// medusaShape returns the width and the vocabulary by the first matrices that are there.
func (b *builder) medusaShape(root string, n blocks) (width, vocab int) {
	for k := range n.heads {
		rows, cols := b.matrix(fmt.Sprintf("%s%d.%d.weight", root, k, n.output))
		if vocab == 0 {
			vocab = rows
		}
		if width == 0 {
			width = cols
		}
	}
	for k := range n.heads {
		if rows, _ := b.matrix(fmt.Sprintf("%s%d.0.linear.weight", root, k)); width == 0 {
			width = rows
		}
	}
	return width, vocab
}

// leaveModel leaves out the model that is in the same files.
func (b *builder) leaveModel(root string) {
	left := 0
	for _, t := range b.Weights.Tensors {
		if strings.HasPrefix(t.Name, "model.") || t.Name == "lm_head.weight" {
			b.used[t.Name] = true
			left++
		}
	}
	if left > 0 {
		b.note(fmt.Sprintf("%d tensors of the model in the same files are left out: a head file has only what begins with %s", left, root))
	}
}

// residual adds blocks of a square matrix and a bias. Published code with several blocks repeats one module, of which files of
// safetensors may hold one copy: a later block that is not there at all is the one before it.
func (b *builder) residual(to string, n int, from func(j int) string) {
	source := ""
	for j := range n {
		_, weight := b.Weights.Tensor(from(j) + ".weight")
		_, bias := b.Weights.Tensor(from(j) + ".bias")
		if weight || bias || source == "" {
			source = from(j)
		} else {
			b.note(fmt.Sprintf("%s is not in the file: it is %s again, as one repeated module", from(j), source))
		}
		b.take(fmt.Sprintf("%s.%d.weight", to, j), source+".weight", b.width, b.width)
		b.take(fmt.Sprintf("%s.%d.bias", to, j), source+".bias", b.width)
	}
}
