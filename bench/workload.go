// workload.go has the tasks that benchmarks run: those of files, and those that are made of the sources of the Go distribution and of words of
// grove's own.

package bench

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Prompt is one task of a workload.
type Prompt struct {
	ID         string `json:"id"`
	Category   string `json:"category"`
	Prompt     string `json:"prompt"`
	Prediction string `json:"prediction,omitempty"` // text that the answer is likely to contain
	Output     string `json:"output,omitempty"`     // a recorded answer, for replay
	MaxTokens  int    `json:"max_tokens,omitempty"` // 0: the default of the run
}

// MaxWorkloadLine bounds a line of a workload.
const MaxWorkloadLine = 16 << 20

// ReadWorkload reads tasks, one JSON object a line: the fields of [Prompt], or of Spec-Bench's questions (question_id,
// category, turns and reference, of which the first is taken). Errors name the line.
func ReadWorkload(r io.Reader) ([]Prompt, error) {
	var prompts []Prompt
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxWorkloadLine)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		p, err := readTask(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("workload: line %d: %w", n, err)
		}
		if p.ID == "" {
			p.ID = strconv.Itoa(n)
		}
		if p.Category == "" {
			p.Category = "all"
		}
		prompts = append(prompts, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	if len(prompts) == 0 {
		return nil, fmt.Errorf("workload: it has no tasks")
	}
	return prompts, nil
}

func readTask(line []byte) (Prompt, error) {
	var p struct {
		Prompt
		QuestionID json.Number `json:"question_id"`
		Turns      []string    `json:"turns"`
		Reference  any         `json:"reference"` // the answer to each turn, or a list of them
	}
	if err := json.Unmarshal(line, &p); err != nil {
		return Prompt{}, err
	}
	if p.ID == "" {
		p.ID = p.QuestionID.String()
	}
	if p.Prompt.Prompt == "" && len(p.Turns) > 0 {
		p.Prompt.Prompt, p.Output = p.Turns[0], cmp.Or(p.Output, first(p.Reference))
	}
	switch {
	case p.Prompt.Prompt == "":
		return Prompt{}, fmt.Errorf("it has no prompt")
	case p.MaxTokens < 0:
		return Prompt{}, fmt.Errorf("max_tokens is %d", p.MaxTokens)
	}
	return p.Prompt, nil
}

// first returns the first text of a list, or of the first list of lists.
func first(list any) string {
	for {
		switch v := list.(type) {
		case string:
			return v
		case []any:
			if len(v) > 0 {
				list = v[0]
				continue
			}
		}
		return ""
	}
}

// Categories returns the categories of a workload in order of appearance.
func Categories(prompts []Prompt) []string {
	var names []string
	seen := map[string]bool{}
	for _, p := range prompts {
		if !seen[p.Category] {
			seen[p.Category] = true
			names = append(names, p.Category)
		}
	}
	return names
}
