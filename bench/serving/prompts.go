package serving

import (
	"math"
	"math/rand/v2"
	"strings"
)

// The lengths of the tasks of a mix, in words and tokens.
const (
	shortPrompt, longPrompt = 16, 256
	shortAnswer, longAnswer = 16, 128
)

// Mix makes n tasks: stories of simple sentences to continue, no two of them equal. Prompts have about
// promptTokens words, most of which are one token in common vocabularies, and answers at most answerTokens tokens; where one
// of the two is 0, lengths are drawn from 16 to 256 and from 16 to 128, with a uniform logarithm. Equal arguments give equal
// tasks.
func Mix(seed uint64, n, promptTokens, answerTokens int) []Task {
	r := rand.New(rand.NewPCG(seed, 1))
	tasks := make([]Task, n)
	for i := range tasks {
		words, answer := promptTokens, answerTokens
		drawn, drawnAnswer := octaves(r, shortPrompt, longPrompt), octaves(r, shortAnswer, longAnswer)
		if words == 0 {
			words = drawn
		}
		if answer == 0 {
			answer = drawnAnswer
		}
		tasks[i] = Task{Prompt: story(r, words), MaxTokens: answer}
	}
	return tasks
}

// octaves draws a number whose logarithm is uniform.
func octaves(r *rand.Rand, low, high int) int {
	return int(math.Round(float64(low) * math.Exp(r.Float64()*math.Log(float64(high)/float64(low)))))
}

// The words of stories.
var (
	people = strings.Fields("teacher farmer child doctor sailor baker king friend girl boy mother father")
	kinds  = strings.Fields("old young happy small tall quiet clever tired kind brave")
	deeds  = strings.Fields("found carried saw bought made lost painted opened wanted kept")
	things = strings.Fields("book house boat letter key tree picture door horse box garden lamp")
	hours  = strings.Fields("morning evening night summer winter")
)

// story returns so many words of sentences.
func story(r *rand.Rand, words int) string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	text := make([]string, 0, words+12)
	for len(text) < words {
		text = append(text, "The", pick(kinds), pick(people), pick(deeds), "the", pick(kinds), pick(things), "of", "a", pick(people))
		if r.IntN(2) == 0 {
			text = append(text, "that", pick(hours))
		}
		text[len(text)-1] += "."
	}
	return strings.Join(text[:words], " ")
}
