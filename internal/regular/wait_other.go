//go:build !unix

package regular

// noWait is nothing where no pipe has the name of a file.
const noWait = 0
