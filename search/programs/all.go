// all.go links every search program into a binary. Its import list is the one list of programs.

package programs

import ()
