package batches

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// storeVersion is that of the records.
const storeVersion = 1

// The names in the directory of the state.
const (
	storeFile  = "batches.db"
	filesDir   = "files"
	lockTime   = time.Second // to wait for a server that ends
	uploadName = "upload-"   // begins the names of files that are being received
)

// The buckets of the store. Keys of records are the owner, a zero byte and the id.
var (
	metaBucket    = []byte("meta")
	filesBucket   = []byte("files")
	batchesBucket = []byte("batches")

	versionKey = []byte("version")
	clockKey   = []byte("clock")
)

// store is what outlives the server: records of files and batches in an embedded database, and the files beside it. It is safe for concurrent use.
type store struct {
	dir   string
	db    *bolt.DB
	clock clock
}

// header is what records of both kinds have.
type header struct {
	ID    string `json:"id"`
	Owner string `json:"owner"` // the folder of the key; "": the server has none
	Seq   uint64 `json:"seq"`   // orders the records by creation
	Due   int64  `json:"due"`   // the store's time at which it expires; 0: it does not
}

func (h *header) head() *header { return h }

// record is a record in the store.
type record interface{ head() *header }

// openStore opens the state in a directory, which it makes. Errors: another server uses it; it is of another version.
func openStore(dir string) (s *store, err error) {
	s = &store{dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, filesDir), 0o700); err != nil {
		return nil, fmt.Errorf("batches: %s: %w", dir, err)
	}
	path := filepath.Join(dir, storeFile)
	s.db, err = openDB(path)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("batches: %s: another server uses it; give each server a --state-dir of its own", path)
	case errors.Is(err, bolterrors.ErrInvalid) && errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("batches: %s: %w, or it is no state of grove's: %s", path, err, wayOut)
	case errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("batches: %s: %w: %s", path, err, wayOut)
	case err != nil:
		return nil, fmt.Errorf("batches: %s: %w; it is no state of grove's: %s", path, err, wayOut)
	}
	err = s.whole()
	if err == nil {
		err = guarded(func() error { return s.db.Update(s.begin) })
	}
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("batches: %s: %w: %s", path, err, wayOut)
	} else if err != nil {
		err = fmt.Errorf("batches: %s: %w", path, err)
	}
	if err != nil {
		return nil, errors.Join(err, guarded(s.db.Close))
	}
	return s, nil
}

// ErrDamaged reports a state that cannot be read any more.
var ErrDamaged = errors.New("it is damaged")

// wayOut is what helps where a state cannot be used.
const wayOut = "name another --state-dir, or move the file away"

// openDB opens the database. A damaged one can make the library panic, or read what the file no longer has; both are an error here.
func openDB(path string) (db *bolt.DB, err error) {
	if err := checkPages(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	err = guarded(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTime})
		return err
	})
	for _, damage := range []error{bolterrors.ErrInvalid, bolterrors.ErrChecksum} {
		if info, e := os.Stat(path); errors.Is(err, damage) && e == nil && info.Size() > 0 {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return db, err
}

// guarded calls f. A panic, and a fault of reading a mapped file that was cut, is an [ErrDamaged].
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return f()
}

// view reads records.
func (s *store) view(f func(tx *bolt.Tx) error) error {
	return guarded(func() error { return s.db.View(f) })
}

// whole returns an [ErrDamaged] where the file has fewer bytes than the database has pages, or a record, in whatever bucket, cannot be read.
func (s *store) whole() error {
	info, err := os.Stat(s.db.Path())
	if err != nil {
		return err
	}
	return s.view(func(tx *bolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes and should have %d", ErrDamaged, info.Size(), tx.Size())
		}
		return tx.ForEach(func(bucket []byte, b *bolt.Bucket) error {
			return b.ForEach(func(key, text []byte) error {
				if !json.Valid(text) {
					return fmt.Errorf("%w: the record %q of %s is no JSON", ErrDamaged, key, bucket)
				}
				return nil
			})
		})
	})
}

// begin makes the buckets, checks the version and resumes the clock.
func (s *store) begin(tx *bolt.Tx) error {
	for _, name := range [][]byte{metaBucket, filesBucket, batchesBucket} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(metaBucket)
	version, last := storeVersion, reading{}
	for name, to := range map[string]any{string(versionKey): &version, string(clockKey): &last} {
		if text := meta.Get([]byte(name)); text != nil {
			if err := json.Unmarshal(text, to); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
			}
		}
	}
	if version != storeVersion {
		return fmt.Errorf("the state has version %d, and this grove has version %d: go on with the grove that wrote it, or name another --state-dir", version, storeVersion)
	}
	s.clock = resume(last, time.Now())
	return meta.Put(versionKey, fmt.Append(nil, version))
}

// close keeps the time and closes the database.
func (s *store) close() error {
	return errors.Join(s.update(func(*bolt.Tx) error { return nil }), s.db.Close())
}

// update changes records. The time is kept with them.
func (s *store) update(f func(tx *bolt.Tx) error) error {
	return guarded(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			if err := f(tx); err != nil {
				return err
			}
			text, err := json.Marshal(s.clock.read())
			if err != nil {
				return err
			}
			return tx.Bucket(metaBucket).Put(clockKey, text)
		})
	})
}

// path returns the place of a file. The id is one that the store made.
func (s *store) path(id string) string { return filepath.Join(s.dir, filesDir, id) }

// bucketOf returns the bucket of a kind of records.
func bucketOf(r record) []byte {
	if _, ok := r.(*fileRecord); ok {
		return filesBucket
	}
	return batchesBucket
}

func keyOf(owner, id string) []byte { return []byte(owner + "\x00" + id) }

// put writes a record, which gets its place in the order where it is new.
func put(tx *bolt.Tx, r record) error {
	h, bucket := r.head(), tx.Bucket(bucketOf(r))
	if h.Seq == 0 {
		n, err := bucket.NextSequence()
		if err != nil {
			return err
		}
		h.Seq = n
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return bucket.Put(keyOf(h.Owner, h.ID), text)
}

// drop deletes a record.
func drop(tx *bolt.Tx, r record) error {
	return tx.Bucket(bucketOf(r)).Delete(keyOf(r.head().Owner, r.head().ID))
}

// get reads the record of an id into r, and reports whether there is one.
func get(tx *bolt.Tx, owner, id string, r record) (bool, error) {
	text := tx.Bucket(bucketOf(r)).Get(keyOf(owner, id))
	if text == nil {
		return false, nil
	}
	return true, json.Unmarshal(text, r)
}

// list returns the records of an owner, or of all where owner is nil, the oldest first.
func list[T any, P interface {
	*T
	record
}](tx *bolt.Tx, owner *string) (all []P, err error) {
	prefix := ""
	if owner != nil {
		prefix = *owner + "\x00"
	}
	c := tx.Bucket(bucketOf(P(nil))).Cursor()
	for k, text := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, text = c.Next() {
		r := P(new(T))
		if err := json.Unmarshal(text, r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b P) int { return cmp.Compare(a.head().Seq, b.head().Seq) })
	return all, nil
}
