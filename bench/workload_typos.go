package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
)

// keyboard is the rows of letters of a keyboard, each half a key to the right of the one before.
var keyboard = [...]string{"qwertyuiop", "asdfghjkl", "zxcvbnm"}

// neighbours returns the letters around a lower-case letter, "" of other characters.
func neighbours(c byte) string {
	var near []byte
	for y, row := range keyboard {
		x := strings.IndexByte(row, c)
		if x < 0 {
			continue
		}
		for _, at := range [][2]int{{y, x - 1}, {y, x + 1}, {y - 1, x}, {y - 1, x + 1}, {y + 1, x - 1}, {y + 1, x}} {
			if at[0] >= 0 && at[0] < len(keyboard) && at[1] >= 0 && at[1] < len(keyboard[at[0]]) {
				near = append(near, keyboard[at[0]][at[1]])
			}
		}
	}
	return string(near)
}

// typoEvery is how many letters have one typo on average.
const typoEvery = 40

// mistype returns a text with typos: a letter is the key beside it, is left out, is there twice, or changes places with the next one.
func mistype(text string, r *rand.Rand) string {
	for {
		var b strings.Builder
		for i := 0; i < len(text); i++ {
			c := text[i]
			near := neighbours(c | ' ')
			if near == "" || r.IntN(typoEvery) > 0 {
				b.WriteByte(c)
				continue
			}
			switch kind := r.IntN(4); {
			case kind == 0:
				// left out
			case kind == 1:
				b.Write([]byte{c, c})
			case kind == 2 && i+1 < len(text) && unicode.IsLetter(rune(text[i+1])):
				b.Write([]byte{text[i+1], c})
				i++
			default:
				b.WriteByte(near[r.IntN(len(near))]&^' ' | c&' ') // of the same case
			}
		}
		if b.String() != text {
			return b.String()
		}
	}
}

// typoShot is the example before each task.
const typoShot = "// With typos:\n\nfunc add(a, b ibt) int {\n\tretrun a + b\n}\n\n// Corrected:\n\nfunc add(a, b int) int {\n\treturn a + b\n}\n\n"

// typoLines is how many lines of a function are mistyped at most.
const typoLines = 8

// TypoTasks returns tasks whose answers are the beginnings of functions of the Go distribution below root, and whose prompts are the same with typos:
// drafts from the prompt find most of an answer. Each task has a recorded answer, and the prompt's text as its prediction.
func TypoTasks(root string) (tasks []Prompt, err error) {
	r := rand.New(rand.NewPCG(goSeed, 1))
	err = eachFile(root, r, func(i int, f function, _ []function) {
		lines := strings.SplitAfter(f.text, "\n")
		right := strings.Join(lines[:min(len(lines), typoLines)], "")
		wrong := mistype(right, r)
		tasks = append(tasks, Prompt{
			ID: fmt.Sprintf("typos-%d", i), Category: "typos", Prompt: typoShot + "// With typos:\n\n" + wrong + "\n\n// Corrected:\n\n",
			Prediction: wrong, Output: right + "\n",
		})
	})
	return tasks, err
}
