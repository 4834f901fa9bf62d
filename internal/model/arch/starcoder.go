package arch

import "grove/internal/model"

// StarCoder 1 (Li et al. 2023) has GPT-2's layers and learned positions; all heads share one of keys and values.
func init() { model.Register("starcoder", openGPT2) }
