// Package self has the methods that draft with some of the model's own layers, or with its own masks. A file
// is a method.
package self
