package constrain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/sample"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

const order = `{"type":"object","properties":{"orderId":{"type":"integer"},"orderName":{"type":"string"},"name_of_the_person":{"type":"string","minLength":1},
	"address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["street","zip"]},
	"state":{"enum":["open","closed","in progress"]}},"required":["orderId","name_of_the_person","address","state"],"additionalProperties":false}`

// legalOrders are texts of the schema, and one that leaves it at the byte where it differs.
var legalOrders = []string{
	`{"orderId": 120, "orderName": "größe 🐈", "name_of_the_person": "Zoë \"Z\" O'Neil", "address": {"street": "Straße 1", "zip": "01234"}, "state": "in progress"}`,
	`{"orderId":-7,"name_of_the_person":" ","address":{"street":"","zip":"99999"},"state":"open"}`,
	"{\n  \"orderId\": 1,\n  \"name_of_the_person\": \"李雷\\t\\n\",\n  \"address\": {\n    \"street\": \"a\",\n    \"zip\": \"00000\"\n  },\n  \"state\": \"closed\"\n}",
}

// TestRealVocabularies expects of published vocabularies that the tokens which the tokenizer writes for a legal text are legal one after
// the other, behind a special token and behind a text, that forced tokens are among them as far as the tokenizer would write them, and that the answer ends
// behind the text.
func TestRealVocabularies(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join("../../shared/golden/tokenizers", "ggml-vocab-*.gguf"))
	if len(paths) == 0 {
		if os.Getenv("CI") != "" {
			if _, err := os.Stat(filepath.Join("../../shared")); err == nil {
				t.Fatal("../internal/sample/shared has no vocabularies")
			}
		}
		t.Skip("needs ../shared/golden/tokenizers: not there")
	}
	for _, path := range paths {
		t.Run(strings.TrimPrefix(filepath.Base(path), "ggml-vocab-"), func(t *testing.T) {
			f, err := gguf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			tok, err := tokenizer.FromGGUF(f)
			if err != nil {
				t.Fatal(err)
			}
			v, err := NewVocabulary(tok, tok.Size()+5, sample.Thinking{})
			if err != nil {
				t.Fatal(err)
			}
			c, err := Compile(Spec{Schema: []byte(order)}, v, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			forced, drafted := 0, 0
			for _, text := range legalOrders {
				for _, behind := range []string{"", "The order:\n"} {
					a, b := follow(t, v, c, behind, text)
					forced, drafted = forced+a, drafted+b
				}
			}
			if t.Logf("%d of %d forced tokens are those of the texts", forced, drafted); forced < 20 || forced*10 < drafted*9 {
				t.Error("less than nine tenths are")
			}
		})
	}
}

// follow walks through a text by the tokenizer's tokens, and returns how many tokens were forced and how many of these are the text's.
func follow(t *testing.T, v *Vocabulary, c *Constraint, behind, text string) (hit, drafted int) {
	t.Helper()
	prompt, err := v.text.Encode(nil, behind, tokenizer.Options{Special: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(prompt) == 0 {
		prompt = append(prompt, v.ending[0])
	}
	ids, err := v.text.Encode(nil, text, tokenizer.Options{Plain: true, Inside: behind != ""})
	if err != nil {
		t.Fatal(err)
	}
	stage := c.Stages(nil)[0].(*Stage)
	at := stage.Start(prompt)
	logits := make([]float32, v.size)
	for i := 0; i < len(ids); i++ {
		if !stage.Allows(at, ids[i]) {
			t.Fatalf("token %q of %q behind %q is illegal: %v", v.trie.Bytes(ids[i]), text, v.spellIDs(ids[:i]), stage.Err(at))
		}
		if i%3 == 0 {
			clear(logits)
			if stage.Apply(at, logits); logits[ids[i]] != 0 {
				t.Fatalf("token %q is legal and masked", v.trie.Bytes(ids[i]))
			}
		}
		for n, id := range stage.Forced(at) {
			if drafted++; i+n < len(ids) && ids[i+n] == id {
				hit++
			} else {
				break
			}
		}
		at = stage.Keep(stage.Next(at, ids[i]))
	}
	if err := stage.Err(at); err != nil || !stage.Ended(at) || !stage.Allows(at, v.ending[0]) {
		t.Fatalf("behind %q the answer does not end: %v", text, err)
	}
	return hit, drafted
}
