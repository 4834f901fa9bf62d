'use strict';
// From a chat to a request, and from the stream of an answer to a turn.

// model is what the page knows of the model that is chosen: its defaults, the tokens that its context holds, and those that it can hold at
// most; 0: not known.
const model = { name: '', context: 0, trained: 0, defaults: {}, diffusion: false };

// messagesOf returns the turns before end as messages. A question that got no answer is left out, but for the last; thoughts are not
// sent back.
function messagesOf(c, end = c.turns.length) {
  const list = settings.system.trim() ? [{ role: 'system', content: settings.system }] : [];
  for (const turn of c.turns.slice(c.from, end)) {
    if (said(turn)) list.push({ role: turn.role, content: turn.role === 'user' ? said(turn).trim() : said(turn) });
    else if (list.at(-1)?.role === 'user') list.pop();
  }
  return list;
}

// samplingOf returns the sampling fields of a request: the reader's settings, else the defaults that the server gives for the model.
function samplingOf(turn) {
  const all = {};
  for (const name of Object.keys(sampling)) {
    const value = settings.sampling[name] ?? model.defaults[name];
    if (value !== undefined && inRange(name, value)) all[name] = value;
  }
  delete all.seed;
  if (turn.seed !== undefined) all.seed = turn.seed;
  return all;
}

// requestOf returns the path and the body that ask for a turn, the last of its chat. goOn: the model goes on with the text of the turn.
function requestOf(c, turn, { goOn = false, list = null, most = settings.most } = {}) {
  const common = {
    model: $('model').value, method: $('method').value || 'auto', ...samplingOf(turn), max_tokens: most,
    stream: true, stream_options: { include_usage: true }, timings_per_token: true,
    ...(model.diffusion && { diffusion: { progress: true } }),
  };
  if (c.plain) return ['v1/completions', { ...common, prompt: textOf(c).slice(c.from) }];
  const messages = list ?? messagesOf(c, goOn ? c.turns.length : c.turns.length - 1);
  return ['v1/chat/completions', { ...common, messages, ...(goOn && { continue_final_message: true, add_generation_prompt: false }) }];
}

// receive reads the stream of an answer into a turn. changed is called with each new text, and with the canvas of a diffusion model behind it, a list of texts and numbers of masks. A chunk with which the count of accepted
// drafts grew holds one.
async function receive(body, turn, most, changed) {
  let accepted = 0, draft = false, finish = '', here = 0;
  const began = performance.now();
  const { tokens = 0, accepted: acceptedBefore = 0, drafted = 0, rounds = 0 } = turn.stats ?? {}; // where an answer goes on
  for await (const data of events(body)) {
    if (data === '[DONE]') {
      if (finish === 'length') turn.cut = here < most || (model.context && turn.stats?.context >= model.context) ? 'context' : 'limit';
      return;
    }
    const part = JSON.parse(data), choice = part.choices?.[0], t = part.timings;
    if (part.error) throw new Problem(String(part.error.message ?? 'The answer ended with an error'), -1, isObject(part.error) ? part.error : {});
    if (isObject(t)) {
      draft ||= t.draft_n_accepted > accepted;
      accepted = Number(t.draft_n_accepted) || 0;
      here = Number(t.predicted_n) || 0;
      turn.stats = takeTurn({ role: 'assistant', runs: [], stats: {
        tokens: tokens + here, perSecond: t.predicted_per_second, drafted: drafted + t.draft_n, accepted: acceptedBefore + accepted,
        rounds: rounds + t.rounds, prompt: t.prompt_n, cached: t.cache_n, promptPerSecond: t.prompt_per_second, promptMS: t.prompt_ms,
        grade: t.grade, model: part.model, method: $('method').value, context: turn.stats?.context,
      } }).stats;
    }
    if (isObject(part.usage)) {
      if (turn.stats) turn.stats.context = (Number(part.usage.prompt_tokens) || 0) + (Number(part.usage.completion_tokens) || 0);
    }
    const thought = choice?.delta?.reasoning_content, text = choice?.delta?.content || choice?.text;
    if (typeof thought === 'string' && thought) {
      turn.thoughts = (turn.thoughts ?? '') + thought;
      turn.thinking = performance.now() - began;
      draft = false;
    }
    if (typeof text === 'string' && text) {
      addRun(turn.runs, text, draft);
      changed(text, draft);
      draft = false;
    } else {
      changed('', false, Array.isArray(choice?.canvas) ? choice.canvas : undefined);
    }
    finish = choice?.finish_reason ?? finish;
  }
  throw new Problem(lost);
}

// canDrop reports whether a chat can send less.
const canDrop = c => c.plain ? textOf(c).length - c.from > 100 : c.turns.findLastIndex(t => t.role === 'user') > c.from;

// dropOldest makes a chat send half of what it sends: whole pairs of turns, and whole lines in plain completion where there are some.
function dropOldest(c) {
  if (c.plain) {
    const text = textOf(c), middle = c.from + Math.ceil((text.length - c.from) / 2), line = text.indexOf('\n', middle) + 1;
    c.from = line > 0 && line < middle + (text.length - middle) / 2 ? line : middle;
    return;
  }
  const last = c.turns.findLastIndex(t => t.role === 'user');
  const length = from => c.turns.slice(from).reduce((n, t) => n + said(t).length, 0);
  const most = length(c.from) / 2;
  let from = c.from;
  for (let i = c.from + 1; i <= last; i++) {
    if (c.turns[i].role !== 'user') continue;
    from = i;
    if (length(i) <= most) break;
  }
  c.from = from;
}

// shorten drops the oldest messages of a conversation behind the system message until it has at most so many characters, and cuts what is
// left.
function shorten(list, characters) {
  const system = list[0]?.role === 'system' ? list.slice(0, 1) : [];
  let rest = list.slice(system.length);
  const length = () => rest.reduce((n, m) => n + m.content.length, 0);
  while (rest.length > 2 && length() > characters) rest = rest.slice(2);
  for (const m of rest) {
    const share = Math.max(1, Math.floor(characters / rest.length));
    if (length() > characters && m.content.length > share) m.content = m.content.slice(0, share);
  }
  return [...system, ...rest];
}
