// Package all links the architectures. It is the list of the packages that have any.
package all

import (
	_ "grove/internal/model/arch"   // decoders
	_ "grove/internal/model/module" // draft modules
)
