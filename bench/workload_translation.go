package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A phrase is words in English and in German.
type phrase [2]string

// The words of the sentences: grove's own.
var (
	senders = []phrase{{"The server", "Der Server"}, {"The client", "Der Client"}, {"The service", "Der Dienst"}, {"The router", "Der Router"}, {"The proxy", "Der Proxy"}}
	acts    = []phrase{{"sends", "sendet"}, {"copies", "kopiert"}, {"moves", "verschiebt"}, {"writes", "schreibt"}}
	things  = []phrase{{"files", "Dateien"}, {"pages", "Seiten"}, {"lines", "Zeilen"}, {"blocks", "Blöcke"}, {"messages", "Nachrichten"}}
	whither = []phrase{{"to the backup in", "in die Sicherung in"}, {"to the archive in", "in das Archiv in"}, {"to the cache in", "in den Cache in"}}
	cities  = []string{"Berlin", "Lisbon", "Nairobi", "Oslo", "Quito", "Seoul"}
	whens   = []phrase{{"every hour", "jede Stunde"}, {"every night", "jede Nacht"}, {"every week", "jede Woche"}}
)

// sentence draws a sentence in both languages.
func sentence(r *rand.Rand) (both phrase) {
	draw := func(from []phrase) phrase { return from[r.IntN(len(from))] }
	who, act, what, where, when := draw(senders), draw(acts), draw(things), draw(whither), draw(whens)
	city, port, n := cities[r.IntN(len(cities))], 1024+r.IntN(60000), 2+r.IntN(900)
	for i, on := range []string{"on port", "auf Port"} {
		both[i] = fmt.Sprintf("%s %s %d %s %d %s %s %s %s.", who[i], on, port, act[i], n, what[i], where[i], city, when[i])
	}
	return both
}

const (
	translations = 60 // tasks
	shots        = 2  // examples of each
)

// TranslationTasks returns tasks to translate an English sentence into German behind some examples: an answer has phrases of the examples, and names and numbers of
// its sentence. Each task has a recorded answer.
func TranslationTasks() (tasks []Prompt) {
	r := rand.New(rand.NewPCG(goSeed, 2))
	for i := range translations {
		var b strings.Builder
		for range shots {
			both := sentence(r)
			fmt.Fprintf(&b, "English: %s\nGerman: %s\n\n", both[0], both[1])
		}
		both := sentence(r)
		fmt.Fprintf(&b, "English: %s\nGerman:", both[0])
		tasks = append(tasks, Prompt{ID: fmt.Sprintf("translation-%d", i), Category: "translation", Prompt: b.String(), Output: " " + both[1] + "\n"})
	}
	return tasks
}
