// Package front is the suite of tests of the front door, package grove, with real models: every answer, alone or among others,
// drafted, searched, constrained or resumed, is the one that plain decoding gives.
package front
