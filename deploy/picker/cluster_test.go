package picker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// programs returns the directory of the programs that check builds.
func programs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GROVE_PICKER_PROGRAMS")
	if dir == "" {
		t.Skip("GROVE_PICKER_PROGRAMS names no directory: deploy/picker/check builds the programs and runs this")
	}
	return dir
}

// A process is a program that runs.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// signal sends the program a signal; it may have ended.
func (p *process) signal(signal os.Signal) { _ = p.cmd.Process.Signal(signal) }

// start runs a program until the test ends; what it writes is in a file, whose end is shown if the test fails.
func start(t *testing.T, log, program string, args, env []string) *process {
	t.Helper()
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = file, file, append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.exited) }()
	t.Cleanup(func() {
		p.signal(os.Kill)
		<-p.exited
		file.Close()
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("%s wrote:\n%s", program, text[max(0, len(text)-2000):])
		}
	})
	return p
}

// eventually waits until something holds, which it is at most a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("a minute passed before this: %s", what)
}

// free returns an address on this machine that is free.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A cluster is an API server and its store, without nodes and without controllers.
type cluster struct {
	url    string
	ca     string // a file
	client *http.Client
}

// token is the secret of the cluster's one user, who may do all.
const token = "secret"

// startCluster starts etcd and an API server.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	store, peers, address := "http://"+free(t), "http://"+free(t), free(t)
	start(t, filepath.Join(dir, "etcd.log"), "etcd", []string{
		"--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default=" + peers,
	}, nil)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]byte{
		"key":    pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"tokens": []byte(token + ",admin,admin,system:masters\n"),
	}
	for name, text := range secrets {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, port, _ := net.SplitHostPort(address)
	start(t, filepath.Join(dir, "api.log"), filepath.Join(programs(t), "kube-apiserver"), []string{
		"--etcd-servers", store, "--bind-address", "127.0.0.1", "--endpoint-reconciler-type", "none", "--secure-port", port, "--cert-dir", dir,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", "10.96.0.0/24",
		"--service-account-key-file", filepath.Join(dir, "key"), "--service-account-signing-key-file", filepath.Join(dir, "key"),
		"--authorization-mode", "AlwaysAllow", "--token-auth-file", filepath.Join(dir, "tokens"),
		"--disable-admission-plugins", "ServiceAccount", // no controller makes accounts
	}, nil)
	c := &cluster{url: "https://" + address, ca: filepath.Join(dir, "apiserver.crt")}
	eventually(t, "the API server is ready", func() bool {
		if ca, err := os.ReadFile(c.ca); c.client == nil && err == nil {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(ca)
			c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 20 * time.Second}
		}
		if c.client == nil {
			return false
		}
		err := c.do(http.MethodGet, "/readyz", "", nil, nil)
		return err == nil && c.do(http.MethodGet, "/api/v1/namespaces/default", "", nil, nil) == nil
	})
	return c
}

// do sends the API server a request with a body of a type, and decodes its answer into a value that is not nil.
func (c *cluster) do(method, path, kind string, body []byte, into any) error {
	r, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", kind)
	a, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	if a.StatusCode/100 != 2 {
		var status struct{ Message string }
		_ = json.Unmarshal(text, &status)
		return fmt.Errorf("%s %s: %s: %s", method, path, a.Status, status.Message)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// kubeconfig writes a file by which a client finds the cluster.
func (c *cluster) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, c.url, c.ca, token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A document is one object of a manifest.
type document struct {
	file, text                        string
	apiVersion, kind, name, namespace string
}

// String names the document.
func (d document) String() string { return fmt.Sprintf("%s: %s %s", d.file, d.kind, d.name) }

// read returns the objects of a file of YAML. Their first lines are not indented, as tools write them.
func read(t *testing.T, file string) (all []document) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range regexp.MustCompile(`(?m)^---.*$`).Split(string(text), -1) {
		field := func(pattern string) string {
			m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(part)
			if m == nil {
				return ""
			}
			return strings.Trim(m[1], `"'`)
		}
		d := document{file: filepath.Base(file), text: part, apiVersion: field(`^apiVersion: *(\S+)`), kind: field(`^kind: *(\S+)`)}
		if d.kind == "" {
			if field(`^([^#\s].*)`) != "" {
				t.Fatalf("%s has a document that names no kind:\n%s", file, part)
			}
			continue // comments
		}
		_, metadata, _ := strings.Cut("\n"+part, "\nmetadata:\n")
		metadata = regexp.MustCompile(`(?s)\n[^\s#].*`).ReplaceAllString(metadata, "")
		for name, to := range map[string]*string{"name": &d.name, "namespace": &d.namespace} {
			if m := regexp.MustCompile(`(?m)^  ` + name + `: *(\S+)`).FindStringSubmatch(metadata); m != nil {
				*to = strings.Trim(m[1], `"'`)
			}
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no objects", file)
	}
	return all
}

// collection returns the path of the objects of a document's kind.
func (c *cluster) collection(d document) (string, error) {
	root := "/apis/" + d.apiVersion
	if !strings.Contains(d.apiVersion, "/") {
		root = "/api/" + d.apiVersion
	}
	var list struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
		}
	}
	if err := c.do(http.MethodGet, root, "", nil, &list); err != nil {
		return "", err
	}
	for _, r := range list.Resources {
		if r.Kind == d.kind && !strings.Contains(r.Name, "/") {
			if !r.Namespaced {
				return path.Join(root, r.Name), nil
			}
			return path.Join(root, "namespaces", d.namespaceOr("default"), r.Name), nil
		}
	}
	return "", fmt.Errorf("%s has no kind %s", root, d.kind)
}

func (d document) namespaceOr(name string) string {
	if d.namespace != "" {
		return d.namespace
	}
	return name
}

// create makes the object of a document, or asks whether it could be made. A field that its kind lacks is an error.
func (c *cluster) create(d document, dry bool) error {
	to, err := c.collection(d)
	if err != nil {
		return err
	}
	to += "?fieldValidation=Strict"
	if dry {
		to += "&dryRun=All"
	}
	return c.do(http.MethodPost, to, "application/yaml", []byte(d.text), nil)
}

// define installs the definitions of resources of directories, and waits until the API server knows them.
func (c *cluster) define(t *testing.T, dirs []string) {
	t.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no definitions: %v", dir, err)
		}
		for _, file := range files {
			for _, d := range read(t, file) {
				if err := c.create(d, false); err != nil {
					t.Fatalf("%s: %v", d, err)
				}
				eventually(t, d.name+" is established", func() bool {
					var made struct {
						Status struct {
							Conditions []struct{ Type, Status string }
						}
					}
					err := c.do(http.MethodGet, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+d.name, "", nil, &made)
					for _, condition := range made.Status.Conditions {
						if condition.Type == "Established" && condition.Status == "True" {
							return err == nil
						}
					}
					return false
				})
			}
		}
	}
}

// A pod is what the tests read of a pod.
type pod struct {
	Metadata struct{ Name, DeletionTimestamp string }
	Status   struct {
		PodIP      string
		Conditions []struct{ Type, Status string }
	}
}

// ready returns the addresses of the pods that are ready, on a port, as a gateway knows them.
func (c *cluster) ready(_ context.Context, port string) (addresses []string) {
	var list struct{ Items []pod }
	if c.do(http.MethodGet, "/api/v1/namespaces/default/pods?labelSelector=app%3Dgrove", "", nil, &list) != nil {
		return nil
	}
	for _, p := range list.Items {
		for _, condition := range p.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" && p.Metadata.DeletionTimestamp == "" {
				addresses = append(addresses, net.JoinHostPort(p.Status.PodIP, port))
			}
		}
	}
	return addresses
}
