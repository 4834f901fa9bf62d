package gguf

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"grove/internal/fileio"
	"grove/internal/mmap"
	"grove/internal/weights/tensor"
)

const (
	pieceBytes = 256 << 10            // that are hashed at a time
	napping    = 5 * time.Millisecond // until idle is asked again
	maxEntry   = 1 << 20              // bytes of an entry of the cache of digests
)

// These bound what the cache of digests keeps; tests change them.
var (
	keptBytes int64 = 64 << 20        // of a file: smaller ones are hashed each time
	settled         = 2 * time.Second // since a file's last change: in less, it may change again within one tick of its times
)

var errClosed = errors.New("gguf: the model is closed")

// digest is the state of [File.Digest].
type digest struct {
	mu      sync.Mutex
	begun   bool
	hurried bool
	hurry   chan struct{} // closed where somebody waits
	closed  chan struct{} // closed by Close
	done    chan struct{} // closed behind sum and err
	nap     *time.Timer   // of the goroutine that makes the digest

	sum [sha256.Size]byte
	err error
}

func newDigest() *digest {
	return &digest{hurry: make(chan struct{}), closed: make(chan struct{}), done: make(chan struct{}), nap: time.NewTimer(0)}
}

// Digest returns the SHA-256 of all tensors, with their names, types, shapes and every byte; the order and the places
// of the tensors in the file change nothing. The first call reads the whole file, at one to two gigabytes a second, or
// waits for [File.Prepare]. The digest of a large file is kept in the user's cache directory beside the file's path,
// size, times and inode, and read from there as long as these stay. Errors: a tensor that cannot be read, and Close.
func (f *File) Digest() (sum [sha256.Size]byte, err error) {
	d := f.digest
	d.mu.Lock()
	if !d.hurried {
		d.hurried = true
		close(d.hurry)
	}
	d.mu.Unlock()
	f.begin(nil)
	<-d.done
	return d.sum, d.err
}

// Prepare begins to make the digest in the background, in small pieces, each only while idle, which one goroutine calls,
// reports true. It releases the bytes that it has read. Close ends it.
func (f *File) Prepare(idle func() bool) { f.begin(idle) }

// begin starts the goroutine that makes the digest, once; without idle it rests never and releases nothing.
func (f *File) begin(idle func() bool) {
	d := f.digest
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun {
		return
	}
	d.begun = true
	go func() {
		defer close(d.done)
		select {
		case <-d.closed:
			d.err = errClosed
		default:
			d.sum, d.err = f.findDigest(idle)
		}
	}()
}

// end ends the goroutine and returns when it reads nothing any more.
func (d *digest) end() {
	d.mu.Lock()
	select {
	case <-d.closed:
	default:
		close(d.closed)
	}
	begun := d.begun
	d.mu.Unlock()
	if begun {
		<-d.done
	}
}

// entry is a file of the cache of digests.
type entry struct {
	Stamp  string `json:"stamp"`
	Digest []byte `json:"sha256"`
}

// findDigest takes the digest from the cache, or makes it and keeps it there.
func (f *File) findDigest(idle func() bool) (sum [sha256.Size]byte, err error) {
	path := f.entryPath()
	stamp, _ := f.stamp()
	if path != "" && stamp != "" {
		var e entry
		if json.Unmarshal(fileio.ReadCache(path, maxEntry), &e) == nil && e.Stamp == stamp && len(e.Digest) == len(sum) {
			return [sha256.Size]byte(e.Digest), nil
		}
	}
	if sum, err = f.makeDigest(idle); err != nil {
		return sum, err
	}
	if now, changed := f.stamp(); path != "" && stamp != "" && now == stamp && time.Since(changed) > settled {
		text, _ := json.Marshal(entry{stamp, sum[:]})
		_ = fileio.WriteCache(path, text) // where it cannot be kept, the next one makes it again
	}
	return sum, nil
}

// entryPath names the file's entry in the cache of digests; "": it has none.
func (f *File) entryPath() string {
	key := "1" // the version of what the digest covers
	for _, p := range f.Paths() {
		whole, err := filepath.Abs(p)
		if err != nil {
			return ""
		}
		key += "\n" + whole
	}
	path, err := fileio.CachePath("digest", key)
	if err != nil || len(f.Paths()) == 0 || f.Size() < keptBytes {
		return ""
	}
	return path
}

// stamp returns what tells the versions of all files apart, "" where that is not known, and when they last changed.
func (f *File) stamp() (stamp string, changed time.Time) {
	var all []string
	for _, s := range f.stores {
		one, at, err := s.Stamp()
		if err != nil {
			return "", changed
		}
		all = append(all, one)
		if at.After(changed) {
			changed = at
		}
	}
	return strings.Join(all, "\n"), changed
}

// makeDigest hashes the tensors in the order of their names.
func (f *File) makeDigest(idle func() bool) (sum [sha256.Size]byte, err error) {
	ordered := slices.SortedFunc(slices.Values(f.Tensors), func(a, b tensor.View) int { return cmp.Compare(a.Name, b.Name) })
	all := sha256.New()
	for _, t := range ordered {
		var one [sha256.Size]byte
		if err := mmap.Catch(func() (err error) { one, err = f.hashTensor(t, idle); return err }); err != nil {
			return sum, fmt.Errorf("gguf: %s: %w", tensor.Label(t.Name), err)
		}
		fmt.Fprintf(all, "%q %v %v %x\n", t.Name, t.Type, t.Shape, one)
	}
	return [sha256.Size]byte(all.Sum(nil)), f.Check()
}

// hashTensor hashes the bytes of a tensor.
func (f *File) hashTensor(t tensor.View, idle func() bool) (sum [sha256.Size]byte, err error) {
	if err := f.digest.rest(idle); err != nil {
		return sum, err
	}
	v, err := f.Load(t)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	for piece := range slices.Chunk(v.Data, pieceBytes) {
		if err := f.digest.rest(idle); err != nil {
			return sum, err
		}
		h.Write(piece)
	}
	if idle != nil {
		f.Release(v.Data)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// rest returns when the next piece may be read.
func (d *digest) rest(idle func() bool) error {
	for {
		select {
		case <-d.closed:
			return errClosed
		default:
		}
		if idle == nil || idle() {
			return nil
		}
		d.nap.Reset(napping) // it allocates nothing, however long the pieces wait
		select {
		case <-d.closed:
		case <-d.hurry:
			return nil
		case <-d.nap.C:
		}
	}
}
