package pull

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// choice is the files of a repository to pull.
type choice struct {
	files  []entry // in the order of their names; the first is the model's
	folder bool    // the model is the folder
	notes  []string
}

// group is a GGUF file, whole or split.
type group struct {
	name  string // without the number of the part and .gguf
	parts []entry
}

// preferred are the quantizations that a name without a tag takes, the first that there is.
var preferred = []string{"Q4_K_M", "Q8_0"}

// choose returns the files that a model's name stands for:
//
//   - a file that is named;
//   - of a repository with GGUF files, the one whose name contains the tag, case aside. A tag that stands between separators
//     counts before one within a word (Q4_0 before IQ4_0). Without a tag: Q4_K_M, else Q8_0, else the only file, else the first
//     by name. A tag that fits several files is refused with their names;
//   - of a repository of safetensors, the folder.
//
// All parts of a split file are taken. Projectors (mmproj) and importance matrices (imatrix) are left out, with a note.
func choose(entries []entry, m HubModel) (choice, error) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.Type != "file" })
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.Path, b.Path) })
	groups, left, err := ggufs(entries)
	if err != nil {
		return choice{}, fmt.Errorf("%s: %w", m.Repo, err)
	}
	var notes []string
	if len(left) > 0 {
		notes = append(notes, "left out, because grove reads text alone: "+names(left))
	}
	switch {
	case m.File != "":
		return hubNamed(groups, m)
	case len(groups) > 0:
		g, note, err := pick(groups, m)
		if note != "" {
			notes = append(notes, note)
		}
		return choice{files: g.parts, notes: notes}, err
	}
	return folder(entries, m)
}

// names lists the first few names.
func names[T any](all []T) string {
	const most = 12
	var b strings.Builder
	for i, v := range all {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(all)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		switch v := any(v).(type) {
		case entry:
			fmt.Fprintf(&b, "%.120q", v.Path)
		case group:
			fmt.Fprintf(&b, "%.120q", v.name)
		}
	}
	return b.String()
}

var splitPart = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})$`)

// ggufs groups the GGUF files of a repository. left are those that are no models.
func ggufs(entries []entry) (groups []group, left []entry, err error) {
	at := map[string]int{}
	for _, e := range entries {
		stem, isGGUF := strings.CutSuffix(e.Path, ".gguf")
		if !isGGUF {
			continue
		}
		if base := strings.ToLower(path.Base(stem)); strings.Contains(base, "mmproj") || strings.HasPrefix(base, "imatrix") {
			left = append(left, e)
			continue
		}
		whole := stem
		if part := splitPart.FindStringSubmatch(stem); part != nil {
			whole = part[1] + "-of-" + part[3] // two splits of one model stay apart
		}
		i, known := at[whole]
		if !known {
			i = len(groups)
			at[whole] = i
			groups = append(groups, group{name: strings.TrimSuffix(whole, "-of-"+lastDigits(whole))})
		}
		groups[i].parts = append(groups[i].parts, e)
	}
	for _, g := range groups {
		if err := g.check(); err != nil {
			return nil, nil, err
		}
	}
	return groups, left, nil
}

// lastDigits returns the five digits at the end of a name that has them behind "-of-".
func lastDigits(name string) string {
	if i := strings.LastIndex(name, "-of-"); i >= 0 {
		return name[i+4:]
	}
	return ""
}

// check returns an error if parts of a split file are missing.
func (g group) check() error {
	for i, e := range g.parts {
		part := splitPart.FindStringSubmatch(strings.TrimSuffix(e.Path, ".gguf"))
		if part == nil {
			return nil
		}
		number, _ := strconv.Atoi(part[2])
		count, _ := strconv.Atoi(part[3])
		if number != i+1 || count != len(g.parts) {
			return fmt.Errorf("%q has %d of %d parts", g.name, len(g.parts), count)
		}
	}
	return nil
}

// hubNamed returns the file that a model names, with all its parts.
func hubNamed(groups []group, m HubModel) (choice, error) {
	for _, g := range groups {
		for _, e := range g.parts {
			if e.Path == m.File {
				return choice{files: g.parts}, nil
			}
		}
	}
	return choice{}, fmt.Errorf("%s: it has no GGUF file %.120q; it has %s", m.Repo, m.File, names(groups))
}

// pick returns the file of a tag, or that of no tag, and what to say of it.
func pick(groups []group, m HubModel) (g group, note string, err error) {
	tags := preferred
	if m.Tag != "" {
		tags = []string{m.Tag}
	}
	for _, tag := range tags {
		found := fitting(groups, tag)
		if len(found) > 1 {
			return g, "", fmt.Errorf("%s: %q fits several files; name one as %s:NAME: %s", m.Repo, tag, m.Repo, names(found))
		}
		if len(found) == 1 {
			return found[0], "", nil
		}
	}
	if m.Tag != "" {
		return g, "", fmt.Errorf("%s: no GGUF file has %.80q in its name; it has %s", m.Repo, m.Tag, names(groups))
	}
	if len(groups) > 1 {
		note = fmt.Sprintf("there is neither %s; %q is the first by name of %d files", strings.Join(preferred, " nor "), groups[0].name, len(groups))
	}
	return groups[0], note, nil
}

// fitting returns the files whose names contain a tag: those in which it stands between separators, or else all.
func fitting(groups []group, tag string) (found []group) {
	tag = strings.TrimSuffix(strings.ToLower(tag), ".gguf")
	word := regexp.MustCompile(`(^|[-._/])` + regexp.QuoteMeta(tag) + `($|[-./])`)
	for _, of := range []func(name string) bool{
		func(name string) bool { return name == tag || path.Base(name) == tag },
		word.MatchString,
		func(name string) bool { return strings.Contains(name, tag) },
	} {
		for _, g := range groups {
			if of(strings.ToLower(g.name)) {
				found = append(found, g)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// folderFiles are the files of a folder that grove reads beside its weights.
var folderFiles = []string{
	"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
	"added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja", "chat_template.json",
	"model.safetensors.index.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json",
	"LICENSE", "LICENSE.txt", "LICENSE.md",
}

var shard = regexp.MustCompile(`^model-\d{5}-of-\d{5}\.safetensors$`)

// folder returns the files of a model of safetensors. Weights that are pickles are never taken.
func folder(entries []entry, m HubModel) (c choice, err error) {
	if m.Tag != "" {
		return c, fmt.Errorf("%s: it has no GGUF file, of which %.80q could be the tag; without a tag its safetensors are pulled", m.Repo, m.Tag)
	}
	c.folder = true
	weights, config, pickles := 0, false, 0
	isWeights := func(e entry) bool { return e.Path == "model.safetensors" || shard.MatchString(e.Path) }
	if !slices.ContainsFunc(entries, isWeights) { // other names, which an index may list
		isWeights = func(e entry) bool { return path.Ext(e.Path) == ".safetensors" && !strings.Contains(e.Path, "/") }
	}
	for _, e := range entries {
		switch {
		case isWeights(e):
			weights++
			c.files = append(c.files, e)
		case slices.Contains(folderFiles, e.Path):
			config = config || e.Path == "config.json"
			c.files = append(c.files, e)
		case slices.Contains([]string{".bin", ".pt", ".pth", ".pkl", ".ckpt"}, path.Ext(e.Path)):
			pickles++
		}
	}
	switch {
	case weights > 0 && config:
		return c, nil
	case pickles > 0:
		return c, fmt.Errorf("%s: its weights are pickles, which can run code and are not read; look for a repository with GGUF or safetensors files", m.Repo)
	}
	return c, fmt.Errorf("%s: it has neither a GGUF file nor config.json with safetensors files", m.Repo)
}
