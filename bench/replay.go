package bench

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"grove"
	"grove/method"
)

// ReplayOptions selects the answers to replay, and the method.
type ReplayOptions struct {
	Methods []string    // as [grove.Request] takes them
	Cost    *grove.Cost // of the steps

	// LeftOut, where it is not nil, gets the methods that cannot be replayed. They are left out.
	LeftOut func(method string, err error)
}

// ReplayMethods scores methods that draft from text alone on the recorded answers of a workload, at a given cost of steps, and returns how
// many tasks have no answer on record. Of these the second half of the prompt is replayed behind the first. Each task is replayed by all
// methods in turn, so that a machine that changes its speed changes all of them; what a method learns of a task counts for the next.
func ReplayMethods(ctx context.Context, m *grove.Model, prompts []Prompt, o ReplayOptions, progress Progress) (figures []MethodFigures, halved int, err error) {
	names, err := replayable(o)
	if err != nil {
		return nil, 0, err
	}
	b := newBoard(names, prompts, o.LeftOut)
	for i, p := range prompts {
		if p.Output == "" {
			p.Prompt, p.Output = halves(p.Prompt)
			halved++
		}
		err := b.task(p, func(name string) (func(*tally), error) {
			stats, plain, err := m.Replay(ctx, name, p.Prompt, p.Output, p.Prediction, o.Cost)
			return func(t *tally) { t.replay(stats, plain) }, err
		})
		if err != nil {
			return nil, 0, err
		}
		progress.show(i+1, len(prompts))
	}
	figures = b.figures(o.Cost)
	for i := range figures {
		figures[i].Replay = true
	}
	return figures, halved, nil
}

// replayable returns the methods without those that are left out.
func replayable(o ReplayOptions) (names []string, err error) {
	for _, name := range o.Methods {
		infos, auto, err := method.Parse(name)
		for _, i := range infos {
			if err == nil && !i.Replays && !auto {
				err = fmt.Errorf("method %s drafts from %s and cannot be replayed without the model", i.Name, i.Kind)
			}
		}
		switch {
		case err == nil:
			names = append(names, name)
		case o.LeftOut == nil:
			return nil, fmt.Errorf("bench: %w", err)
		default:
			o.LeftOut(name, err)
		}
	}
	return names, nil
}

// halves cuts a text in two.
func halves(text string) (first, second string) {
	at := len(text) / 2
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[:at], text[at:]
}

func (t *tally) replay(stats grove.SpecStats, plain time.Duration) {
	t.tasks++
	t.tokens += stats.Tokens
	t.plain += plain.Seconds()
	t.seconds += (stats.Drafting + stats.Stepping).Seconds()
	t.spec.Add(stats)
}
