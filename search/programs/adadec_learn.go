package programs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/search"
)

// An AdadecObservation is a place of a text that the model has not seen.
type AdadecObservation struct {
	Entropy float64 // of the model's distribution, in nats
	Right   bool    // the likeliest token is that of the text
}

// A AdadecLearner finds the threshold of a model from its logits on a text. It is for one goroutine; nil learns nothing.
type AdadecLearner struct {
	AdadecLearned
	seen []AdadecObservation
}

// Add tells the logits at a place, and the token that the text has there.
func (l *AdadecLearner) Add(logits []float32, id token.ID) {
	if l == nil {
		return
	}
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	l.seen = append(l.seen, AdadecObservation{search.Entropy(logits), token.ID(best) == id})
}

// Learn sets what is learned from all places. Errors are those of the function Learn.
func (l *AdadecLearner) Learn() error {
	if l == nil {
		return nil
	}
	learned, err := AdadecLearn(l.seen)
	if err == nil {
		l.AdadecLearned = *learned
	}
	return err
}

// WriteText writes what is learned as a line.
func (l *AdadecLearner) WriteText(w io.Writer) error {
	if l == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "adadec,threshold=%.6f: it tells right from wrong likeliest tokens at %.1f %% of the places, and pauses at %.1f %%; %.1f %% are right\n",
		l.Threshold, 100*l.Accuracy, 100*l.Pauses, 100*l.Right)
	return err
}

// AdadecLearned is a threshold for a model.
type AdadecLearned struct {
	Threshold    float64 `json:"threshold"`
	Accuracy     float64 `json:"accuracy"` // share of the places kept for the test at which the threshold tells right from wrong
	Observations int     `json:"observations"`
	Right        float64 `json:"right"`  // share of the observations whose likeliest token is that of the text
	Pauses       float64 `json:"pauses"` // share of the observations with so much entropy
}

// The shares of observations, and what seeds their split.
const (
	trainShare = .8
	splitSeed  = 42
)

// AdadecLearn finds the threshold: it fits the chance that the likeliest token is right as a logistic function of the entropy, on four fifths of
// the observations with as many right as wrong ones, takes the chance that divides the others best, and returns the entropy at which
// the function has it. Errors: too few observations, all right or all wrong, and entropies that tell nothing.
func AdadecLearn(all []AdadecObservation) (*AdadecLearned, error) {
	rng := rand.New(rand.NewPCG(splitSeed, splitSeed))
	order := rng.Perm(len(all))
	cut := int(trainShare * float64(len(all)))
	var kinds [2][]float64 // the entropies where it is wrong, and right
	l := &AdadecLearned{Observations: len(all)}
	for i, at := range order {
		o, kind := all[at], 0
		if o.Right {
			kind, l.Right = 1, l.Right+1/float64(len(all))
		}
		if i < cut {
			kinds[kind] = append(kinds[kind], o.Entropy)
		}
	}
	n := min(len(kinds[0]), len(kinds[1]))
	if n < 10 {
		return nil, fmt.Errorf("adadec: of %d places the likeliest token is right at %d and wrong at %d of those to learn from; there must be 10 of each: read a longer text",
			len(all), len(kinds[1]), len(kinds[0]))
	}
	slope, at0 := stat.Logistic(kinds[0][:n], kinds[1][:n])
	if !(slope < 0) {
		return nil, errors.New("adadec: the likeliest token is no less often right where the entropy is high: there is no threshold")
	}
	for c := 1; c < 100; c++ {
		chance, hits := float64(c)/100, 0.0
		threshold := (math.Log(chance/(1-chance)) - at0) / slope
		for _, at := range order[cut:] {
			if all[at].Right == (all[at].Entropy < threshold) {
				hits += 1 / float64(len(all)-cut)
			}
		}
		if hits > l.Accuracy && threshold > 0 {
			l.Threshold, l.Accuracy = threshold, hits
		}
	}
	for _, o := range all {
		if o.Entropy >= l.Threshold {
			l.Pauses += 1 / float64(len(all))
		}
	}
	return l, nil
}
