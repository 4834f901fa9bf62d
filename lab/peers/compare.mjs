// Runs grove and other engines over the same file in turns and prints medians with their spread.
//
//   node compare.mjs --model FILE [--package DIR] [--llama-bench PATH [--llama-bench-flags="-rtr 1 -mmp 0"]] [--grove PATH]
//       [--threads 2] [--rows 1,8,512] [--max-tokens 32] [--depth 4032] [--rounds 5]
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";

const { values: flags } = parseArgs({
	options: {
		package: { type: "string" },
		"llama-bench": { type: "string" },
		"llama-bench-flags": { type: "string", default: "" },
		model: { type: "string" },
		grove: { type: "string", default: "grove" },
		threads: { type: "string", default: "2" },
		rows: { type: "string", default: "1,4,8,16,64,512" },
		"max-tokens": { type: "string", default: "32" },
		depth: { type: "string", default: "0" }, // of context before more tokens; 0: none
		rounds: { type: "string", default: "5" },
	},
});
if (!flags.model || !(flags.package || flags["llama-bench"])) {
	console.error("compare: --model FILE and a peer, --package DIR or --llama-bench PATH, are needed; README.md says how");
	process.exit(2);
}

const lines = (program, args) =>
	execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim().split("\n").map((line) => JSON.parse(line));
const common = ["--max-tokens", flags["max-tokens"], "--repeat", "1", "--threads", flags.threads];
const shared = ["--rows", flags.rows, ...common];
const deep = Number(flags.depth) > 0;

function grove() {
	const speed = ["bench", "speed", "--json", "--model", flags.model];
	const shallow = lines(flags.grove, [...speed, ...shared]);
	return deep ? [...shallow, ...lines(flags.grove, [...speed, "--rows", "1", "--depth", flags.depth, ...common])] : shallow;
}

// llama-bench has no logits of all rows of a step; its tokens behind a prompt are those at a depth.
function llamaBench() {
	const args = ["-m", flags.model, "-t", flags.threads, "-p", flags.rows, "-n", flags["max-tokens"], "-r", "1", "-o", "json"];
	if (deep) args.push("-gp", `${flags.depth},${flags["max-tokens"]}`);
	args.push(...flags["llama-bench-flags"].split(" ").filter(Boolean));
	const text = execFileSync(flags["llama-bench"], args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
	return JSON.parse(text).map(({ n_prompt, n_gen, avg_ts }) => ({
		test: n_gen > 0 ? `tg${n_gen}` : `pp${n_prompt}`,
		depth: n_gen > 0 ? n_prompt : 0,
		logits: n_gen > 0 ? "all" : "last",
		tokens_per_second: avg_ts,
	}));
}

const llama = fileURLToPath(new URL("llama.mjs", import.meta.url));
const engines = { grove };
if (flags.package) {
	engines["llama.cpp"] = () => lines(process.execPath, [llama, "--package", flags.package, "--model", flags.model, ...shared]);
}
if (flags["llama-bench"]) engines["llama-bench"] = llamaBench;

// Rates by test, depth and logits, and then by engine.
const rates = new Map();
const rounds = Number(flags.rounds);
for (let round = 1; round <= rounds; round++) {
	for (const [engine, measure] of Object.entries(engines)) {
		for (const { test, depth, logits, tokens_per_second: rate } of measure()) {
			if (!test) continue; // grove's limits of the machine
			const name = `${test} | ${depth} | ${logits}`;
			if (!rates.has(name)) rates.set(name, {});
			(rates.get(name)[engine] ??= []).push(rate);
		}
	}
	if (process.stderr.isTTY) process.stderr.write(`\rround ${round} of ${rounds}${round === rounds ? "\n" : ""}`);
}

function median(values) {
	const sorted = values.toSorted((a, b) => a - b);
	return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

// The median, ± half the distance between the extremes.
function figure(values) {
	const m = median(values);
	return `${m.toFixed(1)} ± ${((100 * (Math.max(...values) - Math.min(...values))) / 2 / m).toFixed(0)} %`;
}

const peers = Object.keys(engines).slice(1);
console.log(`tokens a second, ${flags.threads} threads, medians of ${rounds} runs in turns\n`);
console.log(`| test | depth | logits | grove | ${peers.map((peer) => `${peer} | grove / ${peer}, median of rounds`).join(" | ")} |`);
console.log(`|${"---|".repeat(4 + 2 * peers.length)}`);
for (const [name, of] of rates) {
	const cells = peers.map((peer) => {
		if (!of.grove || !of[peer]) return " | "; // measured by one of them only
		return `${figure(of[peer])} | ${median(of.grove.map((rate, round) => rate / of[peer][round])).toFixed(2)}`;
	});
	if (cells.some((cell) => cell !== " | ")) console.log(`| ${name} | ${figure(of.grove)} | ${cells.join(" | ")} |`);
}
