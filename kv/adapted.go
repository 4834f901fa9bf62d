package kv

import (
	"crypto/sha256"
	"encoding/binary"

	"grove/forest"
	"grove/text/token"
)

// Adapted says with which adapters the rows of a sequence run: by the name of their set, a digest, from index From on.
// The zero value is none.
type Adapted struct {
	Name [sha256.Size]byte
	From int
}

// Adapt tells an empty sequence that its rows from a.From on have the set of adapters of a number ([forest.Row.Adapter], whose name is
// a.Name). [Cache.Reuse], [Cache.Hold] and [Reader.Adopt] then name pages as those rows do.
func (k *Cache) Adapt(s forest.Seq, number int, a Adapted) {
	t := &k.seqs[s]
	t.adapter, t.adapted = number, a.From
	t.own = a.own(t.own)
}

// own is the digest with which a file of an adapted sequence's pages begins, of that without adapters.
func (a Adapted) own(salt digest) digest {
	if a == (Adapted{}) {
		return salt
	}
	b := append(salt[:], a.Name[:]...)
	return sha256.Sum256(binary.LittleEndian.AppendUint64(b, uint64(a.From)))
}

// entry returns the entry of a token of a sequence's text at an index.
func (k *Cache) entry(t *trunk, i int, id token.ID) forest.Entry {
	if t.adapter == 0 || i < t.adapted {
		return forest.IDEntry(id)
	}
	return k.Forest.AdaptedEntry(id, t.adapter)
}
