// Package answer reads what a model writes: it keeps thoughts, content and calls of tools apart, in the form of the model's family,
// while the text arrives. Families, their markers and their forms of calls are one table, in families.go.
package answer

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
)

// Bounds of an answer. What exceeds them is content.
const (
	MaxCalls = 128     // calls of an answer
	maxHeld  = 1 << 20 // bytes of one call
	maxName  = 256     // bytes of the name of a function or of an argument
	maxDepth = 512     // nesting of arguments
)

// Kind says what a part of an answer is.
type Kind uint8

// The kinds of parts.
const (
	Content    Kind = iota // the answer proper
	Reasoning              // thoughts
	Commentary             // a remark beside calls that is for the user (gpt-oss)
	CallPart               // a call of a tool
	CallBegin              // with [Options.Certain]: a call of which the arguments come
	CallText               // with [Options.Certain]: further arguments of the call that began last, of which they are the beginning
)

// Part is a part of an answer.
type Part struct {
	Kind Kind
	Text string
	Call *Call // of a CallPart, and of a CallBegin without its arguments; else nil
}

// Call is a call of a function.
type Call struct {
	ID        string // nine letters and digits that follow from [Options.ID] and the number of the call
	Name      string
	Arguments string // an object, as compact JSON
	Cut       bool   // the answer ended in it: the arguments are the beginning of an object
}

// Options say how an answer is read. The zero value takes all of it as content.
type Options struct {
	Format  Format
	Tools   []json.RawMessage // functions that may be called, as in OpenAI's API; none: no calls are read
	Tail    string            // the end of the prompt that the template wrote: the answer begins inside the thoughts that it opens
	Inline  bool              // thoughts stay in the content, with their markers
	OneCall bool              // the answer ends behind its first call
	Certain bool              // what begins like a call is one, as a constraint holds the answer to it: its arguments come as they are written
	ID      string            // of the answer: the ids of its calls follow from it

	cut bool // [Reader.Cut] ends it
}

// callID returns the id of call n of an answer: nine letters and digits, as Mistral's templates need.
func callID(answer string, n int) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(answer + "/" + strconv.Itoa(n)))
	id := make([]byte, 9)
	for i := range id {
		id[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(id)
}
