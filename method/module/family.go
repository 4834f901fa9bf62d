package module

import (
	"fmt"

	"grove/method"
)

// Family is the modules that a method drafts with.
type Family struct {
	Name  string
	Has   func(*method.Module) bool // reports whether a module of the family has what the method drafts by; nil: each has
	Lacks string                    // for errors, of modules that have not, such as "draft no blocks"
}

// Meets is [method.Info.CheckNeeds] of methods that need a module of the family.
func (f Family) Meets(e method.Env) error {
	m := e.Module(f.Name)
	switch {
	case m == nil && len(e.Modules) > 0:
		return fmt.Errorf("%w; the heads that are open are of the family %s", method.ErrNeeds, e.Modules[0].Family)
	case m == nil:
		return method.ErrNeeds
	case f.Has != nil && !f.Has(m):
		return fmt.Errorf("%w; the heads that are open %s", method.ErrNeeds, f.Lacks)
	}
	return nil
}

// MeetsOnTrunk is Meets of methods whose rows are the target's own too, on the text's trunk.
func (f Family) MeetsOnTrunk(e method.Env) error {
	if err := f.Meets(e); err != nil {
		return err
	}
	if e.Target == nil {
		return method.ErrOnRecord
	}
	return nil
}

// Info completes the description of an exact method that drafts with the family, by its kind, its grade and its needs.
func (f Family) Info(i method.Info) method.Info {
	i.Kind, i.Grade = method.KindHeads, method.Exact
	if i.CheckNeeds == nil {
		i.CheckNeeds = f.Meets
	}
	if i.Needs == "" {
		i.Needs = "heads of the family " + f.Name + " (--heads)"
	}
	return i
}

// Method is Info of a method with options, which needs no trunk of the target: draft makes a drafter with a module, for the vocabulary of the target and the numbers of the options.
func (f Family) Method(i method.Info, options []method.Option, draft func(m *method.Module, vocabulary int, n []int) method.Drafter) method.Info {
	return f.Info(i).Takes(options, func(e method.Env, n []int) (method.Method, error) {
		return opened(func() method.Drafter { return draft(e.Module(f.Name), e.Vocabulary, n) }), nil
	})
}

// opened is a method of which nothing lasts but its module.
type opened func() method.Drafter

// NewDrafter implements [method.Method].
func (o opened) NewDrafter(method.Trunk) (method.Drafter, error) { return o(), nil }
