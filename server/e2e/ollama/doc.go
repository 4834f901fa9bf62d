// Package ollama runs the official Go client of ollama's API against the server. It is a module of its own, because what that client
// needs and what the others need exclude each other.
package ollama
