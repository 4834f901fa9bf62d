package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// manual returns the manual pages of the program: grove(1), and one of each command, from the text of docs/cli.md, whose tables are made
// from the program. date is that of the version.
func manual(commands, version, date string) ([]file, error) {
	sections, err := cut(commands)
	if err != nil {
		return nil, err
	}
	var general strings.Builder
	var list string
	var pages []file
	for _, s := range sections {
		name, isCommand := strings.CutPrefix(s.title, "grove ")
		switch {
		case s.title == "":
			list = s.body
		case !isCommand:
			fmt.Fprintf(&general, "# %s\n\n%s\n\n", strings.ToUpper(s.title), s.body)
		default:
			purpose, ok := purposes(sections[0].body)[name]
			if !ok {
				return nil, fmt.Errorf("docs/cli.md: the list of commands has no grove %s", name)
			}
			page := "grove-" + strings.ReplaceAll(name, " ", "-")
			pages = append(pages, render(page, version, date, purpose, commandBody(name, s.body)))
		}
	}
	if len(pages) != len(purposes(list)) {
		return nil, fmt.Errorf("docs/cli.md: %d commands have sections; the list has %d", len(pages), len(purposes(list)))
	}
	see := make([]string, len(pages))
	for i, p := range pages {
		see[i] = "**" + strings.TrimSuffix(strings.TrimPrefix(p.name, "man/man1/"), ".1") + "**(1)"
	}
	body := "# SYNOPSIS\n\n**grove** *COMMAND* [*FLAGS*] [*ARGUMENTS*]\n\n# DESCRIPTION\n\n" + list + "\n\n" + general.String() +
		"# SEE ALSO\n\n" + strings.Join(see, ", ") + "\n"
	return append(pages, render("grove", version, date, "run language models", body)), nil
}

// section is a part of a document under a heading of the second level; of the first one, the title is empty.
type section struct{ title, body string }

// cut returns the sections of a document.
func cut(text string) (sections []section, err error) {
	_, text, ok := strings.Cut("\n"+text, "\n# ")
	if !ok {
		return nil, fmt.Errorf("docs/cli.md has no title")
	}
	_, text, _ = strings.Cut(text, "\n")
	for i, part := range strings.Split("\n"+text, "\n## ") {
		title, body := "", part
		if i > 0 {
			title, body, _ = strings.Cut(part, "\n")
		}
		sections = append(sections, section{title, strings.Trim(plain(body), "\n")})
	}
	return sections, nil
}

var (
	comments = regexp.MustCompile(`(?m)^<!--.*-->\n?`)
	links    = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
	entries  = regexp.MustCompile(`(?m)^    grove ([a-z]+(?: [a-z]+)?)  +(.+)$`)
	flagRows = regexp.MustCompile(`(?m)^\| flag \| variable \| default \| meaning \|\n\|[-|]+\|\n((?:\|.*\|\n?)+)`)
)

// plain removes what a manual page cannot show: comments, and the places that links name.
func plain(text string) string {
	return links.ReplaceAllString(comments.ReplaceAllString(text, ""), "$1")
}

// purposes returns what each command of the list does, in a few words.
func purposes(list string) map[string]string {
	all := map[string]string{}
	for _, m := range entries.FindAllStringSubmatch(list, -1) {
		all[m[1]] = strings.ToLower(m[2][:1]) + m[2][1:]
	}
	return all
}

// commandBody returns the page of a command: the examples that its section begins with, its text, and its flags.
func commandBody(name, body string) string {
	var options string
	body = flagRows.ReplaceAllStringFunc(body, func(table string) string {
		options = definitions(flagRows.FindStringSubmatch(table)[1])
		return ""
	})
	var examples []string
	for strings.HasPrefix(body, "    ") || strings.HasPrefix(body, "\n") {
		line, rest, _ := strings.Cut(body, "\n")
		examples, body = append(examples, line), rest
	}
	if body = strings.TrimSpace(body); body != "" && unicode.IsLower(rune(body[0])) { // a sentence whose subject is the command
		body = "**grove " + name + "** " + body
	}
	text := "# SYNOPSIS\n\n**grove " + name + "** [*FLAGS*] [*ARGUMENTS*]\n\n# DESCRIPTION\n\n" + body + "\n\n"
	if strings.TrimSpace(strings.Join(examples, "")) != "" {
		text += "# EXAMPLES\n\n" + "    " + strings.TrimSpace(strings.Join(examples, "\n")) + "\n\n"
	}
	if options != "" {
		text += "# OPTIONS\n\n" + options + "\n"
	}
	return text + "# SEE ALSO\n\n**grove**(1), which has the names of models, the variables and the exit codes.\n"
}

// definitions returns the rows of a table of flags as a list of definitions.
func definitions(rows string) string {
	var b strings.Builder
	for row := range strings.Lines(rows) {
		row = strings.ReplaceAll(strings.Trim(strings.TrimSpace(row), "|"), `\|`, "\x00")
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "\x00", "|"))
		}
		fmt.Fprintf(&b, "%s\n: %s.", cells[0], cells[3])
		switch {
		case cells[2] == "required":
			b.WriteString(" It is required.")
		case cells[2] != "":
			fmt.Fprintf(&b, " Default: %s.", cells[2])
		}
		if cells[1] != "" {
			fmt.Fprintf(&b, " Variable: %s.", cells[1])
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

// render returns a manual page of section 1.
func render(name, version, date, purpose, body string) file {
	text := fmt.Sprintf("%% %s 1 \"%s\" \"grove %s\" \"grove\"\n\n# NAME\n\n%s - %s\n\n%s", strings.ToUpper(name), date, version, name, purpose, body)
	return file{name: "man/man1/" + name + ".1", data: md2man.Render([]byte(text))}
}
