// format_doc.go holds the languages of JSON Schema's keyword format, over the decoded text of a string.
//
// Exact, by the documents that JSON Schema names:
//
//	date, time, date-time     RFC 3339: days of months, leap years; second 60 where it is 23:59 in UTC
//	duration                  RFC 3339, appendix A
//	ipv4, ipv6                RFC 2673 3.2, RFC 4291 2.2, without zones and masks
//	uri, uri-reference        RFC 3986
//	iri, iri-reference        RFC 3987, without the marks of writing direction that its section 4.1 forbids
//	uuid                      RFC 4122, any version and variant
//	json-pointer              RFC 6901
//	relative-json-pointer     the draft of Luff and Andrews
//
// From inside ([FormatExact] is false): each text is valid, and some valid texts are missing, which are in [Possible]:
//
//	email          RFC 5321 with its bounds on lengths, without backslashes; its names as under hostname, its literals IPv4 and IPv6 only
//	idn-email      RFC 6531, the same with names as under idn-hostname
//	hostname       RFC 1123, 253 bytes, labels of 63; none with -- at its third place (Punycode is no regular language)
//	idn-hostname   those of hostname; and up to three labels that have up to seven letters of Latin, Greek, Cyrillic, kana, Han
//	               or Hangul that RFC 5892 allows, in up to 14 characters (the length in Punycode is no regular language)
//	uri-template   RFC 6570 without the operators that it reserves
//	regex          expressions of common parts with groups in groups up to four deep; valid under ECMA-262 and RE2
//
// Any other name is unknown, and says nothing about a string.

package schema
