package resident

import (
	"sync"

	"grove/search/bytewise"
)

// words is a vocabulary as bytes, made when it is first wanted.
type words struct {
	once  sync.Once
	words *bytewise.Vocabulary
	err   error
}

// Words returns the model's vocabulary as bytes. Errors are those of [bytewise.New].
func (m *Model) Words() (*bytewise.Vocabulary, error) {
	m.spelling.once.Do(func() {
		m.spelling.words, m.spelling.err = bytewise.New(m.Tokenizer, m.Engine.Model().Size().Vocabulary)
	})
	return m.spelling.words, m.spelling.err
}
