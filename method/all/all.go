// Package all links every drafting method into a binary. Its import list is the one list of methods: the commands, the
// tests and the documentation show what it registers.
package all

import (
	_ "grove/method/heads/block"
	_ "grove/method/heads/eagle"
	_ "grove/method/heads/mtp"
	_ "grove/method/logits/goose"
	_ "grove/method/logits/lookahead"
	_ "grove/method/logits/recycle"
	_ "grove/method/logits/sjd"
	_ "grove/method/model/draft"
	_ "grove/method/model/far"
	_ "grove/method/model/kseq"
	_ "grove/method/model/levels"
	_ "grove/method/model/mirror"
	_ "grove/method/model/pearl"
	_ "grove/method/model/specdec"
	_ "grove/method/self/layerskip"
	_ "grove/method/self/swift"
	_ "grove/method/text/aded"
	_ "grove/method/text/guided"
	_ "grove/method/text/lookup"
	_ "grove/method/text/ngramcache"
	_ "grove/method/text/pool"
	_ "grove/method/text/rest"
	_ "grove/method/text/sam"
	_ "grove/method/text/suffix"
)
