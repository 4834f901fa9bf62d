// Package text has the methods that draft from tokens alone: the text so far, indexes of earlier texts, files
// of texts. A file is a method.
package text
