package batches

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
)

// The layout of a file of go.etcd.io/bbolt, whose reader follows pages without end where damage has made a circle of them.
const (
	pageHead    = 16 // bytes: id, flags, count, overflow
	elementHead = 16
	branchPage  = 0x01
	leafPage    = 0x02
	freePage    = 0x10
	bucketLeaf  = 0x01 // the value is a bucket: its first page, 0 where it lies in the value, and a number
	metaSum     = 56   // offset of the checksum in the meta, behind the head
)

var errPages = errors.New("its pages are no tree")

// pageWalk visits the pages of a file, each at most once.
type pageWalk struct {
	file  *os.File
	size  int64 // of a page
	pages uint64
	seen  map[uint64]bool
}

// checkPages returns an error where the pages that a database reaches are no tree, or have parts outside themselves. A file whose beginning cannot be read is
// left to the library, which says why.
func checkPages(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // a file that is not there is made
	}
	defer f.Close()
	w := &pageWalk{file: f, seen: map[uint64]bool{}}
	root, free, ok := w.meta()
	if !ok {
		return nil
	}
	if b, err := w.page(free); err == nil && binary.LittleEndian.Uint16(b[8:]) == freePage {
		n := uint64(binary.LittleEndian.Uint16(b[10:]))
		if n == 0xffff && len(b) >= pageHead+8 {
			n = binary.LittleEndian.Uint64(b[pageHead:])
		}
		if n > w.pages {
			return fmt.Errorf("%w: %d of %d pages are free", errPages, n, w.pages)
		}
	}
	return w.visit(root)
}

// meta reads the newer of the two pages that say where the tree begins, and whose checksum is right.
func (w *pageWalk) meta() (root, free uint64, ok bool) {
	var head [pageHead + metaSum + 8]byte
	newest := uint64(0)
	for _, at := range []int64{0, int64(os.Getpagesize())} {
		if _, err := w.file.ReadAt(head[:], at); err != nil {
			continue
		}
		m := head[pageHead:]
		sum := fnv.New64a()
		_, _ = sum.Write(m[:metaSum]) // a hash takes all
		txid := binary.LittleEndian.Uint64(m[48:])
		if binary.LittleEndian.Uint64(m[metaSum:]) != sum.Sum64() || ok && txid < newest {
			continue
		}
		newest, ok = txid, true
		w.size = int64(binary.LittleEndian.Uint32(m[8:]))
		root, free, w.pages = binary.LittleEndian.Uint64(m[16:]), binary.LittleEndian.Uint64(m[32:]), binary.LittleEndian.Uint64(m[40:])
	}
	return root, free, ok && w.size >= 512 && w.size <= 1<<20
}

// page reads a page with those that continue it.
func (w *pageWalk) page(id uint64) ([]byte, error) {
	if id >= w.pages {
		return nil, fmt.Errorf("%w: page %d of %d", errPages, id, w.pages)
	}
	b := make([]byte, w.size)
	if _, err := w.file.ReadAt(b, int64(id)*w.size); err != nil {
		return nil, err
	}
	more := uint64(binary.LittleEndian.Uint32(b[12:]))
	if more == 0 {
		return b, nil
	}
	if more >= w.pages-id {
		return nil, fmt.Errorf("%w: page %d goes on for %d of %d", errPages, id, more, w.pages)
	}
	b = make([]byte, int64(more+1)*w.size)
	_, err := w.file.ReadAt(b, int64(id)*w.size)
	return b, err
}

// visit checks a page and all below it.
func (w *pageWalk) visit(id uint64) error {
	if w.seen[id] {
		return fmt.Errorf("%w: page %d is reached twice", errPages, id)
	}
	w.seen[id] = true
	b, err := w.page(id)
	if err != nil {
		return err
	}
	flags, n := binary.LittleEndian.Uint16(b[8:]), int(binary.LittleEndian.Uint16(b[10:]))
	if flags != branchPage && flags != leafPage || pageHead+n*elementHead > len(b) {
		return fmt.Errorf("%w: page %d has the kind %d and %d elements", errPages, id, flags, n)
	}
	for i := range n {
		at := pageHead + i*elementHead
		if flags == branchPage {
			err = w.visit(binary.LittleEndian.Uint64(b[at+8:]))
		} else {
			err = w.leaf(id, b, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaf checks an element of a leaf page, which may be a bucket.
func (w *pageWalk) leaf(id uint64, b []byte, at int) error {
	word := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[at+4*i:])) }
	value := uint64(at) + word(1) + word(2)
	if value+word(3) > uint64(len(b)) {
		return fmt.Errorf("%w: an element of page %d ends behind it", errPages, id)
	}
	if word(0) != bucketLeaf {
		return nil
	}
	if word(3) < 16 {
		return fmt.Errorf("%w: a bucket of page %d has %d bytes", errPages, id, word(3))
	}
	if root := binary.LittleEndian.Uint64(b[value:]); root != 0 {
		return w.visit(root)
	}
	return nil
}
