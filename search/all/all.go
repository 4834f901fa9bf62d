// Package all links every search program into a binary. Its import list is the one list of programs.
package all

import (
	_ "grove/search/adadec"
	_ "grove/search/anchored"
	_ "grove/search/arbitrage"
	_ "grove/search/awrs"
	_ "grove/search/beam"
	_ "grove/search/best"
	_ "grove/search/bytebeam"
	_ "grove/search/cntp"
	_ "grove/search/contrast"
	_ "grove/search/contrastive"
	_ "grove/search/dola"
	_ "grove/search/ensemble"
	_ "grove/search/ffs"
	_ "grove/search/groups"
	_ "grove/search/icn"
	_ "grove/search/proxy"
	_ "grove/search/smc"
	_ "grove/search/superposed"
	_ "grove/search/transferq"
	_ "grove/search/vote"
)
