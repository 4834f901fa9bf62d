package method

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Option describes a number that a user may choose of a method, written name=value.
type Option struct {
	Name        string
	Is          string // for errors: a letter for the value, a comma, and what it is
	Usual       int    // where none is given; below Least: the method chooses, and nothing is spelled
	Least, Most int
	Hundredths  bool // a user writes a hundredth of the number, such as 0.6 for 60
}

// Read returns the number that a text stands for; false: it is none, or out of range.
func (o Option) Read(text string) (n int, ok bool) {
	n, err := strconv.Atoi(text)
	if o.Hundredths {
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		if !(math.Abs(x) <= math.MaxInt32) || math.Abs(100*x-math.Round(100*x)) >= 1e-6 {
			return 0, false
		}
		n = int(math.Round(100 * x))
	}
	return n, err == nil && n >= o.Least && n <= o.Most
}

// Text returns the one spelling of a number.
func (o Option) Text(n int) string {
	if o.Hundredths {
		return strconv.FormatFloat(float64(n)/100, 'g', -1, 64)
	}
	return strconv.Itoa(n)
}

// use says in an error how the option is written.
func (o Option) use() string {
	switch s := fmt.Sprintf("%s=%s, from %s", o.Name, o.Is, o.Text(o.Least)); {
	case o.Most == math.MaxInt:
		return s
	case o.Hundredths:
		return s + " to " + o.Text(o.Most) + " in hundredths"
	default:
		return s + " to " + o.Text(o.Most)
	}
}

// options are those of one method, in the order of their one spelling.
type options []Option

// Takes returns the description of a method with options, of which a user may give some, each once, with a + between them; without options it takes none. open prepares the method with the number of each, in
// order; the number of one that the method chooses is its usual one.
func (i Info) Takes(all []Option, open func(Env, []int) (Method, error)) Info {
	o := options(all)
	with := func(numbers []int) func(Env) (Method, error) {
		return func(e Env) (Method, error) { return open(e, numbers) }
	}
	usual := o.usual()
	if i.Open = with(usual); len(o) == 0 {
		return i
	}
	i.Options = o.spell(usual, true)
	i.WithOption = func(option string) (func(Env) (Method, error), string, error) {
		numbers, err := o.read(option)
		if err != nil {
			return nil, "", err
		}
		return with(numbers), o.spell(numbers, false), nil
	}
	return i
}

// usual returns the numbers where none is given.
func (o options) usual() (numbers []int) {
	for _, one := range o {
		numbers = append(numbers, one.Usual)
	}
	return numbers
}

// read returns the numbers of options as a user writes them.
func (o options) read(option string) ([]int, error) {
	numbers, given := o.usual(), make([]bool, len(o))
	for part := range strings.SplitSeq(option, "+") {
		name, value, _ := strings.Cut(part, "=")
		known := false
		for k, one := range o {
			if n, ok := one.Read(value); ok && one.Name == name && !given[k] {
				numbers[k], given[k], known = n, true, true
			}
		}
		if !known {
			return nil, fmt.Errorf("option %q is not known; use %s", option, o.use())
		}
	}
	return numbers, nil
}

// use says in an error how the options are written.
func (o options) use() string {
	if len(o) == 1 {
		return o[0].use()
	}
	var uses []string
	for _, one := range o {
		uses = append(uses, one.use())
	}
	last := len(uses) - 1
	return strings.Join(uses[:last], ", ") + ", and " + uses[last] + ", with a + between them"
}

// spell returns the one spelling of numbers. An option that the method chooses is left out, or has its letter.
func (o options) spell(numbers []int, letters bool) string {
	var parts []string
	for k, one := range o {
		text := one.Text(numbers[k])
		if numbers[k] < one.Least {
			text, _, _ = strings.Cut(one.Is, ",")
		}
		if numbers[k] >= one.Least || letters {
			parts = append(parts, one.Name+"="+text)
		}
	}
	return strings.Join(parts, "+")
}
