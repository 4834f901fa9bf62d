'use strict';
// What the reader does.

const keep = c => { if (save(c) && c === chat) history.replaceState(null, '', '#' + c.id); };

// answer asks the model for the next turn and draws it as it comes. goOn: the last turn goes on. list: the messages to send instead of
// the chat's; most: the longest answer.
async function answer(options = {}) {
  const turn = options.goOn ? chat.turns.at(-1) : { role: 'assistant', runs: [] };
  for (const name of ['note', 'error', 'fault', 'cut']) delete turn[name];
  if (!options.goOn) {
    if (settings.sampling.seed !== undefined) turn.seed = options.seed ?? settings.sampling.seed;
    chat.turns.push(turn);
  }
  const mine = chat, work = running = Object.assign(new AbortController(), { turn }), most = options.most ?? settings.most, view = show(turn);
  state();
  follow(true);
  const saver = setInterval(keep, 1000, mine);
  const tell = text => { turn.note = text; view.draw(false); follow(); };
  try {
    const [path, body] = requestOf(mine, turn, options);
    const stream = (await callPatiently(path, { method: 'POST', body: JSON.stringify(body), signal: work.signal }, tell)).body;
    delete turn.note;
    await receive(stream, turn, most, (text, draft, canvas) => { if (text) view.writer.add(text, draft); if (canvas) view.runs = canvas; view.soon(); });
  } catch (e) {
    fail(mine, turn, e, work);
  }
  clearInterval(saver);
  if (running === work) running = null;
  keep(mine);
  view.draw(true);
  if (mine !== chat) return;
  state();
  follow();
  if (turn.stats && stateOfModel[$('model').value] !== 'loaded') connect(); // the model is loaded now
}

// fail keeps in a turn why it ended before its end, and what the reader can do.
function fail(c, turn, e, work) {
  delete turn.note;
  if (work.signal.aborted) {
    turn.note = 'Stopped.';
    turn.cut = 'stop';
    return;
  }
  const problem = e instanceof Problem ? e : new Problem(lost), { code } = problem.body;
  if (code === 'not_found' || (problem.body.param === 'messages' && /template/.test(problem.message))) turn.fault = problem.fault = 'template';
  if (code === 'context_length_exceeded') turn.fault = 'context';
  turn.error = [problem.message.replace(/([^.!?])$/, '$1.'), hint(problem, canDrop(c))].filter(Boolean).join(' ');
  if (said(turn)) turn.cut = 'lost';
  if (problem.status === 401) unlock();
  if (problem.status === 0 || code === 'model_not_found') connect();
}

function again() {
  if (running || chat.turns.at(-1)?.role !== 'assistant') return;
  const before = { from: chat.from, turns: [...chat.turns] }, old = chat.turns.pop();
  if (said(old) && !old.error) offerUndo('The answer is replaced.', before);
  draw();
  answer({ seed: old.seed !== undefined && !old.error ? old.seed + 1 : old.seed }); // the same seed gives the same answer
}
function goOn() {
  if (!running && said(chat.turns.at(-1))) answer({ goOn: !chat.plain });
}

// summarise begins a chat with a summary of this one, which the model writes. A question without an answer goes to the message field.
function summarise() {
  if (running) return;
  const old = chat, open = old.turns.at(-1).role === 'assistant' && !said(old.turns.at(-1)) ? old.turns.at(-2) : undefined;
  const ask = 'Summarise our conversation so far in at most 200 words. Keep names, figures, decisions and open questions.';
  let list = messagesOf(old, open ? old.turns.indexOf(open) : undefined);
  const length = list.reduce((n, m) => n + m.content.length, 0), full = old.turns.at(-1).cut === 'context' || open;
  if (full) list = shorten(list, Math.floor(0.6 * length));
  turnTo('');
  chat.title = ('Summary: ' + titleOf(old)).slice(0, 200);
  chat.turns.push({ role: 'user', runs: [ask] });
  if (open) { $('text').value = said(open); }
  draw();
  answer({ list: [...list, { role: 'user', content: ask }], most: 500 });
}

// edit lets the reader change a question. What follows it is dropped, and can be brought back.
function edit(turn) {
  if (running) return;
  const i = chat.turns.indexOf(turn), article = articles.get(turn);
  const field = make('textarea', { className: 'field', value: said(turn), ariaLabel: 'The question', rows: 2 });
  const cancel = () => { draw(); $('text').focus(); };
  const form = make('form', { className: 'edit' }, field, make('div', { className: 'row' },
    make('button', { type: 'button', onclick: cancel }, 'Cancel'), make('button', { className: 'strong' }, 'Answer again')));
  form.onsubmit = e => {
    e.preventDefault();
    if (!field.value.trim() || running) return;
    const old = { from: chat.from, turns: [...chat.turns] };
    chat.turns.length = i;
    chat.from = Math.min(chat.from, i); // only questions of chats are edited
    chat.turns.push({ role: 'user', runs: [field.value] });
    offerUndo('The question was changed.', old);
    draw();
    answer();
    $('text').focus();
  };
  field.onkeydown = e => {
    if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); form.requestSubmit(); }
    if (e.key === 'Escape') { e.stopPropagation(); cancel(); }
  };
  article.replaceChildren(form);
  field.focus();
}

// removePair deletes a question and its answer; in plain completion the last text.
function removePair(turn) {
  if (running) return;
  const old = { from: chat.from, turns: [...chat.turns] }, i = chat.turns.indexOf(turn);
  const n = turn.role === 'user' && chat.turns[i + 1]?.role === 'assistant' ? 2 : 1;
  chat.turns.splice(i, n);
  if (!chat.plain && chat.from > i) chat.from = Math.max(0, chat.from - n);
  if (chat.from >= (chat.plain ? textOf(chat).length : chat.turns.length)) chat.from = 0;
  if (chat.turns.length) keep(chat);
  else drop(chat.id);
  offerUndo('The question and its answer are deleted.', old);
  draw();
  $('text').focus();
}

// offerUndo says what was done and offers to undo it, until the next message is sent.
function offerUndo(text, old) {
  const mine = chat;
  say(text, () => {
    if (mine === chat) { running?.abort(); running = null; }
    Object.assign(mine, { from: old.from, turns: old.turns });
    keep(mine);
    if (chat !== mine) turnTo(mine.id);
    else draw();
  });
}
function say(text, f) {
  $('told').textContent = text;
  $('undo').hidden = !f;
  $('undo').onclick = () => { say(''); f(); $('text').focus(); };
  $('tell').hidden = !text;
}

function choosePlain(plain) {
  settings.plain[$('model').value] = chat.plain = plain;
  chat.from = 0;
  keepSettings();
  draw();
}
function turnTo(id) {
  running?.abort();
  running = null;
  chat = load(id);
  if (!chat.turns.length) history.replaceState(null, '', location.pathname);
  menu(false);
  draw();
}
function forget(all) {
  const kept = all.length === 1 ? { id: all[0].id, ...load(all[0].id) } : null, open = all.some(c => c.id === chat.id);
  for (const { id } of all) drop(id);
  if (open) { chat.turns = []; turnTo(''); } // nor is an answer under way kept
  state();
  if (kept?.turns.length) say('The chat is deleted.', () => { save(kept); turnTo(kept.id); keep(chat); });
}
function menu(shown) {
  document.body.classList.toggle('menu', shown);
  $('menu').ariaExpanded = String(shown);
}

function send() {
  const text = $('text').value, plain = wantsPlain();
  if (running || (plain ? !text && !chat.turns.length : !text.trim())) return;
  say('');
  chat.plain = plain;
  if (text) chat.turns.push({ role: 'user', runs: [text] });
  $('text').value = '';
  draw();
  answer();
}

// Files: chats leave as Markdown or JSON, and JSON comes back.
function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
const fileName = c => (titleOf(c).replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 40) || 'chat').toLowerCase();
async function importFile(file) {
  try {
    if (file.size > bounds.file) throw new Error(`The file has ${file.size} bytes; at most ${bounds.file} are read.`);
    const list = fromJSON(await file.text());
    const kept = list.filter((c, i) => save(c, Date.now() - i)).length;
    if (kept < list.length) throw new Error(`The browser has room for ${kept} of the ${list.length} chats.`);
    turnTo(list[0].id);
    keep(chat);
    say(count(kept, 'chat') + (kept === 1 ? ' was' : ' were') + ' imported.');
  } catch (e) {
    say(e.message);
  }
  state();
}

// connect asks what models there are, until the server can tell.
let waiting = 0;
async function connect() {
  clearTimeout(waiting);
  let trouble = '';
  try {
    const { data } = await (await call('v1/models')).json();
    $('unlock').hidden = true;
    listModels(Array.isArray(data) ? data.filter(m => typeof m?.id === 'string' && writes(m.capabilities)) : []);
    await describe();
  } catch (e) {
    trouble = [e.message.replace(/([^.!?])$/, '$1.'), e.status === 401 ? 'Enter it here.' : e instanceof Problem && e.status !== 503 ? hint(e) : ''].filter(Boolean).join(' ');
    if (e.status === 401) unlock();
    if (!e.status || e.status === 503) waiting = setTimeout(connect, 2 * patience.second);
  }
  $('trouble').textContent = trouble;
  $('trouble').hidden = !trouble;
  state();
}
function unlock() {
  $('unlock').hidden = false;
  $('key').focus();
}

// writes reports whether a model with these abilities generates text; a list that is empty or absent says nothing.
const writes = abilities => !Array.isArray(abilities) || !abilities.length || abilities.includes('completion');

// listModels lists the models with their state. Without a choice of the reader's, a model that is loaded is chosen.
const stateOfModel = {};
function listModels(list) {
  for (const m of list) stateOfModel[m.id] = typeof m.status?.value === 'string' ? m.status.value : 'loaded';
  const wanted = [$('model').value, settings.model].find(id => list.some(m => m.id === id)) ?? list.find(m => stateOfModel[m.id] === 'loaded')?.id;
  const label = m => m.id + (stateOfModel[m.id] === 'loaded' ? '' : stateOfModel[m.id] === 'unloaded' ? ' (loads when asked)' : ` (${stateOfModel[m.id]})`);
  $('model').replaceChildren(...list.map(m => new Option(label(m), m.id, false, m.id === wanted)));
}

// describe asks what the model can do. A model that is not loaded is not asked: that would load it.
async function describe() {
  const name = $('model').value;
  if (model.name !== name) Object.assign(model, { name, context: 0, trained: 0, defaults: {}, diffusion: false });
  if (!name) return listMethods([]);
  if (stateOfModel[name] !== 'loaded' && !chat.turns.some(t => t.stats?.model === name)) return listMethods([]);
  const props = await (await call('props?model=' + encodeURIComponent(name))).json();
  if (name !== $('model').value) return;
  bare[name] = props.chat_template === '';
  const given = props.default_generation_settings;
  model.context = Number.isInteger(given?.n_ctx) && given.n_ctx > 0 ? given.n_ctx : 0;
  model.diffusion = props.diffusion === true;
  model.trained = Number.isInteger(props.n_ctx_train) && props.n_ctx_train > 0 ? props.n_ctx_train : 0;
  model.defaults = Object.fromEntries(Object.entries(isObject(given?.params) ? given.params : {}).filter(([n, v]) => n !== 'seed' && inRange(n, v)));
  listMethods(Array.isArray(props.methods) ? props.methods.filter(m => typeof m?.name === 'string') : []);
  state();
}

// listMethods lists the methods that a request of this page can use: what the model or the page cannot give is left out.
const grades = { exact: 'The same text as plain decoding', 'same-distribution': 'Another text of the same distribution', lossy: 'Another text' };
function listMethods(methods) {
  const option = (value, label, title = '') => make('option', { value, title, selected: value === settings.method }, label);
  const usable = methods.filter(m => (m.available ?? !m.needs) && m.needs !== 'a prediction, or a source');
  const groups = Object.entries(grades).map(([grade, label]) => [label, usable.filter(m => (m.grade ?? 'exact') === grade)]);
  $('method').replaceChildren(option('auto', 'auto: where it pays'), option('off', 'off: plain decoding'), ...groups.filter(([, list]) => list.length)
    .map(([label, list]) => make('optgroup', { label }, ...list.map(m => option(m.name, m.paper ? `${m.name}: ${m.paper}` : m.name)))));
}

// fillSettings draws the settings dialog.
function fillSettings() {
  for (const name of ['system', 'most']) $(name).value = settings[name];
  for (const name of Object.keys(sampling)) {
    $(name).value = settings.sampling[name] ?? '';
    $(name).placeholder = name === 'seed' ? 'random' : model.defaults[name] === undefined ? "the model's" : String(Number(model.defaults[name].toPrecision(4)));
  }
  $('tint').checked = settings.tint;
  $('plain').checked = wantsPlain();
  $('plain').disabled = Boolean(running);
}
function takeFields() {
  settings.system = $('system').value;
  settings.tint = $('tint').checked;
  const wrong = [];
  for (const [name, s] of Object.entries(sampling)) {
    const text = $(name).value.trim(), good = $(name).validity.valid && (!text || inRange(name, Number(text)));
    $(name).ariaInvalid = String(!good);
    if (!good) wrong.push(`${s.label}: from ${s.min} to ${s.max}.`);
    else if (text) settings.sampling[name] = Number(text);
    else delete settings.sampling[name];
  }
  const most = Number($('most').value), good = Number.isInteger(most) && most >= 1 && most <= 1_000_000;
  $('most').ariaInvalid = String(!good);
  if (good) settings.most = most;
  else wrong.push('Longest answer: from 1 to 1,000,000 tokens.');
  $('wrong').textContent = wrong.join(' ');
  keepSettings();
  state();
}

for (const [name, s] of Object.entries(sampling)) {
  $('sampling').append(make('label', { htmlFor: name }, s.label), make('input', { id: name, className: 'field', type: 'number', min: s.min, max: s.max, step: s.step }));
}
$('composer').onsubmit = e => { e.preventDefault(); if (running) running.abort(); else send(); };
$('text').onkeydown = e => {
  if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); }
  if (e.key === 'ArrowUp' && !$('text').value && !running && !chat.plain) {
    const last = chat.turns.findLast(t => t.role === 'user');
    if (last) { e.preventDefault(); edit(last); }
  }
};
onkeydown = e => {
  if (e.key === 'Escape' && !$('settings').open && !document.querySelector(':popover-open')) { running?.abort(); menu(false); }
  if (e.key === 'o' && e.altKey && !e.ctrlKey && !e.metaKey) { e.preventDefault(); turnTo(''); $('text').focus(); }
};
$('scroll').onscroll = ({ target: s }) => {
  atEnd = s.scrollHeight - s.scrollTop - s.clientHeight < 48 || (atEnd && s.scrollTop >= scrolled);
  scrolled = s.scrollTop;
};
$('unlock').onsubmit = e => { e.preventDefault(); attempt(() => store.session.setItem('grove.key', $('key').value.trim())); $('key').value = ''; connect(); };
$('model').onchange = async () => { settings.model = $('model').value; keepSettings(); await describe().catch(e => say(e.message)); state(); };
$('method').onchange = () => { settings.method = $('method').value; keepSettings(); };
$('theme').onclick = () => { settings.theme = { '': 'light', light: 'dark', dark: '' }[settings.theme] ?? ''; keepSettings(); state(); };
$('menu').onclick = e => { e.stopPropagation(); menu(!document.body.classList.contains('menu')); };
document.querySelector('main').onclick = () => menu(false);
document.querySelector('nav .new').onclick = e => { e.preventDefault(); turnTo(''); $('text').focus(); };
$('configure').onclick = () => { fillSettings(); $('settings').showModal(); };
$('settings').onclick = e => { if (e.target === $('settings') || e.target === $('close')) $('settings').close(); };
$('settings').oninput = takeFields;
$('settings').onclose = fillSettings; // what was wrong was not taken
$('defaults').onclick = () => { settings.sampling = {}; keepSettings(); fillSettings(); takeFields(); };
$('plain').onchange = () => choosePlain($('plain').checked);
$('forget').onclick = () => { if (confirm('Delete all chats that this browser keeps?')) forget(chats()); };
$('title').onchange = () => { chat.title = $('title').value.trim().slice(0, 200); keep(chat); state(); };
$('title').onkeydown = e => { if (e.key === 'Enter') { $('title').blur(); $('actions').hidePopover(); } };
$('exportMarkdown').onclick = () => download(fileName(chat) + '.md', 'text/markdown', toMarkdown(chat));
$('exportJSON').onclick = () => download(fileName(chat) + '.json', 'application/json', toJSON([chat]));
$('exportAll').onclick = () => download('grove-chats.json', 'application/json', toJSON(chats().map(c => load(c.id)).filter(c => c.turns.length)));
$('import').onclick = () => $('file').click();
$('file').onchange = async () => { const [file] = $('file').files; $('file').value = ''; if (file) await importFile(file); };
$('summarise').onclick = summarise;
$('removeChat').onclick = () => forget([chat]);
$('actions').onclick = e => { if (e.target.matches('button')) $('actions').hidePopover(); };
onhashchange = () => { const id = location.hash.slice(1); if (id !== chat.id) turnTo(id); };
onpagehide = () => keep(chat);
turnTo(location.hash.slice(1));
connect();
