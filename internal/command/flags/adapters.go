package flags

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"grove"
	"grove/internal/command/exit"
)

// Adapters is --lora.
type Adapters struct {
	Lora []string `name:"lora" sep:"none" placeholder:"FILE[=SCALE]" var:"GROVE_LORA" help:"A LoRA adapter of the model, a GGUF file or a folder of PEFT, and how much of it; may be given several times. Without SCALE, 1."`
}

// Skip is --skip-adapters.
type Skip struct {
	SkipAdapters string `name:"skip-adapters" placeholder:"FILE" var:"GROVE_SKIP_ADAPTERS" help:"A file of adapters that stand for layers of the tokens between each Nth one, where a request skips layers by period=N (grove convert --heads; lossy)."`
}

// Files returns the adapters that the flag names. Their names are those of their files. Where idle they have the scale 0.
func (a Adapters) Files(idle bool) (all []grove.AdapterFile, err error) {
	for _, text := range a.Lora {
		f := grove.AdapterFile{Path: text, Scale: 1}
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			if _, err := os.Stat(text); err != nil {
				if f.Scale, err = strconv.ParseFloat(text[at+1:], 64); err != nil {
					return nil, exit.With(exit.CodeUsage, fmt.Errorf("--lora: %.80q: the scale %.20q is no number", text, text[at+1:]))
				}
				f.Path = text[:at]
			}
		}
		if _, err := os.Stat(f.Path); err != nil {
			return nil, exit.File(fmt.Errorf("--lora: %w", err))
		}
		whole, err := filepath.Abs(f.Path)
		if err != nil {
			return nil, exit.File(err)
		}
		if f.Name = strings.TrimSuffix(filepath.Base(whole), ".gguf"); idle {
			f.Scale = 0
		}
		all = append(all, f)
	}
	return all, nil
}
