package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"grove"
	"grove/internal/text/token"
)

const (
	promptTokens = 48
	answerTokens = 144
	heldTexts    = 200
	heldKeep     = 0.85 // share of the target's tokens in what is held out: nearly what the draft model reads when it drafts
)

// example is a state of the draft model behind a token that it drew, and how likely the target is to accept that token.
type example struct {
	state    []float64
	accepted float64
	own      float64 // the draft model's probability of the token
}

// accept trains the acceptance head. The recipe of the paper: answers X that the target draws; Y, what the draft model draws at each place
// behind X; the draft model reads Z, which is Y with a share of its tokens reset to X; where Z is Y, the label is min(1, p(Y)/q(Y)).
func accept(args []string) error {
	f, out := flags("accept")
	texts := f.Int("texts", 1000, "answers to train on")
	keep := f.Float64("keep", 0.15, "share of Z's tokens that are the target's")
	blocks := f.Int("blocks", 1, "residual blocks, all the same one")
	epochs := f.Int("epochs", 3, "passes over the examples")
	rate := f.Float64("rate", 3e-3, "highest step of a parameter")
	seed := f.Uint64("seed", 1, "seed of all draws")
	_ = f.Parse(args) // it exits
	m, err := open()
	if err != nil {
		return err
	}
	start := time.Now()
	train, err := m.examples(false, *texts, *keep, *seed)
	if err != nil {
		return err
	}
	held, err := m.examples(true, heldTexts, heldKeep, *seed+1)
	if err != nil {
		return err
	}
	fmt.Printf("%d examples to train on, %d held out; %.0f s\n", len(train), len(held), time.Since(start).Seconds())
	h := newHead(len(train[0].state), *blocks, *seed)
	if err := h.checkGradient(train[0]); err != nil {
		return err
	}
	h.train(train, *epochs, *rate, *seed)
	figures := h.figures(held)
	for k, v := range map[string]string{
		"draft": m.draft.Info().Name, "target": m.target.Info().Name, "examples": strconv.Itoa(len(train)), "keep": fmt.Sprint(*keep), "epochs": strconv.Itoa(*epochs),
		"weight of rejections": fmt.Sprint(rejectedWeight), "seed": fmt.Sprint(*seed), "source": "SpecDec++, 2024",
	} {
		figures[k] = v
	}
	for _, k := range []string{"accepted, held out", "expected, held out", "AUC, held out", "AUC of the draft's probability, held out"} {
		fmt.Printf("%s: %s\n", k, figures[k])
	}
	fmt.Printf("%.0f s\n", time.Since(start).Seconds())
	return write(*out, figures, h.tensors()...)
}

// examples returns the examples of texts behind files of the corpus. Every second text is greedy, as every second user's is: there Y is the likeliest token,
// and accepted if it is the target's.
func (m models) examples(held bool, texts int, keep float64, seed uint64) (all []example, err error) {
	files, err := corpus(held, seed)
	if err != nil {
		return nil, err
	}
	parts := make([][]example, texts)
	err = each(texts, func(i int) (err error) {
		parts[i], err = m.text(files[i%len(files)].text, keep, rand.New(rand.NewPCG(seed, uint64(i))), float32(i%2))
		return err
	})
	for _, p := range parts {
		all = append(all, p...)
	}
	return all, err
}

// text returns the examples of an answer to a part of a file.
func (m models) text(file string, keep float64, rng *rand.Rand, temperature float32) (all []example, err error) {
	ids, err := m.target.Tokenize(file, false, true)
	if err != nil || len(ids) < promptTokens {
		return nil, err
	}
	at, seed := rng.IntN(len(ids)-promptTokens+1), rng.Uint64()
	x := append([]token.ID(nil), ids[at:at+promptTokens]...)
	g, err := m.target.Generate(context.Background(), grove.Request{
		PromptIDs: x, MaxTokens: answerTokens, Method: grove.MethodOff, Sampling: grove.Sampling{Temperature: temperature}, Seed: &seed,
	})
	if err != nil {
		return nil, err
	}
	for t, err := range g.Tokens() {
		if err != nil {
			return nil, err
		}
		if t.ID != token.None { // behind the answer, no token but text
			x = append(x, t.ID)
		}
	}
	p, err := distributions(m.target, x, temperature)
	if err != nil {
		return nil, err
	}
	q, err := distributions(m.draft, x, temperature)
	if err != nil {
		return nil, err
	}
	sure, err := distributions(m.draft, x, 1)
	if err != nil {
		return nil, err
	}
	z, labels, own := append([]token.ID(nil), x...), make([]float64, len(x)), make([]float64, len(x))
	for i := promptTokens; i < len(x); i++ {
		y := draw(q[i-1], rng.Float64())
		labels[i] = math.NaN()
		if rng.Float64() >= keep {
			z[i], labels[i], own[i] = y, min(1, p[i-1][y]/q[i-1][y]), sure[i-1][y]
		}
	}
	states, err := m.draft.EmbedIDs(context.Background(), z, grove.EmbedOptions{Pooling: "none", Raw: true}, true)
	if err != nil {
		return nil, err
	}
	for i := promptTokens; i < len(x); i++ {
		if math.IsNaN(labels[i]) {
			continue
		}
		e := example{accepted: labels[i], own: own[i]}
		for _, v := range states[i] {
			e.state = append(e.state, float64(v))
		}
		all = append(all, e)
	}
	return all, nil
}

// distributions returns the distribution behind each token of a text.
func distributions(m *grove.Model, ids []token.ID, temperature float32) (all [][]float64, err error) {
	err = m.Logits(context.Background(), ids, func(row []float32) error {
		p, best, sum := make([]float64, len(row)), 0, 0.0
		for i, v := range row {
			if v > row[best] {
				best = i
			}
		}
		for i, v := range row {
			if temperature > 0 {
				p[i] = math.Exp(float64(v-row[best]) / float64(temperature))
			} else if i == best {
				p[i] = 1
			}
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		all = append(all, p)
		return nil
	})
	return all, err
}

// draw returns the token where the sum of the probabilities exceeds u.
func draw(p []float64, u float64) token.ID {
	last := 0
	for i, v := range p {
		if v > 0 {
			last = i
		}
		if u -= v; u < 0 {
			break
		}
	}
	return token.ID(last)
}
