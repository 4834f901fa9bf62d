package lark

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"grove/constrain/grammar"
)

// sqlite reads a JSON list of statements and writes a list of the complaints of SQLite's parser; what it knows only of tables
// is no complaint.
const sqlite = `
import json, sqlite3, sys
db = sqlite3.connect(":memory:")
out = []
for s in json.load(sys.stdin):
    try:
        db.execute("EXPLAIN " + s)
        out.append("")
    except Exception as e:
        m = str(e)
        bad = "syntax error" in m or "unrecognized token" in m or "incomplete" in m or "malformed" in m
        out.append(m if bad else "")
json.dump(out, sys.stdout)
`

// complaints returns what a program in Python says of texts; the test is skipped where there is no python3 with a module.
func complaints(t *testing.T, module, program string, texts []string) (out []string) {
	t.Helper()
	if err := exec.Command("python3", "-c", "import "+module).Run(); err != nil {
		t.Skipf("no python3 with module %s: %v", module, err)
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", program)
	cmd.Stdin = strings.NewReader(string(in))
	b, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil || len(out) != len(texts) {
		t.Fatalf("%v: %d answers to %d texts", err, len(out), len(texts))
	}
	return out
}

// statement is the SQL grammar from one statement on.
func statement(t testing.TB) grammar.Source {
	t.Helper()
	text, err := Shipped("sql")
	if err != nil {
		t.Fatal(err)
	}
	source, err := Parse(text, Options{Start: "statement"})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// TestSQLWalks gives random statements to SQLite's parser.
func TestSQLWalks(t *testing.T) {
	source := statement(t)
	var legal []string
	w := newWalker(source, " ", " ", "")
	for seed := range uint64(200) {
		text := w.text(seed, 5+int(seed%50))
		if _, ok := read(source, text); ok {
			legal = append(legal, text)
		}
	}
	t.Logf("%d of 200 texts are legal", len(legal))
	for i, complaint := range complaints(t, "sqlite3", sqlite, legal) {
		if complaint != "" {
			t.Errorf("%q: %s", legal[i], complaint)
		}
	}
}

func TestSQLTable(t *testing.T) {
	source := statement(t)
	accept := []string{
		"SELECT 1", "select * from t", "SELECT a, b AS c, count(*) n, t.* FROM t", "SELECT DISTINCT a FROM t WHERE a = 'it''s' AND NOT b IS NOT NULL",
		"SELECT a FROM t LEFT JOIN u ON t.id = u.id INNER JOIN v USING (id), w AS x WHERE a IN (1, 2) OR b NOT IN (SELECT c FROM d)",
		"SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 10 ORDER BY 2 DESC, a LIMIT 10 OFFSET 5",
		"SELECT CASE WHEN a > 1 THEN 'x' ELSE NULL END FROM (SELECT 1 a UNION ALL SELECT 2) q", "SELECT CASE a WHEN 1 THEN 2 END",
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION SELECT n + 1 FROM c WHERE n < 5) SELECT n FROM c",
		"SELECT a - -1, a||b, -(3 + ~2), x'00ff', CAST(a AS VARCHAR(10)), \"a b\".\"c\" FROM t WHERE a BETWEEN 1 + 1 AND 5 AND b LIKE 'x%' ESCAPE '!'",
		"INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL) ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE a > 1 RETURNING *",
		"INSERT OR IGNORE INTO t SELECT * FROM u", "REPLACE INTO t DEFAULT VALUES", "UPDATE orders SET a = a + 1, b = (SELECT 1) WHERE EXISTS (SELECT 1)",
		"DELETE FROM t WHERE nothing_left = 1 RETURNING a AS gone", "SELECT a IS notice, a from_ FROM t groups", "VALUES (1, 2), (3, 4)",
	}
	reject := []string{
		"SELECT", "SELECTa", "SELECT 1FROM t", "SELECT a FROM", "SELECT a,, b", "SELECT 1--1", "SELECT 'a", "SELECT a b c", "INSERT t VALUES (1)",
		"UPDATE t SET", "DELETE t", "VALUES (1) ORDER BY 1", "SELECT a FROM t WHERE", "SELECT select FROM t", "SELECT (1", "SELECT 1e", "DROP TABLE t",
		"SELECT a FROM t ORDER a", "SELECT a BETWEEN 1", "SELECT CASE END",
	}
	for i, text := range append(accept, reject...) {
		if n, got := read(source, text); got != (i < len(accept)) {
			t.Errorf("accepted %v: %s", got, around(text, n))
		}
	}
	for i, complaint := range complaints(t, "sqlite3", sqlite, accept) {
		if complaint != "" {
			t.Errorf("%q: %s", accept[i], complaint)
		}
	}
	if _, ok := read(shipped(t, "sql"), " SELECT 1 ;\nDELETE FROM t;"); !ok {
		t.Error("two statements are rejected")
	}
}
