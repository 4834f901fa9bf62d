'use strict';
// How a chat is drawn.

let chat = blank(), running = null, bare = {}; // the AbortController of the answer under way; models without a chat template
const wantsPlain = () => Boolean(chat.turns.length ? chat.plain : settings.plain[$('model').value] ?? bare[$('model').value]);
const count = (n, what) => `${Number(n).toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;
const capital = text => text[0].toUpperCase() + text.slice(1);
const seconds = ms => ms < 9950 ? (ms / 1000).toFixed(1) + ' s' : Math.round(ms / 1000) + ' s';

// show draws a turn, in the place where it was, and returns its View.
const articles = new WeakMap();
function show(turn) {
  const view = new View(turn), old = articles.get(turn);
  if (old?.isConnected) old.replaceWith(view.article);
  else $('log').append(view.article);
  articles.set(turn, view.article);
  return view;
}

// A View is a turn on the page.
class View {
  constructor(turn) {
    const text = make('div', { className: 'thought' });
    const parts = {
      summary: make('summary', {}), text, body: make('div', { className: 'body' }), canvas: make('div', { className: 'canvas', ariaHidden: 'true' }), figures: make('summary', { className: 'figures' }),
      rest: make('dl', {}), state: make('div', { className: 'state' }), actions: make('div', { className: 'actions' }),
    };
    Object.assign(this, { turn, ...parts, runs: [], drawn: -1, due: 0, cost: 0 });
    this.thoughts = make('details', { className: 'thoughts', hidden: true }, parts.summary, text);
    this.more = make('details', { className: 'more', hidden: true }, parts.figures, parts.rest);
    this.foot = make('div', { className: 'foot' }, this.state, ...(turn.role === 'user' ? [] : [this.more]), this.actions);
    this.article = make('article', { className: turn.role, ariaLabel: turn.role === 'user' ? 'You' : 'Model' }, ...(turn.role === 'user' ? [] : [this.thoughts]), this.body, ...(turn.role === 'user' ? [] : [this.canvas]), this.foot);
    this.writer = new Writer(this.body, chat.plain || turn.role === 'user');
    turn.runs.forEach((run, i) => run && this.writer.add(run, i % 2 === 1));
    this.draw(turn !== running?.turn);
  }

  // draw draws the text, what was thought, and what stands below; whole: no more text comes.
  draw(whole) {
    const began = performance.now();
    this.writer.draw(whole);
    this.drawThoughts(whole);
    this.drawCanvas(whole);
    this.more.hidden = !this.turn.stats;
    if (this.turn.stats) this.drawFigures(this.turn.stats);
    this.state.replaceChildren(...stateOf(this.turn));
    if (whole) this.actions.replaceChildren(...actionsOf(this.turn));
    this.cost = performance.now() - began;
    this.due = began + 4 * this.cost; // drawing takes at most a quarter of the time
  }

  // soon draws in one of the next frames.
  soon() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      if (this.turn !== running?.turn) return;
      if (performance.now() < this.due) return this.soon();
      this.draw(false);
      follow();
    });
  }

  drawThoughts(whole) {
    const thoughts = this.turn.thoughts ?? '';
    this.thoughts.hidden = !thoughts;
    if (!thoughts) return;
    const over = whole || said(this.turn), took = this.turn.thinking;
    this.summary.textContent = (over ? 'Thoughts' : 'Thinking') + (took ? ', ' + seconds(took) : '');
    if (thoughts.length !== this.drawn) this.text.append(thoughts.slice(Math.max(0, this.drawn)));
    this.drawn = thoughts.length;
  }

  // drawCanvas draws the unfinished part of a canvas: tokens, and a light block for each mask.
  drawCanvas(whole) {
    const most = 2000; // blocks of a run
    this.canvas.replaceChildren(...(whole ? [] : this.runs).map(run => typeof run === 'number'
      ? make('span', { className: 'masks' }, '\u2591'.repeat(Math.min(Math.max(0, Math.floor(run) || 0), most)))
      : String(run)));
  }

  // drawFigures draws the line of figures and the list behind it.
  drawFigures(s) {
    const line = [];
    const put = (className, ...what) => line.push(make('span', { className }, ...what));
    if (s.perSecond >= 0) put('rate', `${s.perSecond.toFixed(s.perSecond < 100 ? 1 : 0)} tokens/s`);
    put('tokens', count(s.tokens ?? 0, 'token'));
    if (s.drafted) put('accepted', make('span', { className: 'draft' }, String(s.accepted)), ` of ${count(s.drafted, 'draft token')} accepted`);
    this.figures.replaceChildren(...line);
    const rows = [
      ['Steps', s.rounds && count(s.rounds, 'step')],
      ['Accepted per step', s.rounds && (s.accepted / s.rounds).toFixed(2)],
      ['Prompt', s.prompt >= 0 && `${count(s.prompt + (s.cached || 0), 'token')}, ${s.cached || 0} of them from the cache` + (s.promptPerSecond > 0 ? `; ${s.promptPerSecond.toFixed(0)} tokens/s` : '')],
      ['Until the first token', s.promptMS > 0 && seconds(s.promptMS)],
      ['Context', s.context > 0 && count(s.context, 'token') + (model.context ? ` of ${model.context.toLocaleString('en')}` : '')],
      ['Seed', this.turn.seed !== undefined && String(this.turn.seed)],
      ['Model', s.model], ['Drafting', s.method], ['Grade', s.grade],
    ];
    this.rest.replaceChildren(...rows.filter(([, v]) => v).map(([name, v]) => make('div', {}, make('dt', {}, name), make('dd', {}, String(v)))));
  }
}

// stateOf returns the notes and errors of a turn, with what can be done about them.
function stateOf(turn) {
  const all = [], last = turn === chat.turns.at(-1) && turn !== running?.turn;
  const button = (label, onclick) => all.push(make('button', { type: 'button', className: 'offer', onclick }, label));
  if (turn.note) all.push(make('span', { className: 'note' }, turn.note));
  if (turn.error) all.push(make('div', { className: 'error', role: 'alert' }, turn.error));
  if (turn.cut === 'limit') all.push(make('span', { className: 'note' }, 'Cut at the longest answer that the settings allow.'));
  if (turn.cut === 'context') all.push(make('span', { className: 'note' }, 'The context is full. ' + capital((last && canDrop(chat) ? 'drop the oldest text, or ' : '') + larger())));
  if (!last || turn.role === 'user') return all;
  if (turn.cut === 'context' || turn.fault === 'context') {
    if (canDrop(chat)) button(chat.plain ? 'Drop the oldest text' : 'Drop the oldest turns', () => { dropOldest(chat); draw(); turn.cut && said(turn) ? goOn() : again(); });
    if (!chat.plain && chat.turns.some(t => t.role === 'assistant' && said(t))) button('New chat with a summary', summarise);
  }
  if (turn.fault === 'template') button('Go on with plain completion', () => { choosePlain(true); again(); });
  else if (turn.error) button('Try again', again);
  if (said(turn) && ['limit', 'stop', 'lost'].includes(turn.cut)) button('Continue', goOn);
  if (!said(turn) && turn.cut === 'limit') button('Answer again with twice the length', () => { settings.most = Math.min(2 * settings.most, 1_000_000); keepSettings(); again(); });
  return all;
}

// actionsOf returns the buttons of a turn.
function actionsOf(turn) {
  const all = [], last = turn === chat.turns.at(-1);
  const button = (label, title, onclick) => all.push(make('button', { type: 'button', title, ariaLabel: title, onclick }, label));
  if (turn === running?.turn) return all;
  if (said(turn)) button('Copy', turn.role === 'user' ? 'Copy the question' : 'Copy the answer', e => copyText(said(turn), e.currentTarget));
  if (turn.role === 'user') {
    if (!chat.plain) button('Edit', 'Edit the question and answer it again', () => edit(turn));
    if (!chat.plain) button('Delete', 'Delete the question and its answer', () => removePair(turn));
  } else if (last) {
    if (!turn.error || said(turn)) button('Regenerate', 'Regenerate the answer', again);
    if (chat.plain) button('Delete', 'Delete the last text', () => removePair(turn));
  }
  return all;
}

// follow keeps the end of the text in sight, unless the reader has scrolled away from it.
let atEnd = true, scrolled = 0; // up to where
function follow(always) {
  atEnd ||= Boolean(always);
  if (atEnd) $('scroll').scrollTop = $('scroll').scrollHeight;
}

// state draws what depends on whether an answer is under way, on the model and on the settings.
function state() {
  const plain = wantsPlain();
  document.documentElement.dataset.theme = settings.theme;
  $('log').classList.toggle('plain', plain);
  $('log').classList.toggle('busy', Boolean(running));
  $('log').classList.toggle('untinted', !settings.tint);
  $('log').ariaBusy = String(Boolean(running));
  $('theme').textContent = 'Theme: ' + (settings.theme || 'system');
  $('greeting').textContent = $('model').value || 'grove';
  $('text').placeholder = !plain ? 'Ask something' : chat.turns.length ? 'Add to the text, or let it go on' : 'Begin a text';
  $('send').ariaLabel = $('send').title = running ? 'Stop' : 'Send';
  $('sign').setAttribute('d', running ? 'M4.5 4.5h7v7h-7z' : 'M8 13V3M3.5 7.5 8 3l4.5 4.5');
  for (const id of ['exportMarkdown', 'exportJSON', 'removeChat']) $(id).disabled = !chat.turns.length;
  $('summarise').disabled = chat.plain || chat.turns.length < 2 || Boolean(running);
  $('title').disabled = !chat.turns.length;
  if (document.activeElement !== $('title')) $('title').value = titleOf(chat);
  document.title = (titleOf(chat) ? titleOf(chat) + ' \u2013 ' : '') + 'grove';
  drawChats();
}

function drawChats() {
  $('chats').replaceChildren(...chats().map(c => {
    const title = c.title || 'Untitled', link = make('a', { href: '#' + c.id, title }, title);
    if (c.id === chat.id) link.ariaCurrent = 'page';
    return make('li', {}, link, make('button', { type: 'button', ariaLabel: 'Delete ' + title, onclick: () => forget([c]) }, '\u00d7'));
  }));
}

// draw draws the chat anew. A line parts the turns that the model is not sent from the others.
function draw() {
  $('log').replaceChildren();
  chat.turns.forEach((turn, i) => {
    if (i && i === chat.from && !chat.plain) $('log').append(make('p', { className: 'border' }, 'The model is not sent the turns above.'));
    show(turn);
  });
  state();
  follow(true);
}
