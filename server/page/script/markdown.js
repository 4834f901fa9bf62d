'use strict';
// Markdown as elements. marked parses it and highlight.js finds the parts of code; their HTML is not used. Every element is made
// here, every text of the model is a text node, and links lead to http, https and mailto alone: no text of a model is HTML.

function make(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

const limits = {
  block: 16_000, // characters that are parsed at a time; a longer block is shown as it is written
  code: 40_000, // characters of code with colours
  depth: 20, // of nesting
};

// Scopes collects the parts of code in the place of an emitter of highlight.js.
class Scopes {
  constructor() { this.all = []; this.open = []; }
  addText(text) { if (text) this.all.push([this.open.at(-1) ?? '', text]); }
  startScope(scope) { this.open.push(String(scope ?? '').split('.')[0]); }
  endScope() { this.open.pop(); }
  openNode(scope) { this.startScope(scope); }
  closeNode() { this.endScope(); }
  closeAllNodes() { this.open = []; }
  __addSublanguage(inner) { for (const part of inner.all) this.all.push(part); }
  finalize() { this.closeAllNodes(); }
  toHTML() { return ''; }
}
hljs.configure({ __emitter: Scopes });

// colours returns the parts of code as [scope, text].
function colours(code, language) {
  if (code.length > limits.code || !hljs.getLanguage(language)) return [['', code]];
  const parts = attempt(() => hljs.highlight(code, { language, ignoreIllegals: true })._emitter.all) ?? [];
  return parts.map(([, text]) => text).join('') === code ? parts : [['', code]];
}

// lex returns the blocks of a text, and undefined where the parser fails or changes the text.
function lex(text) {
  const blocks = attempt(() => marked.lexer(text));
  return blocks?.reduce((n, b) => n + b.raw.length, 0) === text.length ? blocks : undefined;
}

const entities = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '\u00a9', hellip: '\u2026', mdash: '\u2014', ndash: '\u2013', times: '\u00d7', deg: '\u00b0', rarr: '\u2192', larr: '\u2190' };
function decode(text) {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w{2,6}));/gi, (all, hex, decimal, name) => {
    if (name) return Object.hasOwn(entities, name) ? entities[name] : all;
    const point = hex ? parseInt(hex, 16) : Number(decimal);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : all;
  });
}

// target returns where a link leads, and undefined where it leads nowhere that is allowed.
function target(href) {
  const url = attempt(() => new URL(href));
  return url && ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined;
}

const blockTypes = new Set(['space', 'code', 'heading', 'table', 'hr', 'blockquote', 'list', 'def', 'paragraph', 'text']);

// A Writer draws a text that grows into an element, and tints what was drafted. verbatim: the text has no Markdown.
class Writer {
  constructor(into, verbatim) {
    Object.assign(this, { into, verbatim, source: '', drafts: [], kept: 0, fresh: [], at: 0, depth: 0 });
  }

  // add appends a text, which draw draws.
  add(text, draft) {
    if (!this.verbatim) text = text.replaceAll('\r', '');
    const from = this.source.length, last = this.drafts.at(-1);
    this.source += text;
    if (draft && last?.[1] === from) last[1] = this.source.length;
    else if (draft && text) this.drafts.push([from, this.source.length]);
  }

  // draw draws the text so far. Blocks that more text cannot change stay as they are; whole: no more text comes.
  draw(whole) {
    if (this.verbatim) {
      this.at = this.kept;
      this.put(this.into, this.source.slice(this.kept));
      this.into.normalize();
      this.kept = this.source.length;
      return;
    }
    for (const e of this.fresh) e.remove();
    this.fresh = [];
    while (this.kept < this.source.length && this.drawPart(whole));
  }

  // drawPart draws the next blocks and returns whether there are more behind those that it keeps.
  drawPart(whole) {
    const rest = this.source.length - this.kept, part = this.source.slice(this.kept, this.kept + limits.block), cut = rest > part.length;
    const blocks = lex(part), last = blocks?.findLastIndex(b => b.type !== 'space') ?? -1;
    if (blocks && last < 0) { // nothing but blank lines
      if (cut || whole) this.kept += part.length;
      return cut;
    }
    if (!blocks || (cut && last < 1)) return this.drawLong(whole, cut, Boolean(blocks));
    const keep = cut || !whole ? last : blocks.length;
    this.at = this.kept;
    blocks.forEach((b, i) => {
      if (cut && i >= keep) return;
      const end = this.at + b.raw.length, before = this.into.lastChild;
      this.block(this.into, b, i < keep);
      if (i < keep) this.kept = end;
      else for (let e = before ? before.nextSibling : this.into.firstChild; e; e = e.nextSibling) this.fresh.push(e);
      this.at = end;
    });
    return cut;
  }

  // drawLong draws a block that is too long to be parsed, or with parsed false all that the parser did not take, as it is written.
  // It takes at least limits.block characters where there are so many: the parser sees each character a bounded number of times.
  drawLong(whole, cut, parsed) {
    const rest = this.source.slice(this.kept), fence = parsed && rest.match(/^ {0,3}(`{3,}|~{3,})([^\n]*)\n/);
    const from = limits.block - 20; // the parser saw no end before
    let end = -1, after = rest.length; // of the text of the block, of the block
    if (fence) {
      const closing = new RegExp(`\\n {0,3}${fence[1][0]}{${Math.min(fence[1].length, 100)},}[ \\t]*${whole ? '(\\n|$)' : '\\n'}`, 'g');
      closing.lastIndex = Math.max(from, fence[0].length - 1);
      const found = closing.exec(rest);
      if (found) [end, after] = [found.index + 1, closing.lastIndex];
    } else if (cut) {
      const found = rest.indexOf('\n\n', from);
      if (found >= 0) end = after = found + 1;
    }
    const body = rest.slice(fence ? fence[0].length : 0, end < 0 ? undefined : end);
    this.at = this.kept + (fence ? fence[0].length : 0);
    const e = fence ? this.code(body, fence[2], false) : make('p');
    if (!fence) this.put(e, body);
    this.into.append(e);
    if (end < 0 && !whole) {
      this.fresh.push(e);
      return false;
    }
    this.kept += after;
    return true;
  }

  // put appends a text of which the source has a copy ahead; what was drafted is tinted.
  put(parent, text) {
    for (const line of text.split(/(?<=\n)/)) {
      const ahead = this.source.slice(this.at, this.at + line.length + 400).indexOf(line);
      if (ahead < 0 || !line) {
        parent.append(line);
        continue;
      }
      let from = this.at + ahead;
      const end = from + line.length;
      this.at = end;
      let low = 0, high = this.drafts.length; // the first drafts that end behind from
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.drafts[middle][1] > from) high = middle;
        else low = middle + 1;
      }
      for (; from < end && low < this.drafts.length && this.drafts[low][0] < end; low++) {
        const [start, stop] = this.drafts[low];
        if (start > from) parent.append(this.source.slice(from, start));
        from = Math.max(from, start);
        const drafted = this.source.slice(from, Math.min(stop, end)), last = parent.lastChild;
        if (last?.className === 'draft') last.firstChild.appendData(drafted);
        else parent.append(make('span', { className: 'draft' }, drafted));
        from = Math.min(stop, end);
      }
      if (from < end) parent.append(this.source.slice(from, end));
    }
  }

  // part draws a token where its copy in the source is, and leaves the place behind it.
  part(parent, token, f) {
    const ahead = this.source.slice(this.at, this.at + token.raw.length + 400).indexOf(token.raw);
    if (ahead >= 0) this.at += ahead;
    const end = this.at + token.raw.length;
    this.depth++;
    if (this.depth > limits.depth) this.put(parent, token.raw);
    else f();
    this.depth--;
    if (ahead >= 0) this.at = end;
  }

  // block draws a block; done: more text cannot change it.
  block(parent, token, done) {
    this.part(parent, token, () => {
      const add = (tag, properties, children) => {
        const e = make(tag, properties);
        parent.append(e);
        for (const t of children ?? []) {
          if (t.type === 'html' ? t.block : blockTypes.has(t.type)) this.block(e, t, done);
          else this.inline(e, [t]);
        }
        return e;
      };
      switch (token.type) {
        case 'space': case 'def': return;
        case 'hr': return add('hr');
        case 'heading': return add('h' + Math.min(6, token.depth + 1), {}, token.tokens);
        case 'paragraph': return add('p', {}, token.tokens);
        case 'text': return token.tokens ? this.inline(parent, token.tokens) : this.put(parent, decode(token.text));
        case 'blockquote': return add('blockquote', {}, token.tokens);
        case 'item': return add('li', {}, token.tokens);
        case 'code': {
          if (token.codeBlockStyle !== 'indented') this.at += token.raw.indexOf('\n') + 1;
          return parent.append(this.code(token.codeBlockStyle === 'indented' ? token.text.trimEnd() : token.text, token.lang ?? '', done));
        }
        case 'list': {
          const list = add(token.ordered ? 'ol' : 'ul', token.ordered && Number(token.start) !== 1 ? { start: Number(token.start) } : {});
          for (const item of token.items) this.block(list, { ...item, type: 'item' }, done);
          return;
        }
        case 'table': return this.table(parent, token);
        default: return this.put(add('p'), token.raw.replace(/\n+$/, '')); // HTML, and what is not known, is shown as it is written
      }
    });
  }

  inline(parent, tokens) {
    for (const t of tokens) this.part(parent, t, () => this.span(parent, t));
  }

  span(parent, t) {
    const wrap = (tag, properties = {}) => {
      const e = make(tag, properties);
      parent.append(e);
      if (t.tokens) this.inline(e, t.tokens);
      else this.put(e, t.text);
    };
    switch (t.type) {
      case 'text': return t.tokens ? this.inline(parent, t.tokens) : this.put(parent, decode(t.text));
      case 'escape': return this.put(parent, t.text);
      case 'strong': case 'em': case 'del': return wrap(t.type);
      case 'codespan': { const e = make('code'); parent.append(e); return this.put(e, t.text); }
      case 'br': return parent.append(make('br'));
      case 'checkbox': return parent.append(t.checked ? '\u2611 ' : '\u2610 ');
      case 'link': {
        const href = target(t.href);
        return href ? wrap('a', { href, title: href, target: '_blank', rel: 'noopener noreferrer nofollow' }) : this.put(parent, t.raw);
      }
      case 'image': { // pictures are not loaded: a model could tell others by their addresses what was said
        const href = target(t.href), text = t.text || 'picture';
        return href ? parent.append(make('a', { href, title: href, target: '_blank', rel: 'noopener noreferrer nofollow' }, `[${text}]`)) : this.put(parent, t.raw);
      }
      case 'html': if (/^<br\s*\/?>$/i.test(t.raw)) return parent.append(make('br'));
    }
    return this.put(parent, t.raw);
  }

  table(parent, token) {
    const row = (cells, tag) => make('tr', {}, ...cells.map((cell, i) => {
      const e = make(tag, tag === 'th' ? { scope: 'col' } : {});
      if (token.align[i]) e.className = token.align[i];
      this.inline(e, cell.tokens);
      return e;
    }));
    const head = make('thead', {}, row(token.header, 'th')), body = make('tbody', {}, ...token.rows.map(r => row(r, 'td')));
    parent.append(make('div', { className: 'table', tabIndex: 0, role: 'group', ariaLabel: 'Table' }, make('table', {}, head, body)));
  }

  // code returns a block of code with its language and a button that copies it.
  code(text, info, done) {
    const language = info.trim().split(/[\s,{]/)[0].slice(0, 30), inner = make('code');
    for (const [scope, part] of done ? colours(text, language) : [['', text]]) {
      const into = scope ? make('span', { className: 'h-' + scope.replace(/[^\w-]/g, '') }) : inner;
      this.put(into, part);
      if (scope) inner.append(into);
    }
    const copy = make('button', { type: 'button', ariaLabel: 'Copy code', onclick: e => copyText(text, e.currentTarget) }, 'Copy');
    return make('div', { className: 'code' }, make('div', { className: 'bar' }, make('span', {}, language), copy), make('pre', { tabIndex: 0, role: 'group', ariaLabel: 'Code' }, inner));
  }
}

// copyText puts a text into the clipboard and says so on the button. Pages that did not come over https or from this machine have no
// navigator.clipboard.
async function copyText(text, button) {
  const old = button.textContent;
  const done = await attempt(() => navigator.clipboard.writeText(text))?.then(() => true, () => false) || copyBySelection(text);
  button.textContent = done ? 'Copied' : 'Copying is not allowed';
  setTimeout(() => { button.textContent = old; }, 1500);
}
function copyBySelection(text) {
  const field = make('textarea', { value: text, className: 'unseen', ariaHidden: 'true' }), focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = Boolean(attempt(() => document.execCommand('copy')));
  field.remove();
  focused?.focus();
  return done;
}
