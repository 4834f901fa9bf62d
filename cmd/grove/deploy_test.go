package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"grove/internal/command/flags"
)

// root is the root of the repository.
const root = "../.."

func readRoot(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// stopMargin is how much longer than the drain a supervisor waits before it kills a server.
const stopMargin = 10 * time.Second

// parseServe parses the arguments of a server where the variables have values.
func parseServe(t *testing.T, args []string, env map[string]string) (serveCommand, error) {
	t.Helper()
	var c commands
	for name, value := range env {
		t.Setenv(name, value)
	}
	parser, err := kong.New(&c, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	command, err := flags.ParseArguments(parser, args)
	if err == nil && command.Command() != "serve" {
		err = fmt.Errorf("%q is grove %s, not grove serve", args, command.Command())
	}
	return c.Serve, err
}

// variablesOfCommands returns the environment variables of all flags, and those that no flag has.
func variablesOfCommands(t *testing.T) []string {
	t.Helper()
	parser, err := kong.New(&commands{}, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"GROVE_MODELS", "GROVE_KERNELS", "GROVE_DEBUG"}
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			names = append(names, flag.Tag.Get("var"))
		}
		return next(nil)
	})
	return names
}

// checkVariables checks that every variable of grove that a deployment sets is one.
func checkVariables(t *testing.T, env map[string]string) {
	t.Helper()
	known := variablesOfCommands(t)
	for name := range env {
		if strings.HasPrefix(name, "GROVE_") && !slices.Contains(known, name) {
			t.Errorf("%s is no variable of grove", name)
		}
	}
}

// builds finds the commands of a text that build the program.
var builds = regexp.MustCompile(`(?m)^.*\bgo build\b.*\./cmd/grove\b.*$`)

// TestBuildsAreStatic: every document and file that builds the program builds it without C, as README does.
func TestBuildsAreStatic(t *testing.T) {
	found := map[string]int{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return err
		}
		switch ext := filepath.Ext(name); {
		case ext == ".md", ext == ".yaml", ext == ".yml", ext == ".sh", ext == ".mjs", ext == "" && d.Type().IsRegular():
		default:
			return nil
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if len(b) > 1<<20 {
			return nil // a program
		}
		for _, line := range builds.FindAllString(string(b), -1) {
			found[name]++
			if !strings.Contains(line, "CGO_ENABLED=0 ") || !strings.Contains(line, " -trimpath ") {
				t.Errorf("%s: %q does not have CGO_ENABLED=0 and -trimpath", name, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "docs/deploy.md", "deploy/docker/Dockerfile", "lab/peers/README.md"} {
		if found[name] == 0 {
			t.Errorf("%s has no command that builds the program: %v", name, found)
		}
	}
}

// An instruction of a Dockerfile.
type instruction struct{ name, args string }

// parseDockerfile returns the instructions of a Dockerfile by stage. It knows the instructions and forms that ours uses, and refuses
// all others.
func parseDockerfile(text string) (stages [][]instruction, err error) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		if args = strings.TrimSpace(args); args == "" {
			return nil, fmt.Errorf("line %d: %s has no arguments", n+1, name)
		}
		switch name {
		case "FROM":
			stages = append(stages, nil)
		case "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD":
			if len(stages) == 0 {
				return nil, fmt.Errorf("line %d: %s stands before FROM", n+1, name)
			}
		default:
			return nil, fmt.Errorf("line %d: the instruction %q is not known", n+1, name)
		}
		last := len(stages) - 1
		stages[last] = append(stages[last], instruction{name, args})
	}
	if len(stages) == 0 {
		return nil, fmt.Errorf("there is no FROM")
	}
	return stages, nil
}

// copied is what a COPY of the last stage says.
type copied struct{ from, owner, source, target string }

// image is the last stage of a Dockerfile.
type image struct {
	base             string
	copies           []copied
	env              map[string]string
	user             string
	volumes          []string
	exposed          []string
	health           []string
	entrypoint, args []string
}

// describeImage reads the last stage of a Dockerfile.
func describeImage(stages [][]instruction) (im image, err error) {
	list := func(text string) (words []string) {
		if e := json.Unmarshal([]byte(text), &words); e != nil && err == nil {
			err = fmt.Errorf("%s is not a list of texts in JSON: %w", text, e)
		}
		return words
	}
	im.env = map[string]string{}
	for _, i := range stages[len(stages)-1] {
		switch i.name {
		case "FROM":
			im.base = i.args
		case "COPY":
			c, e := parseCopy(i.args)
			if e != nil {
				return im, e
			}
			im.copies = append(im.copies, c)
		case "ENV":
			name, value, ok := strings.Cut(i.args, "=")
			if !ok || strings.ContainsAny(i.args, " \"'$") {
				return im, fmt.Errorf("ENV %s is not NAME=VALUE", i.args)
			}
			im.env[name] = value
		case "USER":
			im.user = i.args
		case "VOLUME":
			im.volumes = list(i.args)
		case "EXPOSE":
			im.exposed = strings.Fields(i.args)
		case "HEALTHCHECK":
			_, command, _ := strings.Cut(i.args, "CMD ")
			im.health = list(command)
		case "ENTRYPOINT":
			im.entrypoint = list(i.args)
		case "CMD":
			im.args = list(i.args)
		default:
			return im, fmt.Errorf("the image has no shell for %s %s", i.name, i.args)
		}
	}
	return im, err
}

// parseCopy reads the arguments of a COPY of one source.
func parseCopy(args string) (c copied, err error) {
	var paths []string
	for word := range strings.FieldsSeq(args) {
		option, value, _ := strings.Cut(word, "=")
		switch {
		case option == "--from":
			c.from = value
		case option == "--chown":
			c.owner = value
		case strings.HasPrefix(word, "--"):
			return c, fmt.Errorf("COPY %s: the option %s is not known", args, option)
		default:
			paths = append(paths, word)
		}
	}
	if len(paths) != 2 || !strings.HasPrefix(paths[1], "/") || strings.Contains(args, "..") {
		return c, fmt.Errorf("COPY %s: it must have one source and one absolute target", args)
	}
	c.source, c.target = paths[0], paths[1]
	return c, nil
}

// dockerfile returns the stages of our Dockerfile and its image.
func dockerfile(t *testing.T) ([][]instruction, image) {
	t.Helper()
	stages, err := parseDockerfile(readRoot(t, "deploy/docker/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	im, err := describeImage(stages)
	if err != nil {
		t.Fatal(err)
	}
	return stages, im
}

// TestImage: the image starts from nothing, runs as an ordinary user, and its commands and variables are those of the program.
func TestImage(t *testing.T) {
	_, im := dockerfile(t)
	checkVariables(t, im.env)
	c, err := parseServe(t, im.args, im.env)
	if err != nil {
		t.Fatal(err)
	}
	if im.base != "scratch" || !slices.Equal(im.entrypoint, []string{"/grove"}) || !slices.Equal(im.health, []string{"/grove", "health"}) {
		t.Errorf("the image is %+v", im)
	}
	if user, group, _ := strings.Cut(im.user, ":"); user == "" || user == "0" || group == "" || strings.Trim(user+group, "0123456789") != "" {
		t.Errorf("the user is %q; it must be the numbers of a user and a group, not root's", im.user)
	}
	if len(im.exposed) != 1 || c.HostPort != "0.0.0.0:"+im.exposed[0] {
		t.Errorf("the server listens on %s, and the image exposes %v", c.HostPort, im.exposed)
	}
	for name, dir := range im.env {
		if strings.HasPrefix(dir, "/") && !slices.ContainsFunc(im.volumes, func(v string) bool { return dir == v || strings.HasPrefix(dir, v+"/") }) {
			t.Errorf("%s=%s is on no volume of %v", name, dir, im.volumes)
		}
	}
}

func TestDockerfileRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "there is no FROM",
		"RUN true\nFROM scratch":                   "line 1: RUN stands before FROM",
		"FROM scratch\nADD http://x /":             `line 2: the instruction "ADD" is not known`,
		"FROM scratch\nUSER":                       "line 2: USER has no arguments",
		"FROM scratch\nRUN true":                   "the image has no shell for RUN true",
		"FROM scratch\nCMD grove serve":            "grove serve is not a list of texts in JSON",
		"FROM scratch\nENV A 1":                    "ENV A 1 is not NAME=VALUE",
		"FROM scratch\nCOPY --link a /a":           "COPY --link a /a: the option --link is not known",
		"FROM scratch\nCOPY a ../../etc":           "it must have one source and one absolute target",
		"FROM scratch\nCOPY a b /c":                "it must have one source and one absolute target",
		"FROM scratch\nHEALTHCHECK CMD /grove ps":  "is not a list of texts in JSON",
		"FROM a\nCOPY a /a\nFROM scratch\nRUN x y": "the image has no shell",
	} {
		stages, err := parseDockerfile(text)
		if err == nil {
			_, err = describeImage(stages)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// parseUnit returns the settings of a systemd unit by section and name. It refuses what is no section, no setting and no comment.
func parseUnit(text string) (map[string][]string, error) {
	settings, section := map[string][]string{}, ""
	for n, line := range strings.Split(text, "\n") {
		name, value, ok := strings.Cut(line, "=")
		switch {
		case line == "", line[0] == '#', line[0] == ';':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		case !ok || section == "" || strings.ContainsAny(name, " \t") || strings.HasSuffix(value, "\\"):
			return nil, fmt.Errorf("line %d: %q is no setting of a section in one line", n+1, line)
		default:
			settings[section+"."+name] = append(settings[section+"."+name], value)
		}
	}
	return settings, nil
}

// TestUnit: the systemd unit starts a server that the program knows, gives it the time of its drain, and is confined.
func TestUnit(t *testing.T) {
	unit, err := parseUnit(readRoot(t, "deploy/systemd/grove.service"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, line := range unit["Service.Environment"] {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	checkVariables(t, env)
	words := strings.Fields(unit["Service.ExecStart"][0])
	c, err := parseServe(t, words[1:], env)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := time.ParseDuration(unit["Service.TimeoutStopSec"][0])
	if err != nil || stop < c.Drain+stopMargin {
		t.Errorf("TimeoutStopSec is %v (%v), and the drain takes %v", stop, err, c.Drain)
	}
	name, _, _ := strings.Cut(unit["Service.LoadCredential"][0], ":")
	if want := "%d/" + name; c.APIKeyFile != want {
		t.Errorf("the keys are in %q, want %q", c.APIKeyFile, want)
	}
	for _, want := range []string{
		"CapabilityBoundingSet=", "DynamicUser=yes", "MemoryDenyWriteExecute=yes", "NoNewPrivileges=yes", "PrivateTmp=yes", "ProtectSystem=strict",
		"RestrictAddressFamilies=AF_INET AF_INET6", "StateDirectory=grove", "CacheDirectory=grove", "Restart=on-failure", "KillSignal=SIGTERM",
	} {
		name, value, _ := strings.Cut(want, "=")
		if !slices.Contains(unit["Service."+name], value) {
			t.Errorf("%s is %q, want %q", name, unit["Service."+name], value)
		}
	}
}

func TestUnitRefused(t *testing.T) {
	for _, text := range []string{"Type=exec", "[Service]\nType", "[Service]\nExecStart=a \\\n b", "[Service]\n = x"} {
		if _, err := parseUnit(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestKubernetes: the manifest's arguments are those of the program, and pods have the time of their drain.
func TestKubernetes(t *testing.T) {
	text := readRoot(t, "deploy/kubernetes/grove.yaml")
	_, list, _ := strings.Cut(text, "\n          args:\n")
	var args []string
	for line := range strings.Lines(list) {
		arg, ok := strings.CutPrefix(line, "            - ")
		if !ok {
			break
		}
		args = append(args, strings.TrimSpace(arg))
	}
	c, err := parseServe(t, args, nil)
	if err != nil {
		t.Fatal(err)
	}
	number := func(pattern string) time.Duration {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("there is no %s", pattern)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Second
	}
	if grace, sleep := number(`terminationGracePeriodSeconds: (\d+)`), number(`sleep: \{seconds: (\d+)\}`); grace < sleep+c.Drain+stopMargin {
		t.Errorf("pods have %v to stop; the sleep of %v and the drain of %v need %v more", grace, sleep, c.Drain, stopMargin)
	}
	if port := number(`containerPort: (\d+)`) / time.Second; !strings.HasSuffix(c.HostPort, fmt.Sprintf(":%d", port)) {
		t.Errorf("the server listens on %s, and its port is %d", c.HostPort, port)
	}
	_, im := dockerfile(t)
	if user, _, _ := strings.Cut(im.user, ":"); !strings.Contains(text, "runAsUser: "+user+"\n") {
		t.Errorf("pods do not run as the image's user %s", user)
	}
}
