// Package document reads the text of a JSON Schema: values in their order, references, and the keywords of each draft.
//
// A [Document] keeps the first error; all its methods do nothing of use after it. It is not safe for concurrent use.
package document

import "net/url"

// A Document is the text of a schema and all schemas in it that were asked for.
type Document struct {
	// Root is the whole text.
	Root *Value
	// Schemas are all that were asked for or made.
	Schemas []*Schema
	// Err is the first error.
	Err error

	resources map[string]*resource
	dynamics  map[string]int // how many schemas have a dynamic anchor
	byValue   map[*Value]*Schema
	values    int // their memory in bytes, about
}

// New returns the document of a text, and its schema. draft is that of schemas that do not say.
func New(root *Value, draft Draft) *Document {
	d := &Document{Root: root, resources: map[string]*resource{}, dynamics: map[string]int{}, byValue: map[*Value]*Schema{}, values: root.held()}
	d.scan(root, d.newResource(new(url.URL), root, draft))
	return d
}
