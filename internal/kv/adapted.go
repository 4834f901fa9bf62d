package kv

import (
	"crypto/sha256"
	"encoding/binary"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// Adapted says what the keys of a sequence's rows depend on besides the tokens and the salt. The zero value is nothing.
type Adapted struct {
	Name  [sha256.Size]byte // of the set of adapters with which the rows from index From on run; the zero value: none
	From  int
	Block int // the rows see all of their block of so many tokens, counted from the first; 0: those before them. Pages end where blocks do
}

// Adapt tells an empty sequence, or the fork of one that was told the same, that its rows from a.From on have the set of adapters of a number ([forest.Row.Adapter], whose name is
// a.Name), and that they see their blocks. [Cache.Reuse], [Cache.Hold] and [Reader.Adopt] then name pages as those rows do.
func (k *Cache) Adapt(s forest.Seq, number int, a Adapted) {
	t := &k.seqs[s]
	if t.adapted != a { // a fork has its origin's names
		t.salt, t.own = a.apart(t.salt), a.own(t.own)
	}
	t.adapter, t.adapted = number, a
}

// blocked begins what is hashed of a salt of rows that see their blocks: no type of a cache has this number.
const blocked = 0xff

// apart is the digest with which the names of pages begin, of that without blocks.
func (a Adapted) apart(salt digest) digest {
	if a.Block == 0 {
		return salt
	}
	b := binary.LittleEndian.AppendUint64([]byte{blocked}, uint64(a.Block))
	return sha256.Sum256(append(b, salt[:]...))
}

// own is the digest with which a file of a sequence's pages begins, of that of the salt alone.
func (a Adapted) own(salt digest) digest {
	salt = a.apart(salt)
	if a.Name == (digest{}) && a.From == 0 {
		return salt
	}
	b := append(salt[:], a.Name[:]...)
	return sha256.Sum256(binary.LittleEndian.AppendUint64(b, uint64(a.From)))
}

// entry returns the entry of a token of a sequence's text at an index.
func (k *Cache) entry(t *trunk, i int, id token.ID) forest.Entry {
	if t.adapter == 0 || i < t.adapted.From {
		return forest.IDEntry(id)
	}
	return k.Forest.AdaptedEntry(id, t.adapter)
}
