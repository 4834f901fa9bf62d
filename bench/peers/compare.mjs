// Runs grove and llama.cpp over the same file in turns and prints medians with their spread.
//
//   node compare.mjs --package DIR --model FILE [--grove PATH] [--threads 2] [--rows 1,8,512] [--max-tokens 32] [--rounds 5]
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";

const { values: flags } = parseArgs({
	options: {
		package: { type: "string" },
		model: { type: "string" },
		grove: { type: "string", default: "grove" },
		threads: { type: "string", default: "2" },
		rows: { type: "string", default: "1,4,8,16,64,512" },
		"max-tokens": { type: "string", default: "32" },
		rounds: { type: "string", default: "5" },
	},
});
if (!flags.package || !flags.model) {
	console.error("compare: --package DIR and --model FILE are needed; README.md says how");
	process.exit(2);
}

const shared = ["--rows", flags.rows, "--max-tokens", flags["max-tokens"], "--repeat", "1", "--threads", flags.threads];
const llama = fileURLToPath(new URL("llama.mjs", import.meta.url));
const engines = {
	grove: [flags.grove, ["bench", "speed", "--json", "--model", flags.model, ...shared]],
	"llama.cpp": [process.execPath, [llama, "--package", flags.package, "--model", flags.model, ...shared]],
};

// Rates by test, such as "pp8 last", and engine.
const rates = new Map();
const rounds = Number(flags.rounds);
for (let round = 1; round <= rounds; round++) {
	for (const [engine, [program, args]] of Object.entries(engines)) {
		const lines = execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim().split("\n");
		for (const line of lines) {
			const { test, logits, tokens_per_second: rate } = JSON.parse(line);
			if (!test) continue; // grove's limits of the machine
			const name = `${test} | ${logits}`;
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

console.log(`tokens a second, ${flags.threads} threads, medians of ${rounds} runs in turns\n`);
console.log("| test | logits | grove | llama.cpp | grove / llama.cpp, median of rounds |\n|---|---|---|---|---|");
for (const [name, { grove, "llama.cpp": peer }] of rates) {
	if (!grove || !peer) continue; // measured by one of them only
	const ratio = median(grove.map((rate, round) => rate / peer[round]));
	console.log(`| ${name} | ${figure(grove)} | ${figure(peer)} | ${ratio.toFixed(2)} |`);
}
