package document

import "unsafe"

// Held returns the memory of the document in bytes, about. It takes no longer for large ones.
func (d *Document) Held() int {
	const keywords = 160 // of a schema: those about one type
	return d.values + len(d.Schemas)*(8+int(unsafe.Sizeof(Schema{}))+keywords) + len(d.byValue)*24 + len(d.resources)*256
}

// held returns the memory of a value in bytes, about.
func (v *Value) held() int {
	bytes := int(unsafe.Sizeof(*v)) + len(v.Text) + 8*cap(v.Items) + 16*cap(v.Names)
	for _, name := range v.Names {
		bytes += len(name)
	}
	if len(v.Names) > 8 { // an index
		bytes += 32 * len(v.Names)
	}
	for _, item := range v.Items {
		bytes += item.held()
	}
	return bytes
}
