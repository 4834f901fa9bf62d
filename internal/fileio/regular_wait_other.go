//go:build !unix

package fileio

// noWait is nothing where no pipe has the name of a file.
const noWait = 0
