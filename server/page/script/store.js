'use strict';
// What the browser keeps: settings, and each chat by itself so that two windows do not overwrite each other's.

const $ = id => document.getElementById(id);
const bounds = {
  chats: 50, // that are kept
  chat: 300_000, // characters of one; older turns are dropped
  file: 20_000_000, // bytes of a file to import
  turns: 5_000, // of a chat in a file
};

const attempt = f => { try { return f(); } catch { return undefined; } };
const store = { local: attempt(() => localStorage), session: attempt(() => sessionStorage) }; // undefined where they are forbidden
const read = (key, line = 0) => attempt(() => JSON.parse(store.local.getItem(key).split('\n')[line]));
const write = (key, ...lines) => attempt(() => { store.local.setItem(key, lines.map(l => JSON.stringify(l)).join('\n')); return true; });

// Settings. What is not in sampling has the model's default.
const settings = { model: '', method: 'auto', system: '', most: 4096, sampling: {}, theme: '', tint: true, plain: {} };
const isObject = v => typeof v === 'object' && v !== null && !Array.isArray(v);

// sampling lists the fields of a request that the reader may set: their ranges and steps.
const sampling = {
  temperature: { label: 'Temperature', min: 0, max: 100, step: 'any' },
  top_p: { label: 'Top-p', min: 0, max: 1, step: 'any' },
  top_k: { label: 'Top-k', min: -1, max: 1_000_000, step: 1 },
  min_p: { label: 'Min-p', min: 0, max: 1, step: 'any' },
  seed: { label: 'Seed', min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 },
};
function inRange(name, value) {
  const s = sampling[name];
  return Boolean(s) && Number.isFinite(value) && value >= s.min && value <= s.max && (s.step !== 1 || Number.isInteger(value));
}

// takeSettings takes over the settings of the right types and ranges.
function takeSettings(from) {
  for (const [name, value] of Object.entries(isObject(from) ? from : {})) {
    if (!Object.hasOwn(settings, name) || typeof value !== typeof settings[name] || isObject(value) !== isObject(settings[name])) continue;
    if (name === 'most' && !(Number.isInteger(value) && value >= 1 && value <= 1_000_000)) continue;
    if (name === 'theme' && !['', 'light', 'dark'].includes(value)) continue;
    settings[name] = name === 'sampling' ? Object.fromEntries(Object.entries(value).filter(([n, v]) => inRange(n, v))) : value;
  }
}
const keepSettings = () => write('grove.settings', settings);

// A chat is {id, title, plain, from, turns}: the model is not sent the first from turns, in plain completion characters. A turn is {role, runs, thoughts,
// thinking, seed, stats, note, error, fault, cut}; every second run of its text was drafted.
const blank = () => ({ id: Date.now().toString(36) + Math.random().toString(36).slice(2, 8), title: '', plain: false, from: 0, turns: [] });
const said = turn => turn.runs.join('');
const titleOf = c => c.title || (c.turns.length ? said(c.turns[0]).trim().replace(/\s+/g, ' ').slice(0, 60) : '');

const textOf = c => c.turns.map(said).join('');

// addRun appends text to runs, of which those that were not drafted and those that were take turns.
function addRun(runs, text, draft) {
  while (!runs.length || runs.length % 2 === Number(draft)) runs.push('');
  runs[runs.length - 1] += text;
}

// takeTurn returns the turn that a stranger's value describes, and undefined where it describes none.
function takeTurn(t) {
  if (!isObject(t) || (t.role !== 'user' && t.role !== 'assistant')) return undefined;
  const runs = typeof t.content === 'string' ? [t.content] : t.runs;
  if (!Array.isArray(runs) || !runs.every(r => typeof r === 'string')) return undefined;
  const turn = { role: t.role, runs: [...runs] };
  const thoughts = t.thoughts ?? t.reasoning_content;
  if (typeof thoughts === 'string' && thoughts) turn.thoughts = thoughts;
  for (const name of ['note', 'error']) if (typeof t[name] === 'string') turn[name] = t[name];
  for (const name of ['thinking', 'seed']) if (Number.isFinite(t[name]) && t[name] >= 0) turn[name] = t[name];
  if (['template', 'context', 'model', 'key'].includes(t.fault)) turn.fault = t.fault;
  if (['limit', 'context', 'stop', 'lost'].includes(t.cut)) turn.cut = t.cut;
  if (isObject(t.stats)) {
    turn.stats = {};
    for (const [name, v] of Object.entries(t.stats)) {
      if (Number.isFinite(v) || (['model', 'method', 'grade'].includes(name) && typeof v === 'string')) turn.stats[name] = v;
    }
  }
  return turn;
}

// takeChat returns the chat that a stranger's value describes, and undefined where a part of it is wrong.
function takeChat(c) {
  const list = c?.turns ?? c?.messages;
  if (!Array.isArray(list) || list.length > bounds.turns) return undefined;
  const turns = (c.turns ? list : list.filter(m => m?.role !== 'system')).map(takeTurn);
  if (turns.some(t => !t)) return undefined;
  const taken = { ...blank(), plain: c.plain === true, turns };
  if (typeof c.title === 'string') taken.title = c.title.slice(0, 200);
  if (Number.isInteger(c.from) && c.from > 0 && c.from < (taken.plain ? textOf(taken).length : turns.length)) taken.from = c.from;
  return taken;
}

// A chat is kept behind a line that tells its age and title, so that a list of chats takes no reading of them.
const chatKey = id => 'grove.chat.' + id;
function load(id) {
  const c = takeChat(read(chatKey(id), 1));
  return c ? { ...c, id } : blank();
}
function chats() {
  const ids = Object.keys(store.local ?? {}).filter(k => k.startsWith(chatKey(''))).map(k => k.slice(chatKey('').length));
  const about = id => { const a = read(chatKey(id)); return { id, at: Number(a?.at) || 0, title: typeof a?.title === 'string' ? a.title : '' }; };
  return ids.map(about).sort((a, b) => b.at - a.at);
}
const drop = id => attempt(() => store.local.removeItem(chatKey(id)));

// save keeps a chat and returns whether it is kept. The oldest chats make room.
function save(c, at = Date.now()) {
  let first = c.turns.length, size = 0;
  while (first && (size += said(c.turns[first - 1]).length + (c.turns[first - 1].thoughts?.length ?? 0)) <= bounds.chat) first--;
  if (first === c.turns.length) return false;
  const about = { at, title: titleOf(c) };
  const others = chats().filter(other => other.id !== c.id);
  while (others.length >= bounds.chats) drop(others.pop().id);
  const gone = c.plain ? textOf({ turns: c.turns.slice(0, first) }).length : first;
  const kept = { ...c, from: Math.max(0, c.from - gone), turns: c.turns.slice(first) };
  while (!write(chatKey(c.id), about, kept)) {
    if (!others.length) return false;
    drop(others.pop().id);
  }
  return true;
}

// toJSON returns chats as a file that fromJSON reads.
const toJSON = list => JSON.stringify({ format: 'grove-chats', version: 1, chats: list.map(({ title, plain, from, turns }) => ({ title, plain, from, turns })) }, null, 1) + '\n';

// fromJSON returns the chats in a file: one that toJSON wrote, or an object with the field messages as requests have it. It throws
// an error for the reader.
function fromJSON(text) {
  const file = attempt(() => JSON.parse(text));
  if (!isObject(file)) throw new Error('The file is no JSON of chats; choose one that this page exported.');
  if (file.format !== undefined && (file.format !== 'grove-chats' || file.version !== 1)) {
    throw new Error('The file has the format ' + JSON.stringify(file.format) + ', version ' + JSON.stringify(file.version) + '; this page reads grove-chats, version 1.');
  }
  const list = Array.isArray(file.chats) ? file.chats : [file];
  if (list.length > bounds.chats) throw new Error(`The file has ${list.length} chats; at most ${bounds.chats} are kept.`);
  return list.map((c, i) => {
    const taken = takeChat(c);
    if (!taken?.turns.length) throw new Error(`Chat ${i + 1} of the file is none; each has turns or messages of the user and the assistant.`);
    return taken;
  });
}

// toMarkdown returns a chat as a document.
function toMarkdown(c) {
  if (c.plain) return textOf(c) + '\n';
  const parts = ['# ' + (titleOf(c) || 'Chat')];
  for (const turn of c.turns) parts.push(turn.role === 'user' ? '## Question' : '## Answer', said(turn).trim() || '(nothing)');
  return parts.join('\n\n') + '\n';
}

takeSettings(read('grove.settings'));
