package pages

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"grove/internal/fileio"
)

// magic begins the file of a page; the digit is its version. Its name follows, then the page, and a SHA-256 of all.
const magic = "grovepg1"

// errDamaged reports a file that does not hold the page that its name says.
var errDamaged = errors.New("the file is damaged")

// fileBytes returns the bytes of the file of a page.
func fileBytes(page int) int64 { return int64(len(magic) + sha256.Size + page + sha256.Size) }

// writePage writes the file of a page: equal pages give equal bytes.
func writePage(w io.Writer, name [sha256.Size]byte, page []byte) error {
	sum := sha256.New()
	all := io.MultiWriter(w, sum)
	for _, part := range [][]byte{[]byte(magic), name[:], page} {
		if _, err := all.Write(part); err != nil {
			return err
		}
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// readPage reads the file of a page. It returns a [errDamaged] where the file is damaged or of another page, and the file system's errors.
func readPage(path string, name [sha256.Size]byte, page []byte) error {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fill := func(b []byte) error {
		_, err := io.ReadFull(f, b)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s: it ends early: %w", path, errDamaged)
		}
		return err
	}
	var head [len(magic) + sha256.Size]byte
	var digest [sha256.Size]byte
	for _, part := range [][]byte{head[:], page, digest[:]} {
		if err := fill(part); err != nil {
			return err
		}
	}
	sum := sha256.New()
	sum.Write(head[:])
	sum.Write(page)
	if string(head[:len(magic)]) != magic || !bytes.Equal(head[len(magic):], name[:]) {
		return fmt.Errorf("%s: it is of another page: %w", path, errDamaged)
	}
	if !bytes.Equal(digest[:], sum.Sum(nil)) {
		return fmt.Errorf("%s: its digest differs from its content's: %w", path, errDamaged)
	}
	return nil
}
