// Package all links the architectures. It is the list of the packages that have any.
package all

import (
	_ "grove/model/arch"    // decoders
	_ "grove/model/encoder" // encoders
	_ "grove/model/hybrid"  // decoders with recurrent layers
	_ "grove/model/module"  // draft modules
	_ "grove/model/seq2seq" // encoder-decoders
)
