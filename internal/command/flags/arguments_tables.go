package flags

// idle is our flag for the time after which a server closes a model.
const idle = "idle"

// aliases are flags of other programs that mean the same as one of ours, where the command has it.
var aliases = map[string]string{
	"temperature": "temp",

	"n-predict": "max-tokens", "num-predict": "max-tokens", "max-new-tokens": "max-tokens",

	"ctx-size": "context", "ctx": "context", "num-ctx": "context", "n-ctx": "context", "max-model-len": "context",
	"context-length": "context", "context-size": "context",

	"num-threads": "threads", "num-thread": "threads", "n-threads": "threads",

	"model-draft": "draft", "draft-model": "draft", "spec-draft-model": "draft",
	"hf-repo": "model", "gguf": "model",

	"system-prompt": "system", "chat-template-file": "chat-template",

	"repetition-penalty": "repeat-penalty", "typical-p": "typical", "top-n-sigma": "top-nsigma", "mirostat-tau": "mirostat-ent", "mirostat-eta": "mirostat-lr",
	"random-seed": "seed", "rng-seed": "seed", "stop-sequence": "stop", "dynatemp-exponent": "dynatemp-exp",

	"n-parallel": "parallel", "num-parallel": "parallel", "max-num-seqs": "parallel",
	"listen": "addr", "uds": "addr", "api-prefix": "path-prefix", "root-path": "path-prefix",
	"ssl-cert-file": "tls-cert", "ssl-certfile": "tls-cert", "ssl-key-file": "tls-key", "ssl-keyfile": "tls-key", "keepalive": idle, "keep-alive": idle, "sleep-idle-seconds": idle, "max-queue": "queue", "verbose": "log-requests",
	"enable-log-requests": "log-requests", "uvicorn-log-level": "log-level", "allowed-origins": "allow-origin",

	"json-schema": "schema", "json-schema-file": "schema", "grammar-file": "grammar", "token-healing": "heal",

	"prompt-cache": "session", "hidethinking": "hide-thinking",

	"outtype": "type", "base-url": "url", "num-prompts": "requests", "request-rate": "rate", "max-concurrency": "concurrency",
}

// shorts are short flags of other programs, by the long flags that they stand for there. One of one letter stands for that only where
// the command has no flag of this letter.
var shorts = map[string]string{
	"-ngl": "n-gpu-layers", "-ngld": "n-gpu-layers", "-np": "parallel", "-md": "model-draft", "-hf": "hf-repo", "-hfr": "hf-repo",
	"-hff": "hf-file", "-hft": "hf-token", "-mu": "model-url", "-mm": "mmproj", "-fa": "flash-attn", "-ctk": "cache-type-k",
	"-ctv": "cache-type-v", "-cnv": "conversation", "-no-cnv": "no-conversation", "-sys": "system", "-nr": "no-repack",
	"-ub": "ubatch-size", "-tb": "threads-batch", "-ts": "tensor-split", "-sm": "split-mode", "-mg": "main-gpu", "-ot": "override-tensor",
	"-dev": "device", "-cmoe": "cpu-moe", "-ncmoe": "n-cpu-moe", "-nkvo": "no-kv-offload", "-cb": "cont-batching", "-to": "timeout",
	"-lv": "verbosity", "-if": "interactive", "-tp": "tensor-parallel-size", "-jf": "json-schema-file", "-kvu": "kv-unified",
	"-cd": "ctx-size-draft", "-sp": "special-output", "-cram": "cache-ram", "-dt": "defrag-thold", "-fit": "fit",
	"-b": "batch-size", "-i": "interactive", "-j": "json-schema", "-l": "logit-bias", "-r": "reverse-prompt", "-a": "alias", "-e": "escape",
	"-v": "verbose", "-p": "prompt", "-f": "file", "-s": "seed",
}

// The numbers of values that flags of others take.
const (
	none    = iota
	one     // the next argument, or what follows a =
	perhaps // the next argument, if it is one of switches
)

// switches are the values of flags that need none.
var switches = []string{"on", "off", "auto", "0", "1", "true", "false"}

// others are flags of other programs that no flag of ours means. They are refused, or have no effect. Those with only are accepted with
// these values.
var others = []struct {
	names    string // with spaces between
	commands string // to which the line applies; "": to all
	refused  bool
	takes    int
	only     string
	why      string
}{
	{names: "n-gpu-layers gpu-layers", takes: one, only: "0 auto", why: "grove runs on the CPU alone; leave the flag out, or say 0"},
	{names: "device", takes: one, only: "cpu none auto", why: "grove runs on the CPU alone; leave the flag out"},
	{names: "fit", takes: one, why: "grove runs on the CPU alone"},
	{names: "tensor-split split-mode main-gpu override-tensor cpu-moe n-cpu-moe no-kv-offload tensor-parallel-size pipeline-parallel-size data-parallel-size gpu-memory-utilization enforce-eager swap-space cpu-offload-gb rpc enable-expert-parallel list-devices",
		refused: true, why: "grove runs on the CPU of one machine; leave the flag out"},
	{names: "dtype quantization load-format", takes: one, only: "auto", why: "the types of weights are those of the file; grove convert and grove quantize write others"},

	{names: "mmap no-mmap", why: "grove maps the file, and copies the weights that its kernels want in another order (--no-repack: none)"},
	{names: "mlock", why: "grove leaves to the system which weights stay in memory"},
	{names: "flash-attn", takes: perhaps, why: "grove has one kernel of attention, which keeps no matrix of scores"},
	{names: "batch-size ubatch-size max-num-batched-tokens", takes: one, why: "grove chooses the rows of its steps; the text is the same"},
	{names: "threads-batch numa poll prio cpu-mask cpu-range", takes: one, why: "grove has one set of threads (--threads)"},
	{names: "cont-batching no-cont-batching cache-prompt kv-unified enable-prefix-caching enable-chunked-prefill warmup no-warmup slots props embedding embeddings jinja",
		why: "grove does so where it is of use"},
	{names: "cache-reuse cache-ram defrag-thold block-size threads-http", takes: one, why: "grove finds common prefixes by itself, and has no such setting"},
	{names: "swa-full webui", why: "grove does so where it is of use"},
	{names: "enable-auto-tool-choice enable-reasoning", why: "calls of tools and thoughts are read in the form of the model's template"},
	{names: "tool-call-parser reasoning-parser", takes: one, why: "calls of tools and thoughts are read in the form of the model's template"},
	{names: "task runner", takes: one, only: "auto generate", why: "a model's file says what it is for; leave the flag out"},
	{names: "generation-config", takes: one, only: "auto", why: "requests have the defaults that the model's file recommends, and set others themselves"},
	{names: "reasoning-format", takes: one, only: "auto deepseek", why: "requests set another form of thoughts (reasoning_format)"},
	{names: "nowordwrap", why: "lines break between words at a terminal alone"},
	{names: "no-conversation no-perf perf simple-io color log-disable no-display-progress disable-log-requests no-enable-log-requests disable-log-stats no-context-shift trust-remote-code",
		why: "it is so, or makes no difference to grove"},
	{names: "verbose", why: "grove reports its figures at the end"},
	{names: "verbosity log-verbosity", takes: one, why: "grove reports its figures at the end"},
	{names: "keepalive keep-alive", commands: "run chat embed", takes: one, why: "the model is closed when the program ends; grove serve keeps models open"},

	{names: "predict", commands: "chat embed", refused: true, why: "-n bounds the tokens of an answer"},
	{names: "hf-file", refused: true, why: "name the file by its quantization: -m org/repo:Q4_K_M ('grove pull org/repo:Q4_K_M' fetches it)"},
	{names: "model-url docker-repo models-dir", refused: true, why: "'grove pull' fetches models, and GROVE_MODELS lists directories with more"},
	{names: "hf-token", refused: true, why: "set HF_TOKEN, and fetch the model with 'grove pull'"},
	{names: "alias served-model-name", refused: true, why: "-m NAME=MODEL serves a model under a name"},
	{names: "mmproj mmproj-url image audio video limit-mm-per-prompt", refused: true, why: "grove reads text alone"},
	{names: "lora lora-scaled control-vector", refused: true, why: "grove reads no adapters; merge it into the model first"},
	{names: "rope-scaling rope-scale rope-freq-base rope-freq-scale yarn-orig-ctx yarn-ext-factor", refused: true, why: "the model's file says it; leave the flag out"},
	{names: "cache-type-k cache-type-v kv-cache-dtype", refused: true, why: "--cache-type sets the type of cached keys and values: f32, f16 or q8_0"},
	{names: "ctx-size-draft threads-draft", refused: true, why: "a draft model has the context and the threads of the model"},
	{names: "draft-max draft-min draft-n draft-p-min spec-draft-n-max num-speculative-tokens speculative-config spec-type", refused: true,
		why: "grove chooses the number of draft tokens by the measured cost of steps (--method off: none)"},
	{names: "grammar grammar-file json-schema json-schema-file", commands: "serve", refused: true, why: "requests set it (docs/constraints.md)"},
	{names: "grammar grammar-file json-schema json-schema-file", refused: true, why: "grove run, chat and check hold a text to a schema or a grammar"},
	{names: "format", refused: true, why: `--schema '{"type": "object"}' makes the answer a JSON object, and --schema FILE one by a schema`},
	{names: "guided-decoding-backend structured-outputs-config", takes: one, why: "grove has one engine for constraints"},
	{names: "samplers sampling-seq sampler-seq", refused: true, why: "--sampling-order chooses between the two customary orders"},
	{names: "logit-bias ignore-eos", refused: true, why: "requests to grove serve can ask for it (docs/server.md)"},
	{names: "conversation interactive interactive-first instruct", refused: true, why: "grove chat holds a conversation"},
	{names: "reverse-prompt", refused: true, why: "--stop TEXT ends the text before TEXT"},
	{names: "prompt", refused: true, why: "the text is an argument of its own: grove COMMAND MODEL TEXT"},
	{names: "file", refused: true, why: "the text is read from standard input: grove COMMAND < FILE"},
	{names: "system", commands: "run", refused: true, why: "grove chat --system gives a conversation a system message"},
	{names: "escape", refused: true, why: `grove takes a text as it is; $'a\nb' is a text with a line end in most shells`},
	{names: "no-display-prompt special-output", refused: true, why: "--json gives the text without the prompt"},
	{names: "think enable-thinking", refused: true, why: "--reasoning on, or off, says whether the model thinks (grove chat, grove serve)"},
	{names: "hidethinking", commands: "run", refused: true, why: "grove chat --hide-thinking leaves thoughts out"},
	{names: "chat-template-kwargs", commands: "chat", refused: true, why: "--set enable_thinking=false sets a variable of the template"},
	{names: "chat-template-kwargs", commands: "serve", refused: true, why: "requests set variables of the template (chat_template_kwargs); --reasoning off switches thoughts off"},
	{names: "temp temperature top-k top-p min-p seed repeat-penalty presence-penalty frequency-penalty max-tokens n-predict predict stop override-generation-config", commands: "serve", refused: true,
		why: "requests set it (docs/server.md); without it, they have the defaults that the model's file recommends"},
	{names: "reasoning-budget reasoning-budget-message", commands: "serve", refused: true, why: "requests set it (thinking_budget_tokens); --reasoning off switches thoughts off"},
	{names: "pooling", commands: "serve", refused: true, why: "requests set it (pooling)"},
	{names: "no-webui no-slots", refused: true, why: "the chat page and /slots are always there; with --api-key, requests must show a key"},
	{names: "path", commands: "serve", refused: true, why: "the server has a page of its own and serves no other files; put a proxy before it"},
	{names: "rerank reranking", refused: true, why: "grove ranks no documents"},
	{names: "slot-save-path", refused: true, why: "--session-dir DIR keeps the keys and values of sessions, which requests name"},
	{names: "context-shift keep", refused: true, why: "texts are never shifted: an answer ends where the context ends"},
	{names: "no-enable-prefix-caching no-cache-prompt", refused: true, why: "requests can ask for it (cache_prompt: false)"},
	{names: "log-file", refused: true, why: "log lines go to standard error: 2> FILE"},
	{names: "tokenizer hf-config-path", commands: "serve run chat", refused: true, why: "the model's file has the tokenizer"},
	{names: "download-dir", refused: true, why: "HF_HOME names the cache of Hugging Face, and OLLAMA_MODELS that of ollama"},
	{names: "revision", refused: true, why: "grove takes the main branch of a repository"},
	{names: "override-kv", refused: true, why: "the metadata are those of the file"},
	{names: "no-jinja", refused: true, why: "chat templates are Jinja; --chat-template names another"},
	{names: "modelfile parameters template", commands: "show", refused: true, why: "grove inspect --full shows all metadata, the template too"},
	{names: "license system", commands: "show", refused: true, why: "grove show tells the licence; grove inspect --full shows all metadata"},
	{names: "outfile output", commands: "convert quantize", refused: true, why: "the new file is the second argument"},
	{names: "timeout", commands: "serve", refused: true, why: "requests end when their clients leave; --drain bounds the end of the server"},
}

// foreignCommands are commands of other programs, and what to do instead.
var foreignCommands = map[string]string{
	"create": "grove reads no Modelfile; --system, --chat-template and the flags of sampling set what one sets",
	"cp":     "a model is a file; grove serve -m NAME=MODEL gives it another name",
	"push":   "grove publishes no models",
	"signin": "tokens of registries come from their variables, such as HF_TOKEN", "login": "tokens of registries come from their variables, such as HF_TOKEN",
	"cli":    "grove run continues a text, and grove chat holds a conversation",
	"server": "grove serve serves models",
}
