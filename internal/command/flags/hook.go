package flags

import "github.com/alecthomas/kong"

// Hook is what a struct of flags does when the command line has been read into it.
type Hook struct {
	Of any // a pointer to the struct, by which a hook that is met twice is called once
	Do func(line *kong.Context) error
}

// Hooked is implemented by structs of flags and commands with a hook.
type Hooked interface{ Parsed() Hook }
