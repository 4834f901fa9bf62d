// monitor_doc.go lets programs watch a text and say what may follow: monitor-guided decoding (Guiding Language Models
// of Code with Global Context using Monitors, 2023). A [Monitor] is idle until it knows a list of texts of which one must
// follow; then tokens are legal that keep to the list, and behind one of its texts, or where the monitor is idle, all
// are. A list binds wherever it begins, in the middle of a token too.
//
// The package gosource is a monitor of Go source.

package constrain
