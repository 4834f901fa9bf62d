// Package logits has the methods that draft from the logits of earlier rows of the model itself. A file is a
// method.
package logits
