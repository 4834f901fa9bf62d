// draftverify.go drafts with the target itself and passes over a fixed set of its layers, which was searched before (Draft & Verify, Zhang et
// al. 2023). A chain ends behind a draft whose probability is below a threshold, which follows the share of drafts that are accepted.
//
// Attention and feed-forward parts of layers are chosen apart where the model runs them apart, and else whole layers. The drafting rows hang from the text's own
// trunk and are dropped before the drafts are verified.

package self

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"grove/method"
	"grove/method/grow"
	"grove/method/layers"
)

const (
	draftverifyUsual   = 8    // drafts of a chain at most, where none is given: the paper's
	draftverifyDeepest = 25   // bounds the option depth
	draftverifyRatio   = 0.45 // layers passed over where no set is known, as swift begins
)

func init() {
	method.Register(method.Info{
		Name: "draft-verify", Paper: "Draft & Verify: self-speculative decoding, 2023", Kind: method.KindSelf, Grade: method.Exact,
		Needs: "a model of at least 3 layers", NotAuto: "swift drafts in the same way, and finds the layers while it decodes", RunsRows: true, Lasting: true,
		CheckNeeds: layers.Meets(3), Open: opener(draftverifyOptions{depth: draftverifyUsual}), WithOption: set, Options: fmt.Sprintf("skip=L-L+L+depth=%d", draftverifyUsual),
	})
}

// draftverifyOptions are what a user may choose.
type draftverifyOptions struct {
	skip  layers.Set
	given bool // skip is
	depth int
}

// set reads the options skip and depth, with a + between them. The parts of a set of layers are divided by + too.
func set(option string) (func(method.Env) (method.Method, error), string, error) {
	o, parts := draftverifyOptions{}, []string(nil)
	use := fmt.Sprintf("use skip=L-L+L, layers to pass over, from 0, of which aL names the attention part and fL the feed-forward part, and depth=N, the drafts of a chain, from 1 to %d, with a + between the two", draftverifyDeepest)
	for _, one := range strings.Split(option, "+") {
		name, value, named := strings.Cut(one, "=")
		n, err := strconv.Atoi(value)
		switch {
		case named && name == "skip" && parts == nil:
			parts = []string{value}
		case !named && parts != nil && o.depth == 0:
			parts = append(parts, one)
		case named && name == "depth" && err == nil && n >= 1 && n <= draftverifyDeepest && o.depth == 0:
			o.depth = n
		default:
			return nil, "", fmt.Errorf("option %q is not known; %s", option, use)
		}
	}
	if o.depth == 0 {
		o.depth = draftverifyUsual
	}
	spelling := fmt.Sprintf("depth=%d", o.depth)
	if o.given = parts != nil; o.given {
		var err error
		if o.skip, err = layers.Parse(strings.Join(parts, "+")); err != nil {
			return nil, "", fmt.Errorf("option %q: %w; %s", option, err, use)
		}
		spelling = fmt.Sprintf("skip=%s+%s", layers.Format(o.skip), spelling)
	}
	return opener(o), spelling, nil
}

func opener(o draftverifyOptions) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		m := &draftverify{size: e.Target.Size(), draftverifyOptions: o}
		switch {
		case o.skip.Within(0, m.size.Layers) != o.skip:
			return nil, fmt.Errorf("draft-verify: skip=%s: the model has %d layers; name layers from 0 to %d", layers.Format(o.skip), m.size.Layers, m.size.Layers-1)
		case o.skip != layers.Whole(o.skip[layers.Attention]) && m.size.AttentionShare == 0:
			return nil, fmt.Errorf("draft-verify: skip=%s: the model runs layers as a whole; name layers without a letter", layers.Format(o.skip))
		case !o.given:
			m.skip = layers.NewSearch(m.size.Layers, draftverifyRatio).Next().Best
		}
		return m, nil
	}
}

// draftverify has the set that all texts draft with.
type draftverify struct {
	size method.Size

	mu sync.Mutex
	draftverifyOptions
}

// Prime implements [method.Primer]: it takes over what [layers.Record] made of the set that a search found, unless the user gives one.
func (m *draftverify) Prime(state []byte) error {
	found, err := layers.ParseRecord(state, m.size.Layers)
	if err == nil && found != layers.Whole(found[layers.Attention]) && m.size.AttentionShare == 0 {
		err = fmt.Errorf("draft-verify: the record names parts of layers; the model runs layers as a whole")
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.given {
		m.skip = found
	}
	return nil
}

// NewDrafter implements [method.Method].
func (m *draftverify) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &draftverifyDrafter{Rows: grow.Rows{Trunk: own, Size: m.size, Pass: 1}, stop: threshold{depth: m.depth}}
	m.skip.Apply(&d.Like)
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: m.depth, Stop: func() grow.Stop { return &d.stop }}
	d.grower = grow.New(shape, d, d.Vocabulary(m.size.Vocabulary))
	return d, nil
}

// draftverifyDrafter grows a chain a round. It is the source of its logits.
type draftverifyDrafter struct {
	grow.Rows
	history *method.History
	grower  *grow.Grower
	stop    threshold
	at      int // length of the text
	first   [1]grow.LiveRow
}

// Begin implements [method.Drafter].
func (d *draftverifyDrafter) Begin(h *method.History) error {
	d.history, d.stop.greedy = h, h.Noise.Sampling.Greedy()
	return d.grower.Begin(h.Noise)
}

// Committed implements [method.Drafter].
func (d *draftverifyDrafter) Committed(u method.Update) { d.grower.Committed(u.IDs) }

// Draft implements [method.Drafter].
func (d *draftverifyDrafter) Draft(ctx context.Context, t *method.Tree) error {
	d.at, d.Live = len(d.history.IDs())-d.history.SourceLen, d.Live[:0]
	if d.at < 1 || d.at > d.Size.Context || t.Depth() < 1 {
		return nil
	}
	return errors.Join(d.grower.Grow(ctx, t, d.at), d.Trunk.Drop())
}

// Root implements [grow.LogitSource]: it runs the text's last token.
func (d *draftverifyDrafter) Root(ctx context.Context) (bool, error) {
	d.first[0] = grow.LiveRow{ID: d.history.Last(0), Parent: grow.None}
	return true, d.Run(ctx, d.first[:])
}

// Room implements [grow.LogitSource].
func (d *draftverifyDrafter) Room() (drafts, depth int) { return d.Rows.Room(), d.Size.Context - d.at }
