// Package agreement compares the grammars of JSON schemas with the validator santhosh-tekuri/jsonschema. It is a module of its own,
// so that programs that use grove do not depend on a validator.
package agreement
