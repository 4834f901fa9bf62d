// number_doc.go turns constraints on numbers into languages of their JSON spellings.
//
// [All] is every number of JSON. As soon as a value matters, the language of all spellings is not regular (0.00001e5 and
// 100000e-5 are both 1, and so on without end). So every other language of this package is a part of [NumberSpellings], in
// which each value has the spellings that people and encoders write:
//
//   - plain decimals, with any number of digits and of zeros at the end of a fraction: 12, 12.50, -0.000
//   - scientific ones with one digit, not 0, before the point: 1e20, 1.5E-07, 1.0E10. The fraction has at most 20
//     digits and ends in 0 only where it is 0; the exponent has at most 3 digits.
//
// Within Spellings the languages are exact. Values are compared as decimals of any length; nothing is rounded. -0 is 0.
// The numbers that do not meet a constraint are And(Spellings(s), Not(language)); a number spelled otherwise is in
// neither.

package schema
