// Reads texts under grammars with llama.cpp, as node-llama-cpp packs it: a job a line on the standard input, a result a line on the
// standard output, one line of greetings before. Arguments: the folder of the package, a GGUF file with the vocabulary.
//
// There is no call that fills a mask. What the package's own generation calls is measured: may this token come next, then a step with it.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

process.execArgv = []; // the package starts processes of its own, which this script is no part of
const [folder, vocabulary] = process.argv.slice(-2);
const lineBreaks = ' "\\n\\n\\n\\n" [\\n]*'; // what the package's converter puts behind a text, as its own sign of the end
const { getLlama, LlamaLogLevel, LlamaGrammarEvaluationState } = await import(pathToFileURL(join(folder, "dist", "index.js")));
const llama = await getLlama({
	gpu: false, build: "never", skipDownload: true, progressLogs: false, maxThreads: 1, logLevel: LlamaLogLevel.disabled,
});
const model = await llama.loadModel({ modelPath: vocabulary, vocabOnly: true, gpuLayers: 0 });
const { AddonSampler } = llama._bindings;
const may = AddonSampler?.canBeNextTokenForGrammarEvaluationState, step = AddonSampler?.acceptGrammarEvaluationStateToken;
if (!may || !step) throw new Error("this version of node-llama-cpp has no calls that test and take a token");
const end = model.tokens.eos ?? model.tokens.eot;
if (end === null) throw new Error("the vocabulary has no token that ends texts");

const microseconds = (since) => Math.round((performance.now() - since) * 1e4) / 10;
const read = (file) => {
	try {
		return JSON.parse(readFileSync(join(folder, file), "utf8"));
	} catch {
		return {};
	}
};

// compile makes the state that reads texts. The time is that of the peer's own way to it.
async function compile(job, result) {
	const start = performance.now();
	let grammar = job.grammar === undefined ? await llama.createGrammarForJsonSchema(job.schema) : await llama.createGrammar({ grammar: job.grammar });
	let state = new LlamaGrammarEvaluationState({ model, grammar });
	result.compile_us = microseconds(start);
	if (job.grammar === undefined) {
		const [root, ...rules] = grammar.grammar.split("\n");
		if (!root.startsWith("root ::= ") || !root.endsWith(lineBreaks)) throw new Error("the package's grammar has an end that is not known");
		grammar = await llama.createGrammar({ grammar: [root.slice(0, -lineBreaks.length), ...rules].join("\n") });
		state = new LlamaGrammarEvaluationState({ model, grammar });
	}
	return state;
}

// follow reads the tokens of a text, and says whether it may end behind them.
function follow(state, ids, result, deadline) {
	for (const id of ids) {
		const start = performance.now();
		const legal = may.call(AddonSampler, state._state, id);
		if (legal) step.call(AddonSampler, state._state, id);
		result.steps_us.push(microseconds(start));
		if (performance.now() > deadline) throw new Error("out of time");
		if (!legal) return false;
	}
	return may.call(AddonSampler, state._state, end);
}

// testAll tests each token of the vocabulary in the middle of a legal text.
function testAll(state, ids, size, result, deadline) {
	follow(state, ids.slice(0, ids.length >> 1), { steps_us: [] }, deadline);
	const start = performance.now();
	for (let id = 0; id < size; id++) may.call(AddonSampler, state._state, id);
	result.vocabulary_us = microseconds(start);
}

async function run(job) {
	const result = { steps_us: [], accepted: [] };
	const deadline = performance.now() + job.limit_ms;
	try {
		const first = await compile(job, result);
		for (const ids of job.texts) result.accepted.push(follow(first.clone(), ids, result, deadline));
		const legal = result.accepted.indexOf(true);
		if (legal >= 0) testAll(first.clone(), job.texts[legal], job.size, result, deadline);
	} catch (error) {
		result.error = String(error?.message ?? error).slice(0, 300);
	}
	return result;
}

const write = (value) => new Promise((done) => process.stdout.write(JSON.stringify(value) + "\n", done));
const release = read(join("llama", "llama.cpp.info.json")).tag ?? read(join("llama", "binariesGithubRelease.json")).release;
await write({ package: read("package.json").version ?? "", release: String(release ?? "") });
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) await write(await run(JSON.parse(line)));
process.exit(0);
