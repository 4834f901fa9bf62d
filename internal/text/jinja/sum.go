package jinja

// sum is an expression of terms with + between them alone.
type sum struct {
	from, to int // its tokens
	terms    []expr
	plain    bool // there is no other operator
}

// mostTerms bounds the terms of a sum that are printed one by one.
const mostTerms = 64

// add adds a term behind an operator.
func (s *sum) add(op string, term expr) {
	s.terms, s.plain = append(s.terms, term), s.plain && op == "+"
}

// printed reads an expression and makes a statement that prints it. Of a sum of texts the terms are printed one by one: a conversation of megabytes is not copied for each +.
func (p *parser) printed(line int) stmt {
	from := p.pos
	e := p.tuple(p.expression)
	of := p.last
	if of.from != from || of.to != p.pos || len(of.terms) < 2 || len(of.terms) > mostTerms {
		return output(line, e)
	}
	return func(s *state) flow {
		s.line = line
		s.enter()
		s.printSum(of.terms)
		s.leave()
		return flowOn
	}
}

// printSum prints the sum of some terms.
func (s *state) printSum(terms []expr) {
	values, texts := make([]Value, len(terms)), true
	for i, term := range terms {
		values[i] = term(s)
		texts = texts && isA[Text](values[i])
	}
	if texts {
		for _, v := range values {
			s.print(v.(Text))
		}
		return
	}
	v := values[0]
	for _, further := range values[1:] {
		v = s.binary("+", v, further)
	}
	s.print(s.str(unmarked(v)))
}
