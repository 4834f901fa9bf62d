// Package methodtest is the suite that every drafting method passes: whatever it drafts, the text is that of plain
// decoding, or has its distribution, by the method's grade.
package methodtest
