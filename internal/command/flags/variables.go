package flags

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
)

// resolve gives a flag that is not on the command line the value of its environment variable, if that is set and not
// empty. A value that the flag refuses is an [exit.VariableError].
func resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	name := flag.Tag.Get("var")
	text := os.Getenv(name)
	if text == "" {
		return nil, nil
	}
	trial := reflect.New(flag.Target.Type()).Elem()
	if trial.Kind() == reflect.Pointer {
		trial.Set(reflect.New(trial.Type().Elem()))
	}
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text})
	err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, trial)
	if v, ok := trial.Interface().(interface{ Valid() error }); ok && err == nil {
		err = v.Valid()
	}
	if err != nil {
		return nil, &exit.VariableError{Name: name, Err: err}
	}
	return text, nil
}

// blame returns the error of a command line with the names of the variables that it is about, as an [exit.VariableError]: those
// whose value it quotes, unless it quotes a flag of the command line too. The errors are those of a command line that is refused, and
// of a file or a model that is not there; all others are returned as they are.
func blame(line *kong.Context, err error) error {
	missing := exit.Code(err) == exit.CodeFile && (errors.Is(err, fs.ErrNotExist) || isUnknown(err))
	if variable := new(exit.VariableError); line == nil || errors.As(err, &variable) || exit.Code(err) != exit.CodeUsage && !missing {
		return err
	}
	var names []string
	for _, p := range line.Path {
		if p.Flag == nil || p.Flag.IsBool() {
			continue
		}
		name := p.Flag.Tag.Get("var")
		switch {
		case !p.Resolved && (quotes(err.Error(), fmt.Sprint(reflect.Indirect(p.Flag.Target).Interface()))):
			return err
		case p.Resolved && quotes(err.Error(), os.Getenv(name)) && !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return err
	}
	return &exit.VariableError{Name: strings.Join(names, " or "), Err: err}
}

// quotes reports whether a text has a value as a word. Case does not count.
func quotes(text, value string) bool {
	text, value = strings.ToLower(text), strings.ToLower(value)
	if value == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at+i])
		after, _ := utf8.DecodeRuneInString(text[at+i+len(value):])
		if !inWord(before) && !inWord(after) {
			return true
		}
		at += i + 1
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' }
