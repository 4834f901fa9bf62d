package fileio

import "strings"

// insteadOf says what files are that users often have in the place of others, by their first four bytes in lower case.
var insteadOf = map[string]string{
	"vers":       "; it looks like a pointer of Git LFS: git lfs pull fetches the file",
	"<!do":       "; it looks like a web page: download the file itself",
	"<htm":       "; it looks like a web page: download the file itself",
	"ggml":       "; it looks like a format before GGUF: download a newer file",
	"tjgg":       "; it looks like a format before GGUF: download a newer file",
	"pk\x03\x04": "; it looks like a ZIP archive, such as weights of PyTorch: use GGUF or safetensors",
}

// InsteadOf returns the end of a message about a file that begins with other bytes than it should: what it looks like,
// and what to do; "" where that is not known.
func InsteadOf(first []byte) string {
	return insteadOf[strings.ToLower(string(first[:min(4, len(first))]))]
}
