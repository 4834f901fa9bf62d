package jinja

import "slices"

// args are the arguments of a call. The values of names are in named.
type args struct {
	of    string // the name of the called function, filter, test or method
	pos   []Value
	names []string
	named []Value
}

// absent stands for an argument that is not given.
type absent struct{}

// take removes a named argument and returns it.
func (a *args) take(name string) (Value, bool) {
	i := slices.Index(a.names, name)
	if i < 0 {
		return nil, false
	}
	v := a.named[i]
	a.names, a.named = slices.Delete(slices.Clone(a.names), i, i+1), slices.Delete(slices.Clone(a.named), i, i+1)
	return v, true
}

// bind returns the argument of each parameter, or absent.
func (a args) bind(s *state, params []string) []Value {
	if len(a.pos) > len(params) {
		s.fail("%s: %d arguments without a name; it takes at most %d", a.of, len(a.pos), len(params))
	}
	out := slices.Repeat([]Value{absent{}}, len(params))
	copy(out, a.pos)
	for i, name := range a.names {
		k := slices.Index(params, name)
		if k < 0 || !isA[absent](out[k]) {
			s.fail("%s: argument %.40q: not supported, or given twice; it takes %q", a.of, name, params)
		}
		out[k] = a.named[i]
	}
	return out
}

// operation is a filter, a test or a method: it computes a value from a value and arguments.
type operation func(s *state, v Value, a args) Value

// needed is the default of a parameter that must be given. Its argument has the type of like; nil: any type.
type needed struct{ like Value }

// op makes an operation with parameters: params are their names, each with its default. An argument must have the type of its
// default; a default of nil allows any type.
//
//go:noinline
func op(do func(s *state, v Value, a []Value) Value, params ...any) operation {
	names, defaults := make([]string, len(params)/2), make([]Value, len(params)/2)
	for i := range names {
		names[i], defaults[i] = params[2*i].(string), params[2*i+1]
	}
	return func(s *state, v Value, a args) Value {
		given := a.bind(s, names)
		for i, g := range given {
			given[i] = s.argument(a.of, names[i], g, defaults[i])
		}
		return do(s, v, given)
	}
}

// argument returns an argument with the type of its default, or the default if it is absent.
func (s *state) argument(of, name string, given, otherwise Value) Value {
	need, must := otherwise.(needed)
	if isA[absent](given) {
		if must {
			s.fail("%s: argument %q is missing", of, name)
		}
		return otherwise
	}
	like := otherwise
	if must {
		like = need.like
	}
	ok := true
	switch like.(type) {
	case bool:
		return truth(given)
	case int64:
		var i int64
		if i, ok = integer(given); ok {
			return i
		}
	case Text:
		ok = isA[Text](given)
	}
	if !ok {
		s.fail("%s: argument %q is of type %s; it needs %s", of, name, typeName(given), typeName(like))
	}
	return given
}
