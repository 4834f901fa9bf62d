package grove

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grove/internal/engine"
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
