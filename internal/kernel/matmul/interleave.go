package matmul

import "encoding/binary"

// interleave writes width bytes of each of up to 16 rows to dst, unit (1, 2 or 4) bytes of every row
// in turn. The rows lie stride bytes apart in src; those that src lacks are zero.
func interleave(dst, src []byte, stride, width, unit int) {
	rows := 0
	if width > 0 {
		rows = (len(src) + stride - width) / stride
	}
	if rows < lanes {
		clear(dst)
	}
	// Squares of units go through registers of 8 bytes, a strip at a time that stays in the cache.
	const strip = 128
	side := 8 / unit
	whole, squares := width&^7, rows/side*side
	if unit == 1 {
		squares = 0
	}
	for from := 0; from < whole; from += strip {
		n := min(strip, whole-from)
		for j := 0; j < squares; j += side {
			to, square := dst[from*lanes+j*unit:], src[j*stride+from:]
			if unit == 2 {
				transpose4(to, square, stride, n)
			} else {
				transpose2(to, square, stride, n)
			}
		}
	}
	if whole < width {
		interleaveUnits(dst[whole*lanes:], src[whole:], stride, width-whole, unit, 0, squares)
	}
	interleaveUnits(dst, src, stride, width, unit, squares, rows)
}

// interleaveUnits is interleave for the rows [j0, j1), unit by unit.
func interleaveUnits(dst, src []byte, stride, width, unit, j0, j1 int) {
	for j := j0; j < j1; j++ {
		row, to := src[j*stride:][:width], dst[j*unit:]
		switch unit {
		case 1:
			for i, v := range row {
				to[i*lanes] = v
			}
		case 2:
			for i := 0; i < width; i += 2 {
				binary.LittleEndian.PutUint16(to[i*lanes:], binary.LittleEndian.Uint16(row[i:]))
			}
		default:
			for i := 0; i < width; i += 4 {
				binary.LittleEndian.PutUint32(to[i*lanes:], binary.LittleEndian.Uint32(row[i:]))
			}
		}
	}
}

// transpose2 interleaves n bytes, a multiple of 8, of each of 2 rows by 4 bytes, at 2 of the 16 places.
func transpose2(dst, src []byte, stride, n int) {
	const low = 1<<32 - 1
	a, b := src[:n], src[stride:][:n]
	for i := 0; i+8 <= len(a) && i+8 <= len(b); i += 8 {
		x, y := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
		to := dst[i*lanes:]
		binary.LittleEndian.PutUint64(to, x&low|y<<32)
		binary.LittleEndian.PutUint64(to[4*lanes:], x>>32|y&^low)
	}
}

// transpose4 interleaves n bytes, a multiple of 8, of each of 4 rows by 2 bytes, at 4 of the 16 places.
func transpose4(dst, src []byte, stride, n int) {
	const low, even = 1<<32 - 1, 0x0000ffff0000ffff
	a, b, c, d := src[:n], src[stride:][:n], src[2*stride:][:n], src[3*stride:][:n]
	for i := 0; i+8 <= n; i += 8 {
		w, x := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
		y, z := binary.LittleEndian.Uint64(c[i:]), binary.LittleEndian.Uint64(d[i:])
		p, q := w&even|x&even<<16, w>>16&even|x&^even // units 0 and 2, 1 and 3 of the first two rows
		r, s := y&even|z&even<<16, y>>16&even|z&^even // and of the others
		to := dst[i*lanes:][:3*2*lanes+8]
		binary.LittleEndian.PutUint64(to, p&low|r<<32)
		binary.LittleEndian.PutUint64(to[2*lanes:], q&low|s<<32)
		binary.LittleEndian.PutUint64(to[2*2*lanes:], p>>32|r&^low)
		binary.LittleEndian.PutUint64(to[3*2*lanes:], q>>32|s&^low)
	}
}

// gather is the inverse of interleave for one row: it writes to dst the units of src that lie 16 units apart.
func gather(dst, src []byte, unit int) {
	switch unit {
	case 1:
		for i := range dst {
			dst[i] = src[i*lanes]
		}
	case 2:
		for i := 0; i < len(dst); i += 2 {
			binary.LittleEndian.PutUint16(dst[i:], binary.LittleEndian.Uint16(src[i*lanes:]))
		}
	default:
		for i := 0; i < len(dst); i += 4 {
			binary.LittleEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(src[i*lanes:]))
		}
	}
}
