package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// agent is a program and what a good model would answer it.
type agent struct {
	name, title string
	// set returns the arguments and the environment with which the agent calls a server. It may write files of settings below home.
	set func(url, home string) (args, env []string, err error)
	// steps are the calls of the main loop, one after the other, in the words of the tools that the request offers; behind them comes a closing sentence.
	steps func(dir string) []call
}

// call is a call of the first of some tools that a request offers.
type call map[string]map[string]any // the arguments by the name of a tool

// of returns the tool of a call among those that are offered.
func (c call) of(offered []string) (name string, err error) {
	for _, name := range offered {
		if c[name] != nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("the request offers %v", offered)
}

// schema allows the arguments of a tool, and nothing else.
func (c call) schema(name string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for key, value := range c[name] {
		properties[key] = map[string]any{"const": value}
		required = append(required, key)
	}
	slices.Sort(required)
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

const mend = `sed -i 's/a - b/a + b/' add.go && go test .`

var agents = []agent{
	{
		name: "claude", title: "Claude Code",
		set: func(url, _ string) ([]string, []string, error) {
			return []string{"-p", task, "--model", served, "--permission-mode", "acceptEdits", "--allowedTools", "Read,Edit,Write,Bash"}, []string{
				"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_AUTH_TOKEN=none", "ANTHROPIC_SMALL_FAST_MODEL=" + served, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
			}, nil
		},
		steps: func(dir string) []call {
			file := filepath.Join(dir, "add.go")
			return []call{
				{"Read": {"file_path": file}},
				{"Edit": {"file_path": file, "old_string": "a - b", "new_string": "a + b"}},
				{"Bash": {"command": "go test .", "description": "Run the test"}},
			}
		},
	},
	{
		name: "codex", title: "Codex",
		set: func(url, home string) ([]string, []string, error) {
			settings := fmt.Sprintf("model = %q\nmodel_provider = \"grove\"\n[model_providers.grove]\nname = \"grove\"\nbase_url = %q\nwire_api = \"responses\"\n", served, url+"/v1")
			dir := filepath.Join(home, ".codex")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, nil, err
			}
			err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o644)
			return []string{"exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", task}, nil, err
		},
		steps: func(string) []call {
			return []call{{
				"exec_command": {"cmd": mend}, "shell_command": {"command": mend}, "shell": {"command": []string{"bash", "-lc", mend}}, "local_shell": {"command": []string{"bash", "-lc", mend}},
			}}
		},
	},
	{
		name: "qwen", title: "Qwen Code",
		set: func(url, _ string) ([]string, []string, error) {
			return []string{"-p", task, "--yolo", "--auth-type", "openai"}, []string{"OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=none", "OPENAI_MODEL=" + served, "QWEN_SANDBOX=false"}, nil
		},
		steps: func(dir string) []call {
			file := filepath.Join(dir, "add.go")
			return []call{
				{"read_file": {"file_path": file, "absolute_path": file}},
				{"edit": {"file_path": file, "old_string": "a - b", "new_string": "a + b"}},
				{"run_shell_command": {"command": "go test .", "description": "Run the test", "is_background": false}},
			}
		},
	},
	{
		name: "opencode", title: "opencode",
		set: func(url, home string) ([]string, []string, error) {
			settings, err := json.Marshal(map[string]any{
				"model": "grove/" + served, "autoupdate": false, "permission": map[string]string{"edit": "allow", "bash": "allow"},
				"provider": map[string]any{"grove": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "name": "grove", "options": map[string]string{"baseURL": url + "/v1"}, "models": map[string]any{served: map[string]string{"name": served}},
				}},
			})
			if err != nil {
				return nil, nil, err
			}
			file := filepath.Join(home, "opencode.json")
			return []string{"run", task}, []string{"OPENCODE_CONFIG=" + file}, os.WriteFile(file, settings, 0o644)
		},
		steps: func(dir string) []call {
			file := filepath.Join(dir, "add.go")
			return []call{
				{"read": {"filePath": file}},
				{"edit": {"filePath": file, "oldString": "a - b", "newString": "a + b"}},
				{"bash": {"command": "go test .", "description": "Run the test"}},
			}
		},
	},
}
