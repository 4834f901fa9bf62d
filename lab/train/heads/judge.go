package main

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"math"
	"slices"
	"strings"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
)

const (
	shownBytes = 400 // of a file before a function
	bodyTokens = 160 // of a completion, at most
)

// task is a function to complete: what is shown, and its head.
type task struct{ shown, head string }

// tasks returns n functions of files, one of each.
func tasks(held bool, n int, seed uint64) (all []task, err error) {
	files, err := corpus(held, seed)
	for _, f := range files {
		if t, ok := cut(f.text); ok && len(all) < n {
			all = append(all, t)
		}
	}
	return all, err
}

// cut returns the first function of 3 to 30 lines of a file, up to its opening brace, with some of what is before it, as _complete does.
func cut(text string) (task, bool) {
	set := gotoken.NewFileSet()
	file, err := parser.ParseFile(set, "", text, 0)
	if err != nil {
		return task{}, false
	}
	at := func(p gotoken.Pos) int { return set.Position(p).Offset }
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		if lines := strings.Count(text[at(f.Body.Lbrace):at(f.Body.Rbrace)], "\n"); lines >= 3 && lines <= 30 {
			head := text[at(f.Pos()):at(f.Body.Lbrace)+1] + "\n"
			return task{text[max(0, at(f.Pos())-shownBytes):at(f.Pos())] + head, head}, true
		}
	}
	return task{}, false
}

// prompt returns the tokens of what is shown, without as many first lines as leave no room for a body.
func (t task) prompt(m *grove.Model) ([]token.ID, error) {
	ids, err := m.Tokenize(t.shown, true, true)
	for text := t.shown; err == nil && len(ids)+bodyTokens > m.Info().Context && text != ""; {
		_, text, _ = strings.Cut(text, "\n")
		ids, err = m.Tokenize(text, true, true)
	}
	return ids, err
}

// right reports whether a body closes the function, and parses behind its head.
func (t task) right(body string) bool {
	i := strings.Index(body, "\n}")
	if i < 0 {
		return false
	}
	_, err := parser.ParseFile(gotoken.NewFileSet(), "", "package p\n\n"+t.head+body[:i+2]+"\n", 0)
	return err == nil
}

// finish returns the tokens that the target likes best behind a text, to the end of the function or, at most, n.
func finish(m *grove.Model, text []token.ID, n int) (more []token.ID, err error) {
	g, err := m.Generate(context.Background(), grove.Request{PromptIDs: text, MaxTokens: n, Method: grove.MethodOff})
	if err != nil {
		return nil, err
	}
	var body strings.Builder
	for t, err := range g.Tokens() {
		if err != nil {
			return nil, err
		}
		if t.ID != token.None {
			more = append(more, t.ID)
		}
		if body.WriteString(t.Text); strings.Contains(body.String(), "\n}") {
			break
		}
	}
	return more, nil
}

// mined is a draft token that the target would not have drawn: the target's final state of it, and whether the function came out wrong with it.
type mined struct {
	state     []float64
	important float64
}

// mine follows AutoJudge: along the target's answer, the draft model's token is put where the two differ, and the target goes on behind it. If the function is
// still right, the token is unimportant and the answer is the new one.
func (m models) mine(t task) (all []mined, err error) {
	prompt, err := t.prompt(m.target)
	if err != nil {
		return nil, err
	}
	answer, err := finish(m.target, prompt, bodyTokens)
	if err != nil || !m.right(t, answer) {
		return nil, err
	}
	for at := 0; at < len(answer); at++ {
		whole := append(slices.Clone(prompt), answer...)
		drafted, err := likeliest(m.draft, whole[:len(whole)-1], len(prompt)-1)
		if err != nil {
			return nil, err
		}
		for at < len(answer) && drafted[at] == answer[at] {
			at++
		}
		if at == len(answer) {
			return all, nil
		}
		other := append(slices.Clone(answer[:at]), drafted[at])
		if text, err := m.target.Detokenize(other); err != nil || !strings.Contains(text, "\n}") {
			more, err := finish(m.target, append(slices.Clone(prompt), other...), bodyTokens-len(other))
			if err != nil {
				return nil, err
			}
			other = append(other, more...)
		}
		example := mined{important: 1}
		if example.state, err = m.state(append(slices.Clone(prompt), other[:at+1]...)); err != nil {
			return nil, err
		}
		if m.right(t, other) {
			example.important, answer = 0, other
		}
		all = append(all, example)
	}
	return all, nil
}

// right reports whether the tokens complete the function.
func (m models) right(t task, answer []token.ID) bool {
	body, err := m.target.Detokenize(answer)
	return err == nil && t.right(body)
}

// likeliest returns the draft model's likeliest token behind each token of a text from one on.
func likeliest(m *grove.Model, ids []token.ID, from int) (all []token.ID, err error) {
	at := 0
	err = m.Logits(context.Background(), ids, func(row []float32) error {
		if at++; at > from {
			best := 0
			for i, v := range row {
				if v > row[best] {
					best = i
				}
			}
			all = append(all, token.ID(best))
		}
		return nil
	})
	return all, err
}

// state returns the target's final state of a text's last token.
func (m models) state(ids []token.ID) (state []float64, err error) {
	rows, err := m.target.EmbedIDs(context.Background(), ids, grove.EmbedOptions{Pooling: "last", Raw: true}, true)
	if err == nil {
		for _, v := range rows[0] {
			state = append(state, float64(v))
		}
	}
	return state, err
}

// judge mines important tokens, fits the head, chooses its threshold and measures it.
func judge(args []string) error {
	f, out := flags("judge")
	functions := f.Int("functions", 400, "functions to mine; those that the target completes wrongly teach nothing")
	recall := f.Float64("recall", 0.9, "share of the important tokens that the head is to find")
	seed := f.Uint64("seed", 1, "seed of the order of files")
	_ = f.Parse(args) // it exits
	m, err := open()
	if err != nil {
		return err
	}
	start := time.Now()
	parts, err := m.mineAll(false, *functions, *seed)
	if err != nil {
		return err
	}
	fit, tell := slices.Concat(parts[:len(parts)*4/5]...), slices.Concat(parts[len(parts)*4/5:]...)
	if len(fit) == 0 || len(tell) == 0 {
		return fmt.Errorf("%d functions are too few", *functions)
	}
	best, bestAUC, bestC := (*logistic)(nil), -1.0, 0.0
	for _, c := range strengths() {
		l := regress(fit, c)
		if a := l.auc(tell); a > bestAUC {
			best, bestAUC, bestC = l, a, c
		}
	}
	threshold, passes := best.threshold(tell, *recall)
	important := 0.0
	for _, e := range slices.Concat(fit, tell) {
		important += e.important
	}
	figures := map[string]string{
		"target": m.target.Info().Name, "draft": m.draft.Info().Name, "tokens": fmt.Sprint(len(fit) + len(tell)), "important": fmt.Sprintf("%.3f", important/float64(len(fit)+len(tell))),
		"C": fmt.Sprintf("%.3g", bestC), "AUC, other functions": fmt.Sprintf("%.3f", bestAUC), "recall": fmt.Sprint(*recall), "unimportant that pass": fmt.Sprintf("%.3f", passes),
		"seed": fmt.Sprint(*seed), "source": "AutoJudge, 2025",
	}
	fmt.Printf("%d functions are right; %v; threshold %.3f; %.0f s\n", len(parts), figures, threshold, time.Since(start).Seconds())
	weight, bias := best.plain()
	n := len(weight)
	err = write(*out, figures, tensor{"judge.weight", []int{1, n}, weight}, tensor{"judge.bias", []int{1}, []float64{bias}}, tensor{"judge.threshold", []int{1}, []float64{threshold}})
	if err != nil {
		return err
	}
	return measure(*out, threshold, 100)
}

// mineAll mines the functions of files, and returns what those that the target completes rightly teach.
func (m models) mineAll(held bool, functions int, seed uint64) (parts [][]mined, err error) {
	all, err := tasks(held, functions, seed)
	if err != nil {
		return nil, err
	}
	found := make([][]mined, len(all))
	err = each(len(all), func(i int) (err error) {
		found[i], err = m.mine(all[i])
		return err
	})
	return slices.DeleteFunc(found, func(p []mined) bool { return len(p) == 0 }), err
}

// measure completes functions that were held out, greedily, by a chain of the draft model's and the rule judge, and prints how many are right.
func measure(head string, chosen float64, functions int) error {
	all, err := tasks(true, functions, 7)
	if err != nil {
		return err
	}
	m, err := grove.Open(gopher.Name, grove.Options{Draft: gopher.DraftName, Judge: head, Eager: true, Forget: true, Parallel: parallel})
	if err != nil {
		return err
	}
	defer m.Close()
	thresholds := []float64{0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, chosen}
	slices.SortFunc(thresholds, cmp.Compare[float64])
	fmt.Printf("\n| threshold | functions that parse, of %d | tokens a round | drafts accepted | tokens that plain decoding would not have drawn |\n|---|---|---|---|---|\n", len(all))
	for _, t := range thresholds {
		good, others, tokens, stats := make([]bool, len(all)), make([]int, len(all)), make([]int, len(all)), make([]grove.SpecStats, len(all))
		err := each(len(all), func(i int) (err error) {
			good[i], others[i], tokens[i], stats[i], err = complete(m, all[i], fmt.Sprintf("judge:threshold=%v", t))
			return err
		})
		if err != nil {
			return err
		}
		right, other, sum, s := 0, 0, 0, grove.SpecStats{}
		for i := range all {
			if good[i] {
				right++
			}
			other, sum = other+others[i], sum+tokens[i]
			s.Add(stats[i])
		}
		fmt.Printf("| %.3g | %d | %.2f | %.1f %% | %.1f %% |\n", t, right, float64(s.Tokens)/float64(s.Rounds), 100*float64(s.Accepted)/float64(max(1, s.Drafted)), 100*float64(other)/math.Max(1, float64(sum)))
	}
	return nil
}

// complete completes a function by drafts that a rule accepts, four of a round at most, and counts the tokens that the target would not have drawn.
func complete(m *grove.Model, t task, rule string) (good bool, others, tokens int, s grove.SpecStats, err error) {
	prompt, err := t.prompt(m)
	if err != nil {
		return false, 0, 0, s, err
	}
	g, err := m.Generate(context.Background(), grove.Request{PromptIDs: prompt, MaxTokens: bodyTokens, Method: fixedChain(), Accept: rule})
	if err != nil {
		return false, 0, 0, s, err
	}
	var body strings.Builder
	text := slices.Clone(prompt)
	for tok, err := range g.Tokens() {
		if err != nil {
			return false, 0, 0, s, err
		}
		if tok.ID != token.None {
			text = append(text, tok.ID)
		}
		if body.WriteString(tok.Text); strings.Contains(body.String(), "\n}") {
			break
		}
	}
	own, err := likeliest(m, text[:len(text)-1], len(prompt)-1)
	for i, id := range own {
		if text[len(prompt)+i] != id {
			others++
		}
	}
	return t.right(body.String()), others, len(own), g.Stats().Drafting, err
}
