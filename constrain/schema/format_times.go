package schema

import "grove/constrain/regex"

const (
	leapYear = `(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`
	date     = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|` +
		`02-(?:0[1-9]|1[0-9]|2[0-8]))|` + leapYear + `-02-29)`

	clock  = `(?:[01][0-9]|2[0-3]):[0-5][0-9]`
	second = `:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|[+-]` + clock + `)`

	seconds      = `[0-9]+S`
	minutes      = `[0-9]+M(?:` + seconds + `)?`
	hours        = `[0-9]+H(?:` + minutes + `)?`
	formatWithin = `T(?:` + hours + `|` + minutes + `|` + seconds + `)`
	days         = `[0-9]+D`
	months       = `[0-9]+M(?:` + days + `)?`
	years        = `[0-9]+Y(?:` + months + `)?`
	duration     = `P(?:(?:` + days + `|` + months + `|` + years + `)(?:` + formatWithin + `)?|` + formatWithin + `|[0-9]+W)`
)

// time is the times of RFC 3339.
func (m *maker) time() regex.ID {
	return m.s.Or(m.whole(clock+second), m.s.Machine(leap{}, 0))
}

// leap is the automaton of the times with a second 60. They need the offset that makes them 23:59 in UTC, so it remembers
// hours and minutes. A state is place<<12 | hours<<6 | minutes.
type leap struct{}

// Places in a leap second: digits and colons are counted, then these follow.
const (
	leapSixty    = 8 // behind HH:MM:60
	leapPoint    = 9
	leapFraction = 10
	leapEnd      = 11
	leapOffset   = 12 // and 5 more: behind the sign, and each character of the offset that must follow
)

// Step reads a byte.
func (leap) Step(state int, b byte) (int, bool) {
	place, h, m := state>>12, state>>6&63, state&63
	digit := int(b) - '0'
	isDigit := 0 <= digit && digit <= 9
	ok := false
	switch {
	case place < leapSixty:
		h, m, ok = clockStep(place, h, m, b)
		place++
	case place == leapPoint || place == leapFraction && isDigit:
		place, ok = leapFraction, isDigit
	case place == leapEnd:
	case place >= leapOffset:
		want := byte('0' + h/10)
		switch place - leapOffset { // what was read is forgotten: fewer states
		case 0:
			h %= 10
		case 1:
			want, h = byte('0'+h), 0
		case 2:
			want = ':'
		case 3:
			want, m = byte('0'+m/10), m%10
		case 4:
			want = byte('0' + m)
		}
		ok = b == want
		if place++; place == leapOffset+5 {
			place = leapEnd
		}
	case b == '.':
		place, ok = leapPoint, place == leapSixty
	case b == 'Z' || b == 'z':
		place, ok = leapEnd, h == 23 && m == 59
	case b == '+': // the local time less 23:59, in a day
		h, m = (h+(m+1)/60)%24, (m+1)%60
		place, ok = leapOffset, true
	case b == '-':
		h, m = 23-h, 59-m
		place, ok = leapOffset, true
	}
	if place == leapEnd {
		h, m = 0, 0
	}
	return place<<12 | h<<6 | m, ok
}

// clockStep reads a byte of HH:MM:60.
func clockStep(place, h, m int, b byte) (int, int, bool) {
	digit := int(b) - '0'
	switch place {
	case 0:
		return digit, m, 0 <= digit && digit <= 2
	case 1:
		h = h*10 + digit
		return h & 63, m, 0 <= digit && digit <= 9 && h < 24
	case 2, 5:
		return h, m, b == ':'
	case 3:
		return h, digit & 63, 0 <= digit && digit <= 5
	case 4:
		return h, (m*10 + digit) & 63, 0 <= digit && digit <= 9
	case 6:
		return h, m, b == '6'
	}
	return h, m, b == '0'
}

// Final reports whether a time may end in a state.
func (leap) Final(state int) bool { return state>>12 == leapEnd }

// ASCII says that no other characters occur.
func (leap) ASCII() bool { return true }
