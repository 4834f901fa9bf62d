// Package all links every drafting method into a binary. Its import list is the one list of methods: the commands, the
// tests and the documentation show what it registers.
package all

import (
	_ "grove/method/heads"
	_ "grove/method/logits"
	_ "grove/method/models"
	_ "grove/method/self"
	_ "grove/method/text"
)
