package grove

import (
	"fmt"

	"grove/constrain"
	"grove/internal/text/tokenizer"
)

// MaskMeter measures constraints with one vocabulary, without a model; see [constrain.Meter].
type MaskMeter = constrain.Meter

// MaskFigures are the times of a constraint, and its verdicts over texts.
type MaskFigures = constrain.Figures

// NewMaskMeter returns a meter for models with a tokenizer.
func NewMaskMeter(t *tokenizer.Tokenizer) (*MaskMeter, error) {
	m, err := constrain.NewMeter(t)
	if err != nil {
		return nil, fmt.Errorf("grove: %w", err)
	}
	return m, nil
}
