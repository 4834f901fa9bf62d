package arch

import "grove/internal/model"

// Granite 3's mixtures (IBM 2024), with and without a shared expert, are files of another name. Their layers and scales
// are those of [openGranite].
func init() { model.Register("granitemoe", openGranite) }
