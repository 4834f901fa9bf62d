package pretoken

// known is a cutter that implements an expression.
type known struct {
	cutter     string
	everywhere bool // it matches at every place
}

const foldedContractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`

// published are the expressions of tokenizer.json files that cutters implement.
var published = map[string]known{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:                                    {"gpt2", true},
	foldedContractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:  {"llama3", true},
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: {"llama3", true},
	foldedContractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:       {"qwen2", true},
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:      {"qwen2", true},
	foldedContractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` +
		`\s*[\r\n]+|\s+(?!\S)|\s+`: {"qwen35", true},
	foldedContractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}` + "\r\n" + `]+|\s*[` + "\r\n" + `]+|\s+(?!\S)|\s+`: {"seed", true},
	foldedContractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                    {"numbers", true},

	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|` +
		` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"tekken", true},
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + foldedContractions + `?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + foldedContractions + `?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"o200k", true},

	`\p{N}`:           {`\p{N}`, false},
	`\p{N}+`:          {`\p{N}+`, false},
	`\p{N}{1,3}`:      {`\p{N}{1,3}`, false},
	`[0-9][0-9][0-9]`: {`[0-9]{3}`, false},
	"[\r\n]":          {`[\r\n]`, false},
	`[\r\n]`:          {`[\r\n]`, false},
	`\s?\p{L}+`:       {`\s?\p{L}+`, false},
	`\s?\p{P}+`:       {`\s?\p{P}+`, false},

	`\s?[` + deepSeekLetters + `]+`:     {"deepseek-letters", false},
	`\s?[` + deepSeekPunctuation + `]+`: {"deepseek-punct", false},
	`[` + deepSeekCJK + `]+`:            {"deepseek-cjk", false},
	`[` + deepSeek3CJK + `]+`:           {"deepseek3-cjk", false},
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|" +
		"\\s*[\r\n]+|\\s+(?!\\S)|\\s+": {"deepseek3", false},
	` ?[^(\s|[.,!?…。，、।۔،])]+`: {"bloom", false},
}

// Published returns the name of the cutter of an expression of published models, or "", and whether the expression matches
// everywhere.
func Published(expr string) (name string, everywhere bool) {
	k := published[expr]
	return k.cutter, k.everywhere
}
