// Package models has the methods that draft with another model: a smaller one, several in a row, one on
// another server. A file is a method.
package models
