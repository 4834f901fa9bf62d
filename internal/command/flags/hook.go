package flags

import "github.com/alecthomas/kong"

// Hook is a function that a struct of flags calls after the command line has been read into it.
type Hook struct {
	Of any // a pointer to the struct, by which a hook that is met twice is called once
	Do func(line *kong.Context) error
}

// Hooked is implemented by structs of flags and commands with a hook.
type Hooked interface{ Parsed() Hook }
