package lark

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ast reads a JSON list of texts and writes a list of the complaints of Python's parser.
const ast = `
import ast, json, sys, warnings
warnings.simplefilter("ignore")
out = []
for s in json.load(sys.stdin):
    try:
        ast.parse(s)
        out.append("")
    except Exception as e:
        out.append(str(e))
json.dump(out, sys.stdout)
`

// TestPythonWalks gives random texts of the Python grammar to Python's parser.
func TestPythonWalks(t *testing.T) {
	source := shipped(t, "python")
	var legal []string
	w := newWalker(source, "")
	for seed := range uint64(100) {
		text := w.text(seed, 5+int(seed%50))
		if _, ok := read(source, text); ok {
			legal = append(legal, text)
		}
	}
	t.Logf("%d of 100 texts are legal", len(legal))
	for i, complaint := range complaints(t, "ast", ast, legal) {
		if complaint != "" {
			t.Errorf("%q: %s", legal[i], complaint)
		}
	}
}

func TestPythonTable(t *testing.T) {
	source := shipped(t, "python")
	accept := []string{
		"", "x = 1", "x = 1\n", "# a\n\nx = 1 # b\n# c", "if x:\n    y = 1\nelse:\n    y = 2\n",
		"def f(a, b=1, *c, d, e=2, **g) -> int:\n  '''doc\n string'''\n\n  # text\n  if a:\n      return a\n  return b\n\nf(1, *x, y=2, **z)",
		"class A(B, metaclass=C):\n    x: int = 1\n    @property\n    def y(self): return self.x\n",
		"for i, (a, b) in enumerate(x):\n    pass\nelse:\n    pass", "while x: y(); z()\n", "try:\n  a\nexcept (A, B) as e:\n  raise C from e\nfinally:\n  b",
		"with open(f) as g, h: pass", "x = [a for a in b if a]\ny = {a: b for a, b in c.items()}\nz = (\n  1,\n\n  # c\n  2)\n",
		"x[1:2, ::3] = a if b else lambda c, d=1: c", "import a.b as c, d\nfrom . import x\nfrom ...y.z import (a,\n b as c)\n", "print(f\"{x.y[0]!r:>10} {{}} {type(e).__name__} {a - b(c, 1):.3f}\", r'\\d')",
		"x = a and not b or c is not d and e not in f", "a = b = yield\n", "async def f():\n  async with a as b:\n    await c\n  async for d in e: pass\n",
		"if (n := f()) > 1: del a, b[0]\n", "global_x = notx = inx = 0xff + 1_000j - .5e-3", "@a.b(c)\n@d\nclass E: ...", "def f(a, /, b, *, c): pass", "x = '\\x41\\u00e9' b'' 'a'"[:17],
		"if a:\n\tb"[:0], "if a:\n  if b:\n    c\n  d\ne", "x = a if (b and\n c) else d", "x = 012j + 00 + 09.5",
	}
	reject := []string{
		" x = 1", "\n  x = 1", "if x:\ny = 1", "if x:\n    y = 1\n  z = 2", "x = 1\n  y = 2", "if x\n    y", "x = (1\n", "x = 1)\n", "else: x", "def f(a=1, b): pass",
		"f(a=1, b)", "1 = x", "f() = x", "x = a andb", "x = a isb", "x = 012", "x = 'a\n'", "x = '\\x4'", "x = b'é'", "import", "from x importy", "try:\n  a\n", "class",
		"x = \\\n 1", "return = 1", "x = f'{'", "x == y = z", "print x", "for x iny: pass", "x = 1 2", "x = [a, b", "with a asb: pass", "x = 'a' b'c'",
	}
	for i, text := range append(accept, reject...) {
		if n, got := read(source, text); got != (i < len(accept)) {
			t.Errorf("accepted %v: %s", got, around(text, n))
		}
	}
	for i, complaint := range complaints(t, "ast", ast, accept) {
		if complaint != "" {
			t.Errorf("%q: %s", accept[i], complaint)
		}
	}
}

// TestPythonFiles reads Python's own library, where it is: files that the grammar refuses are those that use what it leaves out.
func TestPythonFiles(t *testing.T) {
	engine := byBytes(t, shipped(t, "python"))
	start, err := engine.Start()
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(libraryOfPython(t) + "/*.py")
	read, refused := 0, 0
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 50_000 || i%4 != 0 && os.Getenv("GROVE_LONG") == "" {
			continue
		}
		end, n := start, 0
		for i := 0; i < len(text) && i == n && err == nil; i += 1000 {
			var more int
			end, more, err = engine.Push(end, text[i:min(i+1000, len(text))])
			n += more
		}
		if read++; err != nil || !engine.Ends(end) {
			if refused++; os.Getenv("GROVE_LONG") != "" {
				t.Logf("%s: %v: %s", filepath.Base(name), err, around(string(text), n))
			}
		}
	}
	t.Logf("%d of %d files are refused", refused, read)
	if read == 0 || refused*2 > read {
		t.Errorf("%d of %d files are refused: more than use what the grammar leaves out", refused, read)
	}
}

// libraryOfPython returns the folder of Python's library; the test is skipped where there is none.
func libraryOfPython(t *testing.T) string {
	t.Helper()
	out := complaints(t, "os", "import json, os, sys\njson.load(sys.stdin)\njson.dump([os.path.dirname(os.__file__)], sys.stdout)", []string{""})
	return strings.TrimSpace(out[0])
}
