package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"grove"
	"grove/bench"
	"grove/internal/gopher"
	"grove/internal/verify"
	"grove/method"
	"grove/method/grow"
)

// The chains that are compared: most drafts at most.
const most = 20

// curve is the time of a step of the target by its rows, and that of a pass of the draft model, over the time of a step of one row.
type curve struct {
	name string
	rows []int
	time []float64
	pass float64
}

// of returns the time of a step of n rows, by straight lines.
func (c *curve) of(n int) float64 {
	k, _ := slices.BinarySearch(c.rows, n)
	switch {
	case k == len(c.rows):
		last := k - 1
		return c.time[last] * float64(n) / float64(c.rows[last])
	case c.rows[k] == n:
		return c.time[k]
	}
	part := float64(n-c.rows[k-1]) / float64(c.rows[k]-c.rows[k-1])
	return c.time[k-1] + part*(c.time[k]-c.time[k-1])
}

// speed returns tokens by the time of a step of one row, of rounds of one chain each.
func (c *curve) speed(s grove.SpecStats) float64 {
	time := 0.0
	for n, rounds := range chains(s) {
		time += float64(rounds) * (float64(n)*c.pass + c.of(n+1))
	}
	return float64(s.Tokens) / time
}

// chains returns how many rounds had 0, 1, and so on drafts.
func chains(s grove.SpecStats) []int {
	rounds := []int{s.Rounds - s.RanByRank[0]}
	for n := 1; n <= most; n++ {
		rounds = append(rounds, s.RanByRank[n-1]-s.RanByRank[n])
	}
	return rounds
}

// worth is the stop rule of methods without one of their own, by costs instead of times: another draft is made where the tokens that are expected of it
// are more than those decoded in the time of a pass. Shares of accepted drafts are counted by class, as trees do.
type worth struct {
	pass, speed float64
	tried, kept [method.Classes]float64
	path        float64
	classes     []int
}

func (w *worth) Begin() {}

func (w *worth) Ends(d grow.ChainDraft) bool {
	if d.Depth == 1 {
		w.path, w.classes = 1, w.classes[:0]
	}
	c := grow.Class(0, d.P)
	w.classes = append(w.classes, c)
	w.path *= (w.kept[c] + 4*float64(grow.Belief(0, d.P))) / (w.tried[c] + 4)
	const usual = 0.7 // as in package grow
	return w.path*usual <= w.speed*w.pass
}

func (w *worth) Followed(_, judged, accepted int) {
	for i, c := range w.classes[:judged] {
		w.tried[c]++
		if i < accepted {
			w.kept[c]++
		}
	}
}

// sure ends a chain where its probability, by the draft model itself, falls below 1 - h: SpecDec++'s rule without a head.
type sure struct{ h, path float64 }

func (s *sure) Begin() {}

func (s *sure) Ends(d grow.ChainDraft) bool {
	if d.Depth == 1 {
		s.path = 1
	}
	s.path *= float64(d.P)
	return d.Depth >= 2 && 1-s.path > s.h
}

func (s *sure) Followed(int, int, int) {}

// register adds a method whose chains end by a rule, for this command alone.
func register(name string, depth int, stop func() grow.Stop) string {
	shape := grow.Shape{Ranks: []int{1}, Beam: 1, Depth: depth, Stop: stop}
	method.Register(method.Info{
		Name: name, Kind: method.KindModel, Grade: method.Exact, Rule: verify.Match, Needs: "a draft model", RunsRows: true,
		CheckNeeds: func(e method.Env) error { return grow.MeetsDraft(e, true) },
		Open:       func(e method.Env) (method.Method, error) { return chainsOf{shape, e}, nil },
	})
	return name
}

type chainsOf struct {
	shape grow.Shape
	env   method.Env
}

func (c chainsOf) NewDrafter(method.Trunk) (method.Drafter, error) {
	return grow.NewDrafter(c.shape, grow.NewBranch(c.env, nil), c.env), nil
}

// readCurve reads what grove bench speed --json measured: its steps with all logits, at depth 0.
func readCurve(path string, pass float64) (c curve, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var r bench.SpeedResult
		if err := d.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			return c, err
		}
		if r.Rows > 0 && r.Logits == "all" && strings.HasPrefix(r.Test, "pp") {
			c.rows, c.time = append(c.rows, r.Rows), append(c.time, r.Seconds)
		}
	}
	if len(c.rows) == 0 || c.rows[0] != 1 {
		return c, fmt.Errorf("%s: no steps of 1 row and more with all logits", path)
	}
	one := c.time[0]
	for i := range c.time {
		c.time[i] /= one
	}
	c.pass = pass
	return c, nil
}

// lengths compares rules by which chains end: tokens and drafts a round, and the speed by curves of steps.
func lengths(args []string) error {
	f, _ := flags("lengths")
	file := f.String("draft-head", "internal/gopher/testdata/heads/accept.safetensors", "acceptance head")
	speeds := f.String("speed", "", "files of grove bench speed --json with commas between")
	texts, tokens := f.Int("texts", 60, "answers"), f.Int("tokens", 128, "of each")
	_ = f.Parse(args) // it exits
	var curves []curve
	for path := range strings.SplitSeq(*speeds, ",") {
		for _, pass := range []float64{0.05, 0.15} {
			c, err := readCurve(path, pass)
			if err != nil {
				return err
			}
			c.name = fmt.Sprintf("%s, c=%v", strings.TrimSuffix(path, ".json"), pass)
			curves = append(curves, c)
		}
	}
	var names []string
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8, 12} {
		names = append(names, register(fmt.Sprintf("fixed-%d", n), n, nil))
	}
	for _, pass := range []float64{0.05, 0.15} {
		names = append(names, register(fmt.Sprintf("worth-c%v", pass), most, func() grow.Stop { return &worth{pass: pass, speed: 1.5} }))
	}
	for _, h := range []float64{0.3, 0.5, 0.7, 0.8, 0.9, 0.95} {
		names = append(names, register(fmt.Sprintf("own-h%v", h), most, func() grow.Stop { return &sure{h: h} }))
	}
	for h := 1; h <= 9; h++ {
		names = append(names, fmt.Sprintf("draft-specdec:h=0.%d", h))
	}
	names = append(names, "draft-specdec:h=0.95", "draft-specdec:h=0.99")
	m, err := grove.Open(gopher.Name, grove.Options{Draft: gopher.DraftName, DraftHead: *file, Eager: true, Forget: true, Parallel: parallel})
	if err != nil {
		return err
	}
	defer m.Close()
	for _, temperature := range []float32{0, 1} {
		fmt.Printf("\n| temperature %v | tokens a round | drafts a round |", temperature)
		for _, c := range curves {
			fmt.Printf(" %s |", c.name)
		}
		fmt.Printf("\n|---|---|---|%s\n", strings.Repeat("---|", len(curves)))
		for _, name := range names {
			s, err := rounds(m, name, *texts, *tokens, temperature)
			if err != nil {
				return err
			}
			fmt.Printf("| %s | %.3f | %.2f |", name, float64(s.Tokens)/float64(s.Rounds), float64(s.Drafted)/float64(s.Rounds))
			for _, c := range curves {
				fmt.Printf(" %.3f |", c.speed(s))
			}
			fmt.Println()
		}
	}
	return nil
}

// rounds draws the same texts behind parts of files that were held out, by a method, and returns what drafting did.
func rounds(m *grove.Model, name string, texts, tokens int, temperature float32) (all grove.SpecStats, err error) {
	files, err := corpus(true, 9)
	if err != nil {
		return all, err
	}
	stats := make([]grove.SpecStats, texts)
	err = each(texts, func(i int) error {
		ids, err := m.Tokenize(files[i%len(files)].text, false, true)
		if err != nil || len(ids) < promptTokens {
			return err
		}
		at, seed := rand.New(rand.NewPCG(9, uint64(i))).IntN(len(ids)-promptTokens+1), uint64(i)
		g, err := m.Generate(context.Background(), grove.Request{
			PromptIDs: ids[at : at+promptTokens], MaxTokens: tokens, Method: name, Sampling: grove.Sampling{Temperature: temperature}, Seed: &seed,
		})
		if err != nil {
			return err
		}
		for _, err := range g.Tokens() {
			if err != nil {
				return err
			}
		}
		stats[i] = g.Stats().Drafting
		return nil
	})
	for _, s := range stats {
		all.Add(s)
	}
	if math.IsNaN(float64(all.Tokens) / float64(all.Rounds)) {
		return all, fmt.Errorf("%s: no round was drafted", name)
	}
	return all, err
}
