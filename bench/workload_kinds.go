package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// WorkloadKinds are the names of the workloads that are made.
func WorkloadKinds() []string {
	return []string{"go", "typos", "translation", "knowledge", "knowledge-open"}
}

// WriteWorkload writes a workload, a JSON object on each line, and returns how many there are: a [Prompt], or of knowledge a [score.Question]. root is
// that of the Go distribution (GOROOT), which translation does not read. The same distribution gives the same workload.
func WriteWorkload(w io.Writer, kind, root string) (n int, err error) {
	var all []any
	switch kind {
	case "go":
		all, err = list(GoTasks(root))
	case "typos":
		all, err = list(TypoTasks(root))
	case "translation":
		all, err = list(TranslationTasks(), nil)
	case "knowledge", "knowledge-open":
		all, err = list(KnowledgeQuestions(root, kind == "knowledge"))
	default:
		err = fmt.Errorf("workload: there is no kind %.40q; there are %s", kind, strings.Join(WorkloadKinds(), ", "))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, v := range all {
		err = errors.Join(err, e.Encode(v))
	}
	return len(all), err
}

// list returns values of any type.
func list[V any](from []V, err error) (all []any, _ error) {
	for _, v := range from {
		all = append(all, v)
	}
	return all, err
}
