package server

import (
	"net/http"

	"grove/server/wire"
)

// slot handles POST /slots/{id}, by which llama.cpp's clients save, restore and erase what a slot holds.
func slot(*exchange) error {
	return &wire.Error{
		Status: http.StatusNotImplemented, Type: wire.TypeInvalid, Param: "action", Code: "unsupported_action",
		Message: "a slot is no text's own, so that there is nothing to save, restore or erase; what a request computes is kept in the file that its field session names (grove serve --session-dir)",
	}
}
