package method

import (
	"fmt"
	"slices"
	"strings"

	"grove/internal/verify"
)

// What a user may write in place of a list of methods, and of a rule.
const (
	Auto    = "auto"  // every method that automatic mode uses
	Off     = "off"   // plain decoding
	OwnRule = "exact" // the method's own rule, so that its grade holds
)

// Parse returns the methods that a list of names stands for, separated by commas; none for [Off]. The empty list is [Auto]: auto tells
// that methods whose needs are not met may be left out. Errors: a name that is not known or stands twice.
func Parse(list string) (infos []Info, auto bool, err error) {
	switch list {
	case "", Auto:
		return slices.Clone(automatic), true, nil
	case Off:
		return nil, false, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i, err := Find(strings.TrimSpace(name))
		if err != nil {
			return nil, false, err
		}
		for _, has := range infos {
			if has.Name == i.Name {
				return nil, false, fmt.Errorf("method %s is named twice; name it once", i.Name)
			}
		}
		infos = append(infos, i)
	}
	return infos, false, nil
}

// Name returns the one name of a list that [Parse] has read: equal methods have equal names, however the list was written.
func Name(infos []Info, auto bool) string {
	if auto {
		return Auto
	}
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return strings.Join(names, ",")
}

// Replayable returns the list of those methods that draft from text alone and whose needs are met, as [Parse] takes it.
func Replayable(infos []Info, env Env) string {
	var names []string
	for _, i := range infos {
		if i.Replays && i.Unmet(env) == nil {
			names = append(names, i.Name)
		}
	}
	return strings.Join(names, ",")
}

// Unmet returns an error that wraps [ErrNeeds] and says what the method needs, where env does not offer it.
func (i Info) Unmet(env Env) error {
	if i.CheckNeeds == nil {
		return nil
	}
	if err := i.CheckNeeds(env); err != nil {
		return fmt.Errorf("needs %s: %w", i.Needs, err)
	}
	return nil
}

// Check returns an error where methods cannot draft together with what env offers: two with different rules, or one whose need is unmet.
func Check(infos []Info, env Env) error {
	for _, i := range infos {
		if i.Rule.New != nil && i.Rule.Name != verify.Match.Name && len(infos) > 1 {
			return fmt.Errorf("method %s verifies its drafts by the rule %s: it cannot work beside methods with other rules", i.Name, i.Rule.Name)
		}
		if err := i.Unmet(env); err != nil {
			return fmt.Errorf("method %s %w", i.Name, err)
		}
	}
	return nil
}

// FindRule returns the rule of a name; the zero value for "" and [OwnRule].
func FindRule(name string) (verify.Rule, error) {
	if name == "" || name == OwnRule {
		return verify.Rule{}, nil
	}
	r, err := verify.Find(name)
	if err != nil {
		return r, fmt.Errorf("%w; %s keeps the methods' own", err, OwnRule)
	}
	return r, nil
}

// RuleWith is FindRule for a model with a head for the rule judge; nil: it has none, and the rule is refused.
func RuleWith(name string, head *verify.Head) (verify.Rule, error) {
	r, err := FindRule(name)
	switch {
	case err != nil || r.Name != verify.Judge.Name:
		return r, err
	case head == nil:
		return r, fmt.Errorf("the rule %s needs a head, and the model was opened without one; give a file (--judge)", r.Name)
	}
	return verify.WithHead(r, head), nil
}

// GradeWith is GradeOf for a model with a head for the rule judge; see [RuleWith].
func GradeWith(list, rule string, head *verify.Head) (Grade, error) {
	if _, err := RuleWith(rule, head); err != nil {
		return "", err
	}
	return GradeOf(list, rule)
}

// GradeOf returns the grade of a text that is drafted by a list of methods and verified by a rule: that of the rule, or the lowest of the
// methods'. Errors: those of [Parse] and [FindRule], a rule where nothing drafts.
func GradeOf(list, rule string) (Grade, error) {
	infos, _, err := Parse(list)
	if err != nil {
		return "", err
	}
	r, err := FindRule(rule)
	switch {
	case err != nil:
		return "", err
	case r.New != nil && len(infos) == 0:
		return "", fmt.Errorf("the rule %s verifies drafts, and drafting is off; choose a method, or leave the rule out", r.Name)
	case r.New != nil:
		return r.Grade, nil
	}
	grade := Exact
	for _, i := range infos {
		if i.Grade == Lossy || i.Grade == SameDistribution && grade == Exact {
			grade = i.Grade
		}
	}
	return grade, nil
}
