package grove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"grove/internal/engine"
	"grove/internal/engine/plan"
	"grove/internal/fileio"
	"grove/internal/kernel"
	"grove/internal/resident"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// The names of [Request.Method] that stand for no method of their own.
const (
	MethodAuto = method.Auto // every exact method that the model allows, each used where it pays
	MethodOff  = method.Off  // plain decoding
)

// Grade says what an answer has in common with that of plain decoding: [Exact], the same distribution, or [Lossy].
type Grade = method.Grade

// MethodInfo describes a method of drafting.
type MethodInfo struct {
	Name    string       `json:"name"`
	Paper   string       `json:"paper"`
	Kind    method.Kind  `json:"kind"`
	Grade   method.Grade `json:"grade"`
	Needs   string       `json:"needs,omitempty"`
	Auto    bool         `json:"auto"`
	NotAuto string       `json:"not_auto,omitempty"` // why automatic mode does not use it

	Options string `json:"options,omitempty"` // behind the name, with the value where none is given: NAME:option=value
}

// The values of [Request.Accept].
const (
	AcceptExact   = method.OwnRule // by the method's own rule: its grade holds
	AcceptTypical = "typical"      // drafts that are likely enough, too: another text above temperature 0
)

const (
	// Exact is the grade of methods that give the tokens and log-probabilities of plain decoding.
	Exact = method.Exact
	// Lossy is the grade of what gives another text.
	Lossy = method.Lossy
	// KindModel is the kind of methods that draft by a second model.
	KindModel = method.KindModel
)

// Methods returns the methods that there are.
func Methods() []MethodInfo {
	var all []MethodInfo
	for _, i := range method.All() {
		all = append(all, MethodInfo{i.Name, i.Paper, i.Kind, i.Grade, i.Needs, i.Auto, i.NotAuto, i.Options})
	}
	return all
}

// ModelMethod is a method, and whether one model can use it.
type ModelMethod struct {
	MethodInfo
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"` // why it is not available
}

// Methods returns the methods that there are, and which of them requests to this model can use. A method whose need is met by
// a request (guided: a prediction, or a source) is available. Methods is safe for concurrent use.
func (m *Model) Methods() []ModelMethod {
	var all []ModelMethod
	env := m.resident.Env()
	for i, info := range Methods() {
		of := ModelMethod{MethodInfo: info, Available: true}
		if err := method.All()[i].Unmet(env); err != nil {
			of.Available, of.Reason = false, "it "+err.Error()
		}
		all = append(all, of)
	}
	return all
}

// MethodGrade returns the lowest grade of a list of methods as [Request] takes it, and "" where a name is not known.
func MethodGrade(list string) Grade {
	grade, err := method.GradeOf(list, "")
	if err != nil {
		return ""
	}
	return grade
}

// Rules returns the rules by which drafts become text.
func Rules() []verify.Rule { return verify.Rules() }

// CheckMethods returns an error where a list of methods, or a rule of acceptance, is none that a [Request] takes.
func CheckMethods(list, accept string) error {
	if _, err := method.GradeOf(list, accept); err != nil {
		return fmt.Errorf("grove: %w", err)
	}
	return nil
}

// Replay follows an answer on record as if the model had given it and returns what a method that drafts from text
// alone would have done, and how long plain decoding would have taken, at the cost c of some model's steps; see
// [engine.Engine.Replay]. Of [MethodAuto], those are replayed that draft from text.
func (m *Model) Replay(ctx context.Context, list, prompt, output, prediction string, c *Cost) (SpecStats, time.Duration, error) {
	infos, auto, err := method.Parse(list)
	if err != nil {
		return SpecStats{}, 0, err
	}
	if auto {
		list = method.Replayable(infos, m.resident.Env())
	}
	d, err := m.resident.Drafting(ctx, list)
	if err != nil {
		return SpecStats{}, 0, err
	}
	if d == nil {
		return SpecStats{}, 0, errors.New("grove: no method of the list drafts from text alone; name one that does")
	}
	var ids [3][]token.ID
	for i, text := range []string{prompt, output, prediction} {
		if ids[i], err = m.Tokenize(text, i == 0, false); err != nil {
			return SpecStats{}, 0, err
		}
	}
	return m.engine.Replay(ctx, d, c, engine.Recorded{Prompt: ids[0], Output: ids[1], Prediction: ids[2]})
}

// SpecStats has the counts and times of drafting.
type SpecStats = engine.SpecStats

// speculate makes the sequence draft as the request asks.
func (g *Generation) speculate(s *engine.Sequence, draft *engine.Drafting) error {
	if draft == nil {
		return nil
	}
	if err := s.SetDrafting(draft, g.prediction); err != nil {
		return g.model.resident.DraftError(err)
	}
	s.SetRemote(g.req.Drafts)
	g.stats.RoundBytes, _, g.stats.MaxDrafts = s.DraftMemory()
	rule, err := method.RuleWith(g.req.Accept, g.model.resident.Judge)
	if err = errors.Join(err, s.SetRule(rule)); err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// skip reads which layers the answer's tokens skip.
func (g *Generation) skip() (err error) {
	r := &g.req
	if g.places, err = g.model.resident.Places(r.SkipLayers, r.Method, r.Search); err == nil && g.places.On() {
		r.Method, g.stats.Grade = MethodOff, Lossy
	}
	return err
}

// Cost is the seconds of a step on this machine by the step size; see [engine.Cost].
type Cost = engine.Cost

// Tune measures the cost of steps on this machine, in less than three seconds for any model, and writes it to the
// user's cache directory, where the next [Open] of this model finds it. It returns the cost and the path of its file.
// Errors: [ErrCost] where that cannot be written, before anything is measured; ctx's, the model's.
func (m *Model) Tune(ctx context.Context) (*Cost, string, error) {
	if err := m.generates(); err != nil {
		return nil, "", err
	}
	path, err := m.engine.CostPath()
	if err == nil {
		err = fileio.CheckCache(path)
	}
	if err != nil {
		return nil, "", fmt.Errorf("grove: %w: %w", ErrCost, err)
	}
	c, err := m.engine.Tune(ctx)
	if err != nil {
		return nil, "", err
	}
	path, err = m.engine.SaveCost()
	if err != nil {
		err = fmt.Errorf("grove: %w: %w", ErrCost, err)
	}
	return c, path, err
}

// Primed describes the file that [Model.Prime] wrote.
type Primed = resident.Primed

// Prime computes the likeliest successors of the n tokens with the lowest ids, which vocabularies give to the commonest ones, on the first layer of
// the model or on all, and writes them to the user's cache directory. The methods recycle and goose of models that are opened later begin with
// them. told is told the progress. It changes the speed alone. Errors: an [*OptionError] for n out of range, [ErrBusy], ctx's, the model's.
func (m *Model) Prime(ctx context.Context, n int, told func(done, all int)) (Primed, error) {
	if err := m.generates(); err != nil {
		return Primed{}, err
	}
	return m.resident.Prime(ctx, n, told)
}

// LayerSet describes the layers that [Model.SearchLayers] found.
type LayerSet = resident.LayerSet

// SearchLayers searches the layers that the method draft-verify passes over, in so many trials of 32 tokens each, and writes them to the user's cache
// directory: the method begins with them where the model is opened later. told is told the progress, in tokens. It changes the speed alone.
// Errors: an [*OptionError] for trials out of range, [ErrBusy], ctx's, the model's.
func (m *Model) SearchLayers(ctx context.Context, trials int, told func(done, all int)) (LayerSet, error) {
	if err := m.generates(); err != nil {
		return LayerSet{}, err
	}
	return m.resident.SearchLayers(ctx, trials, told)
}

// Cost returns the cost of steps as it is known now; nil: it was never measured.
func (m *Model) Cost() *Cost { return m.engine.Cost() }

// WriteCost writes a cost as a table: the time of steps of several sizes at several depths, all rows with
// logits, and as multiples of a step of one row.
func WriteCost(w io.Writer, c *Cost) error {
	fmt.Fprintf(w, "| rows | depth | T ms | T/T(1) |\n|---|---|---|---|\n")
	one := c.Seconds(plan.StepSize{Rows: 1, Logits: 1})
	for _, depth := range []int{0, 1024, 4096} {
		for _, rows := range c.Rows {
			s := c.Seconds(plan.StepSize{Rows: rows, Depth: depth, Logits: rows})
			if _, err := fmt.Fprintf(w, "| %d | %d | %.2f | %.2f |\n", rows, depth, 1e3*s, s/one); err != nil {
				return err
			}
		}
	}
	if c.Expert > 0 {
		fmt.Fprintf(w, "\neach expert that a layer's rows touch: %.3f ms\n", 1e3*c.Expert)
	}
	return nil
}

// maxCost bounds the file of a cost.
const maxCost = 1 << 16

// ReadCost reads a cost of steps as grove tune --json writes it, and checks that it makes sense.
func ReadCost(r io.Reader) (*Cost, error) {
	c := new(Cost)
	d := json.NewDecoder(io.LimitReader(r, maxCost))
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("grove: the cost of steps: %w", err)
	}
	if !c.Valid() {
		return nil, fmt.Errorf("grove: the cost of steps is invalid; grove tune --json writes one")
	}
	return c, nil
}

// checked are the checks of this process.
var checked resident.Kernels

// Kernels returns the implementations of the kernels that this machine can run, the fastest first. Their bits are equal.
func Kernels() []string { return kernel.Implementations() }

// UseKernels makes an implementation that [Kernels] lists run instead of the fastest. It is called before a model is
// opened. An unknown name is an error, and so is an implementation that differs from the portable one on this machine.
func UseKernels(name string) error { return checked.Use(name) }

// A KernelCheck is the comparison of an implementation of the kernels with the portable one, bit for bit, on this machine.
type KernelCheck = resident.KernelCheck
