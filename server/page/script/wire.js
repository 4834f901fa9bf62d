'use strict';
// Requests to the page's own server.

// A Problem is an error whose message is for the reader. status 0: there was no answer.
class Problem extends Error {
  constructor(message, status = 0, body = {}, retry = 0) { super(message); Object.assign(this, { status, body, retry }); }
}

// patience is how long and how often the page waits for a server that is busy or loads.
const patience = { second: 1000, busy: 6, loading: 60, longest: 30 };

const lost = 'The connection was lost before the answer ended.';

async function call(path, request) {
  const key = attempt(() => store.session.getItem('grove.key'));
  const headers = { ...(request && { 'Content-Type': 'application/json' }), ...(key && { Authorization: 'Bearer ' + key }) };
  const answer = await fetch(path, { ...request, headers }).catch(e => {
    throw e.name === 'AbortError' ? e : new Problem('There is no connection to the server.');
  });
  if (answer.ok) return answer;
  const parsed = await answer.json().catch(() => null);
  const body = isObject(parsed?.error) ? parsed.error : {};
  const message = typeof body.message === 'string' && body.message ? body.message : `The server answers with status ${answer.status}.`;
  throw new Problem(message, answer.status, body, Number(answer.headers.get('Retry-After')) || 0);
}

// passes reports whether waiting may help.
const passes = e => e instanceof Problem && (e.status === 429 || (e.status === 503 && e.body.code !== 'model_failed'));

// callPatiently calls again while the server is busy or loads; it tells the reader what it waits for.
async function callPatiently(path, request, tell) {
  for (let tried = 1; ; tried++) {
    try {
      return await call(path, request);
    } catch (e) {
      const most = e.status === 429 ? patience.busy : patience.loading;
      if (!passes(e) || tried >= most) throw e;
      for (let left = Math.min(Math.max(e.retry || 2 ** (tried - 1), 1), patience.longest); left > 0; left--) {
        tell(`${e.message}: trying again in ${left} s (${tried} of ${most})`);
        await pause(request.signal);
      }
      tell('');
    }
  }
}
const pause = signal => new Promise((resolve, reject) => {
  if (signal.aborted) return reject(signal.reason);
  const end = setTimeout(() => { signal.removeEventListener('abort', stop); resolve(); }, patience.second);
  const stop = () => { clearTimeout(end); reject(signal.reason); };
  signal.addEventListener('abort', stop, { once: true });
});

// events yields the data of server-sent events. The longest line has maxLine characters.
const maxLine = 4_000_000;
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    if (rest.length > maxLine) throw new Problem(`The server sends a line of more than ${maxLine} characters.`, -1);
    for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim();
  }
}

// larger says how the model gets a larger context.
function larger() {
  const { context, trained } = model;
  if (!context) return 'start the server with a larger context (grove serve -c TOKENS).';
  if (trained && context >= trained) return `take a model for longer texts (this one was trained for ${context} tokens).`;
  return `start the server with a larger context (it holds ${context} tokens now; grove serve -c ${Math.min(2 * context, trained || Infinity)}).`;
}

// hint says what the reader can do about a problem. many: there are older turns to drop.
function hint(e, many = false) {
  const { code } = e.body;
  switch (true) {
    case code === 'context_length_exceeded':
      return (many ? 'Drop the oldest turns, start anew with a summary' : 'Shorten the question') + ', or ' + larger();
    case e.fault === 'template': return 'Go on with plain completion, or start the server with a template (grove serve --chat-template chatml).';
    case e.status === 401: return 'Enter the key below, then try again.';
    case e.status === 403: return 'Open the page at the address that grove serve printed, or allow this one there.';
    case code === 'model_not_found': return 'Choose another model at the top; its list is new.';
    case e.status === 413: return 'Start a new chat, or drop the oldest turns.';
    case e.status === 429: return 'Other requests take all places. Try again in a while.';
    case code === 'model_failed': return "Choose another model, or read the server's log.";
    case e.status === 503: return 'The server does not get ready. Look at its log, then try again.';
    case e.status === 504: return 'Ask for a shorter answer.';
    case e.status >= 500: return "The server's log has the cause.";
    case e.status >= 400: return 'Look at the settings and the message, then try again.';
    case e.status === 0 && !code: return 'See whether grove serve runs and this device reaches it, then try again.';
  }
  return '';
}
