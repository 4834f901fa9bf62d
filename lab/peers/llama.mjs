// Measures llama.cpp, as node-llama-cpp ships it, like `grove bench speed --json`: a line for each test.
//
//   node llama.mjs --package DIR --model FILE [--threads 2] [--rows 1,8,512] [--max-tokens 32] [--repeat 1]
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const { values: flags } = parseArgs({
	options: {
		package: { type: "string" }, // folder in which node-llama-cpp was installed
		model: { type: "string" },
		threads: { type: "string", default: "2" },
		rows: { type: "string", default: "1,4,8,16,64,512" },
		"max-tokens": { type: "string", default: "32" },
		repeat: { type: "string", default: "1" },
	},
});
const rows = flags.rows.split(",").map(Number);
const tokens = Number(flags["max-tokens"]);
const threads = Number(flags.threads);
const maxAll = 64; // rows with logits each: more would measure node's work on them

const entry = join(flags.package, "node_modules", "node-llama-cpp", "dist", "index.js");
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(entry));
const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: flags.model });
const context = await model.createContext({
	threads, sequences: 1, contextSize: Math.max(...rows) + tokens + 8, batchSize: Math.max(...rows),
});
const sequence = context.getSequence();

// The same tokens as grove's steps have.
const prompt = (n) => Array.from({ length: n }, (_, i) => (i * 7919) % 32000);

async function seconds(work) {
	const start = process.hrtime.bigint();
	await work();
	return Number(process.hrtime.bigint() - start) / 1e9;
}

// A step of n rows, the last of which has logits and draws a token; then `more` tokens one at a time.
async function last(n, more) {
	await sequence.clearHistory();
	const draws = sequence.evaluate(prompt(n), { temperature: 0, yieldEogToken: true });
	const first = await seconds(() => draws.next());
	const rest = await seconds(async () => {
		for (let i = 0; i < more; i++) await draws.next();
	});
	await draws.return();
	return { first, rest };
}

// A step of n rows that all have logits and draw a token each.
async function all(n) {
	await sequence.clearHistory();
	const draw = { generateNext: { token: true, options: { temperature: 0 } } };
	return seconds(() => sequence.controlledEvaluate(prompt(n).map((id) => [id, draw])));
}

function report(test, rows, logits, samples) {
	const sorted = samples.toSorted((a, b) => a - b);
	const median = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
	console.log(JSON.stringify({
		test, rows, depth: 0, logits, tokens_per_second: rows / median, seconds: median,
		spread: (sorted.at(-1) - sorted[0]) / 2 / median,
	}));
}

async function sample(times, step) {
	const samples = [];
	for (let i = 0; i < times; i++) samples.push(await step());
	return samples;
}

await last(8, 4); // warms up
for (const n of rows) {
	const times = Number(flags.repeat) * Math.max(1, Math.floor(16 / n));
	report(`pp${n}`, n, "last", await sample(times, async () => (await last(n, 0)).first));
	if (n <= maxAll) report(`pp${n}`, n, "all", await sample(times, () => all(n)));
}
if (tokens > 0) {
	report(`tg${tokens}`, 1, "all", await sample(Number(flags.repeat), async () => (await last(1, tokens)).rest / tokens));
}
process.exit(0); // what is still open would keep node alive
