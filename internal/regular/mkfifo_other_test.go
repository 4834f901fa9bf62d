//go:build !unix

package regular

import "errors"

func mkfifo(string) error { return errors.New("no named pipes here") }
