// Package e2e holds tests of the server by the official Go client of OpenAI's API.
package e2e
