// Package programs has the searches: each is a program that runs several sequences from one prompt and
// chooses the answer. A file is a search.
package programs
