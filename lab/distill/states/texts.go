package states

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"grove"
	"grove/internal/fileio"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// open checks the options, and finds out how texts of the model begin, and how long they are.
func (w *writer) open() error {
	refuse := func(format string, args ...any) error {
		return &grove.OptionError{Err: fmt.Errorf("states: "+format, args...)}
	}
	switch o := &w.o; {
	case o.Type != tensor.F32 && o.Type != tensor.F16:
		return refuse("values of type %v; F32 and F16 can be written", o.Type)
	case o.IDs != "" && o.Bytes != 2 && o.Bytes != 4:
		return refuse("ids of %d bytes; they have 2 or 4", o.Bytes)
	case o.Length < 0 || o.MaxTokens < 0:
		return refuse("texts of %d tokens, all of them of %d; 0 or more", o.Length, o.MaxTokens)
	}
	w.o.Length, w.o.MaxTokens = cmp.Or(w.o.Length, w.m.Info().Context), cmp.Or(w.o.MaxTokens, math.MaxInt)
	if w.o.IDs != "" {
		return nil
	}
	alone, err := w.m.Tokenize("", true, true)
	if err != nil {
		return err
	}
	some, err := w.m.Tokenize("x", true, true)
	if err != nil {
		return err
	}
	n := 0
	for n < min(len(alone), len(some)) && alone[n] == some[n] {
		n++ // what stands before every text
	}
	if w.first = alone[:n]; w.o.Length <= n {
		return refuse("texts of %d tokens; it must be %d or more: a text of this model begins with %d of its own", w.o.Length, n+1, n)
	}
	return nil
}

// each calls do with the tokens of each text, which it must not keep, until there is none left or as many tokens as are wanted were given.
func (w *writer) each(ctx context.Context, do func(ids []token.ID) error) error {
	cut := &cutter{first: w.first, length: w.o.Length, left: w.o.MaxTokens, do: do}
	if w.o.IDs != "" {
		return cut.end(w.readIDs(ctx, cut))
	}
	err := w.o.Texts(func(name, text string) error {
		if text == "" {
			return fmt.Errorf("states: %s: it is empty", name)
		}
		skip := len(w.first) // the cutter has them
		err := w.m.TokenizeParts(ctx, text, true, true, func(ids []token.ID) error {
			n := min(skip, len(ids))
			skip -= n
			return cut.add(ids[n:])
		})
		if err := cut.end(err); err != nil {
			return err
		}
		if cut.full() {
			return io.EOF
		}
		return nil
	})
	if err == io.EOF {
		return nil
	}
	return err
}

// readIDs gives the ids of the file to a cutter.
func (w *writer) readIDs(ctx context.Context, cut *cutter) error {
	f, err := fileio.OpenRegular(w.o.IDs)
	if err != nil {
		return fmt.Errorf("states: %w", err)
	}
	defer f.Close()
	fail := func(format string, args ...any) error {
		return fmt.Errorf("states: %s: "+format, append([]any{w.o.IDs}, args...)...)
	}
	r, b, vocabulary := bufio.NewReaderSize(f, 1<<16), make([]byte, w.o.Bytes), w.m.Vocabulary()
	var one [1]token.ID
	for i := 0; ctx.Err() == nil; i++ {
		n, err := io.ReadFull(r, b)
		switch {
		case err == io.EOF && i > 0:
			return nil
		case err == io.EOF:
			return fail("the file is empty: it has no token ids")
		case err == io.ErrUnexpectedEOF:
			return fail("it ends with %d bytes of an id, behind %d ids of %d bytes; the file is cut off, or has ids of another type", n, i, w.o.Bytes)
		case err != nil:
			return fail("%w", err)
		}
		if one[0] = token.ID(binary.LittleEndian.Uint16(b)); w.o.Bytes == 4 {
			one[0] = token.ID(binary.LittleEndian.Uint32(b))
		}
		if id := one[0]; id < 0 || int(id) >= vocabulary {
			return fail("token id %d at index %d (byte %d) is out of range: the vocabulary has %d", id, i, i*w.o.Bytes, vocabulary)
		}
		if err := cut.add(one[:]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// cutter cuts tokens into texts.
type cutter struct {
	first  []token.ID // with which each begins
	length int        // of each, at most
	left   int        // tokens that are wanted still
	do     func(ids []token.ID) error
	now    []token.ID
}

// full reports whether there is no room for a token of another text.
func (c *cutter) full() bool { return c.left <= len(c.first) }

// add adds tokens to the present text. It returns [io.EOF] where no more are wanted.
func (c *cutter) add(ids []token.ID) error {
	for _, id := range ids {
		if len(c.now) == 0 {
			if c.full() {
				return io.EOF
			}
			c.now = append(c.now, c.first...)
		}
		if c.now = append(c.now, id); len(c.now) == min(c.length, c.left) {
			if err := c.give(); err != nil {
				return err
			}
		}
	}
	return nil
}

// give ends the present text.
func (c *cutter) give() error {
	c.left -= len(c.now)
	err := c.do(c.now)
	c.now = c.now[:0]
	return err
}

// end ends the last text, unless reading its tokens ended with an error.
func (c *cutter) end(err error) error {
	if err != nil && err != io.EOF {
		return err
	}
	if len(c.now) > 0 {
		return c.give()
	}
	return nil
}
