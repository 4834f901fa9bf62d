// mtp.go drafts with the module of the model's own file that predicts the token behind the next one (multi-token prediction, DeepSeek-AI 2024; Gloeckle et
// al. 2024).
//
// Files of DeepSeek 3, GLM 4.5, Qwen 3.5, MiMo, Step 3.5 and others have such a module, so no other file is needed. One module drafts at each depth: it reads the
// target's final state behind the text, and its own state behind a draft. Of several, the first drafts the first token, the second the next one, and the last all further ones.

package heads

import (
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// mtpShape is a chain with a second candidate for each token, which goes on while it pays.
var mtpShape = grow.Shape{Ranks: []int{2}, Beam: 2, Depth: 6}

func init() {
	method.Register(module.Family{Name: "mtp"}.Method(method.Info{
		Name: "mtp", Paper: "Multi-token prediction: a module of the model's own file, 2024", RunsRows: true, Auto: true,
		Needs: "a model whose file has a module for further tokens (nextn_predict_layers)",
	}, nil, func(m *method.Module, vocabulary int, _ []int) method.Drafter {
		return module.NewDrafter(mtpShape, module.NewPredictors(m, vocabulary), m, vocabulary)
	}))
}
