package jinja

import "grove/text/jinja/value"

// test tells something of a value.
type test = func(s *value.Steps, v value.Value, a value.Args) bool

// tests by name.
var tests = map[string]test{
	"defined":     is(func(v value.Value) bool { return !isA[value.Undefined](v) }),
	"undefined":   is(isA[value.Undefined]),
	"none":        is(func(v value.Value) bool { return v == nil }),
	"true":        is(func(v value.Value) bool { return v == true }),
	"false":       is(func(v value.Value) bool { return v == false }),
	"boolean":     is(isA[bool]),
	"integer":     is(isA[int64]),
	"float":       is(isA[float64]),
	"number":      is(func(v value.Value) bool { _, ok := value.Number(v); return ok }),
	"string":      is(isA[value.Text]),
	"mapping":     is(isA[*value.Map]),
	"sequence":    is(isSequence),
	"iterable":    is(isSequence),
	"callable":    is(isA[*value.Function]),
	"odd":         func(s *value.Steps, v value.Value, a value.Args) bool { return remainder(s, v, 2, a) != 0 },
	"even":        func(s *value.Steps, v value.Value, a value.Args) bool { return remainder(s, v, 2, a) == 0 },
	"divisibleby": testDivisible,
	"in":          func(s *value.Steps, v value.Value, a value.Args) bool { return s.Contains(other(s, a), v) },
	"sameas":      testSame,
	"lower":       textTest("islower"),
	"upper":       textTest("isupper"),
	"eq":          comparison("=="), "equalto": comparison("=="), "ne": comparison("!="),
	"lt": comparison("<"), "lessthan": comparison("<"), "le": comparison("<="),
	"gt": comparison(">"), "greaterthan": comparison(">"), "ge": comparison(">="),
	"==": comparison("=="), "!=": comparison("!="), "<": comparison("<"), "<=": comparison("<="), ">": comparison(">"), ">=": comparison(">="),
}

// applyTest tests a value by a test's name.
func applyTest(s *value.Steps, name string, v value.Value, a value.Args) bool {
	t, ok := tests[name]
	if !ok {
		s.Fail("test %.40q is not supported", name)
	}
	return t(s, v, a)
}

func isA[T any](v value.Value) bool {
	_, ok := v.(T)
	return ok
}

// is makes a test that takes no argument.
func is(holds func(value.Value) bool) test {
	return func(s *value.Steps, v value.Value, a value.Args) bool {
		a.Bind(s, "the test")
		return holds(v)
	}
}

// other returns the one argument of a test.
func other(s *value.Steps, a value.Args) value.Value {
	v := a.Bind(s, "the test", "other")[0]
	if v == value.Absent {
		s.Fail("the test needs an argument")
	}
	return v
}

func comparison(op string) test {
	return func(s *value.Steps, v value.Value, a value.Args) bool { return s.Holds(op, v, other(s, a)) }
}

func textTest(method string) test {
	m := value.TextMethod(method)
	return func(s *value.Steps, v value.Value, a value.Args) bool { return m(s, v, a) == true }
}

func isSequence(v value.Value) bool {
	switch v.(type) {
	case value.Text, *value.List, *value.Map, value.Undefined:
		return true
	}
	return false
}

// remainder returns v modulo n, by a test that takes no argument.
func remainder(s *value.Steps, v value.Value, n int64, a value.Args) int64 {
	a.Bind(s, "the test")
	i, ok := value.Integer(v)
	if !ok {
		s.Fail("%s is no whole number", value.TypeName(v))
	}
	return i % n
}

func testDivisible(s *value.Steps, v value.Value, a value.Args) bool {
	n, ok := value.Integer(other(s, a))
	if !ok || n == 0 {
		s.Fail("divisibleby needs a number other than 0")
	}
	return remainder(s, v, n, value.Args{}) == 0
}

func testSame(s *value.Steps, v value.Value, a value.Args) bool {
	w := other(s, a)
	return value.TypeName(v) == value.TypeName(w) && s.Equal(v, w)
}
