package flags

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
	"grove/internal/command/harmless"
	"grove/internal/gopher"
	"grove/internal/weights/find"
)

// Named is Model of a command whose only argument names the model too.
type Named struct {
	Model
	First *string `arg:"" optional:"" name:"model" help:"The model, as for --model."`
}

// Parsed implements [Hooked].
func (n *Named) Parsed() Hook { return Hook{Of: n, Do: n.parsed} }

// parsed takes the model of the argument, which counts before that of the variable.
func (n *Named) parsed(line *kong.Context) error {
	if n.First == nil {
		return nil
	}
	if OnLine(line, "model") {
		return fmt.Errorf("the model is named twice: by --model and by %.80q; leave out one%s", *n.First, fromInput[line.Selected().Name])
	}
	n.Path = *n.First
	return nil
}

// fromInput is said of commands where the argument that names the model may have been meant as a text.
var fromInput = map[string]string{
	"tokenize": " (the text is read from standard input)", "perplexity": " (the text is read from --file or standard input)",
}

// OnLine reports whether a flag is on the command line.
func OnLine(line *kong.Context, name string) bool {
	for _, p := range line.Path {
		if p.Flag != nil && p.Flag.Name == name && !p.Resolved {
			return true
		}
	}
	return false
}

// textOnly is the flag that package arguments sets where -- stands before the text. Users do not see it.
const textOnly = "text-only"

// Subject is the model and the text of a command whose arguments may name both: MODEL [TEXT...], or TEXT... alone. The variable text
// is the help of the text.
//
// With --model, or behind --, all arguments are text. Otherwise the first one is the model if there is a model of that path or
// name; if there is none and [LooksLikeModel] is true of it, it is refused; and else it is text. Several words are one text with spaces
// between. [Subject.Resolve] decides.
type Subject struct {
	Model
	First  *string  `arg:"" optional:"" name:"model" help:"The model, as for --model, if there is one of this name; else the text begins here. -- before a text keeps it from being read as a model."`
	Words  []string `arg:"" optional:"" name:"text" help:"${text}"`
	Only   bool     `name:"text-only" hidden:""`
	isLine bool     // --model is on the command line
	name   string   // of the command
}

// Parsed implements [Hooked].
func (s *Subject) Parsed() Hook { return Hook{Of: s, Do: s.parsed} }

// parsed notes the command, and whether the command line has --model.
func (s *Subject) parsed(line *kong.Context) error {
	s.isLine, s.name = OnLine(line, "model"), line.Selected().FullPath()
	return nil
}

// Resolve finds out which argument is the model, and returns the text, nil for none. It reports a model that an argument names
// on standard error.
func (s *Subject) Resolve() (text *string, err error) {
	words, err := s.Texts()
	if err != nil || len(words) == 0 {
		return nil, err
	}
	joined := strings.Join(words, " ")
	return &joined, nil
}

// Texts is [Subject.Resolve] for arguments that are texts by themselves.
func (s *Subject) Texts() (words []string, err error) {
	if s.First == nil {
		return nil, nil
	}
	words = append([]string{*s.First}, s.Words...)
	if !s.isLine && !s.Only {
		path, found := lookup(words[0])
		if !found && LooksLikeModel(words[0]) {
			if path, err = s.missing(words[0]); err != nil {
				return nil, err
			}
			found = true
		}
		if found {
			fmt.Fprintf(os.Stderr, "grove: %.80q is a model: using %s (-- before a text keeps it from being read as a model)\n", words[0], harmless.Line(path))
			s.Path, words = path, words[1:]
		}
	}
	return words, nil
}

// missing returns the path of a model that was found at second sight, or the error for a name of none.
func (s *Subject) missing(name string) (path string, err error) {
	path, err = Find(name)
	if err == nil {
		_, err = os.Stat(path)
		err = exit.File(err)
	}
	if err != nil {
		err = fmt.Errorf("%.80q looks like the name of a model, and there is none: %w; to use it as a text: %s -- %s", name, err, s.name, name)
	}
	return path, err
}

const (
	maxPath = 4096 // bytes of an argument that may be a path
	maxName = 200  // bytes of an argument that may be a name
)

// lookup returns the path of the model that an argument names, if there is one. It asks nobody and fetches nothing.
func lookup(name string) (path string, found bool) {
	if name == "" || len(name) > maxPath || strings.ContainsAny(name, "\n\x00") {
		return "", false
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.Mode().IsRegular():
		return name, isModelFile(name)
	case err == nil && !info.IsDir():
		return "", false
	case err != nil && gopher.Named(name) != nil:
		return name, true
	case err != nil && (len(name) > maxName || strings.ContainsAny(name, " \t")):
		return "", false // no name of a model
	}
	if path, err = find.System().Find(name); err != nil {
		return "", false
	}
	_, err = os.Stat(path)
	return path, err == nil
}

// isModelFile reports whether a file is a model by its name or its first bytes.
func isModelFile(name string) bool {
	if strings.HasSuffix(strings.ToLower(name), ".gguf") {
		return true
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 4)
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == "GGUF"
}

var (
	// nameLetters are the letters of which names of models are made.
	nameLetters = regexp.MustCompile(`^[A-Za-z0-9~./][A-Za-z0-9._~/:@+-]*$`)
	// compound is a name with a slash or a colon in it, and a letter somewhere: org/name, name:tag, ~/models.
	compound = regexp.MustCompile(`^[^/:]+[/:].*[A-Za-z]|^[^/:]*[A-Za-z][^/:]*[/:].+|^/.`)
	// versioned are a letter, and behind it digits: llama3.2, qwen3, deepseek-r1, Mistral-7B.
	versioned = regexp.MustCompile(`[A-Za-z][A-Za-z._-]*[0-9]`)
	// family are names of families of models, alone or with a hyphen and more behind them.
	family = regexp.MustCompile(`^(?i:bert|codellama|deepseek|gemma|gpt-oss|granite|llama|mistral|mixtral|olmo|phi|qwen|smollm|starcoder|tinyllama)(-.*)?$`)
)

// LooksLikeModel reports whether an argument looks like the name of a model and not like a text: it has no
// space, and it ends in .gguf; or it is made of letters, digits and ._~/:@+- alone and has a slash or a colon in it (org/name, name:tag),
// or a letter and behind it a digit (llama3.2, deepseek-r1), or it is the name of a known family (mistral, gemma-it).
func LooksLikeModel(name string) bool {
	switch {
	case len(name) > maxName || strings.ContainsAny(name, " \t\r\n"):
		return false
	case strings.HasSuffix(strings.ToLower(name), ".gguf"):
		return true
	case !nameLetters.MatchString(name):
		return false
	}
	return compound.MatchString(name) || versioned.MatchString(name) || family.MatchString(name)
}
