package gguf

import "strings"

// InFile puts the name of a model's file behind the component of an error that lacks it; "" is no file.
func InFile(path string, err error) error {
	if err == nil || path == "" || strings.Contains(err.Error(), path) {
		return err
	}
	return &fileError{path, err}
}

type fileError struct {
	path string
	err  error
}

// Error returns the error with the file's name in it.
func (e *fileError) Error() string {
	component, problem, _ := strings.Cut(e.err.Error(), ": ")
	return component + ": " + e.path + ": " + problem
}

// Unwrap returns the error without the file's name.
func (e *fileError) Unwrap() error { return e.err }
