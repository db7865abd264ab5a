// Draws every rank over time from the page's own data. Texts go in as texts: nothing here makes markup of them.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const host = document.getElementById('picture');
  if (!host || !data.folds.length) return;

  const STAGES = [['starting', 'starting'], ['loading', 'loading, compiling'], ['computing', 'computing'], ['saving', 'saving'],
    ['collective', 'in a collective'], ['waiting', 'waiting in vain'], ['errored', 'failed, not gone yet']];
  const KINDS = [['GPU or bus error', 'M0-7 7 0 0 7-7 0z', ''], ['out of memory', 'M-6-6h12v12h-12z', ''],
    ['time-out', 'M-6-7h12l-4.500 7 4.500 7h-12l4.500-7z', ''], ['exception', 'M0-7 7.500 6h-15z', ''],
    ['exit or signal', 'M-6.500-4-4-6.500 0-2.500 4-6.500 6.500-4 2.500 0 6.500 4 4 6.500 0 2.500-4 6.500-6.500 4-2.500 0z', ''],
    ['stopped', 'M-6.500-6h4.500v12h-4.500zM2-6h4.500v12h-4.500z', 'calm'], ['complaint', 'M0-4a4 4 0 1 1 0 8 4 4 0 1 1 0-8z', 'calm'],
    ['notice', 'M0-6 5 4h-10z', 'calm'], ['ended well', 'M-7 0-4.500-2.500-2 0 5-6 7.500-3.500-2 6z', 'good']];
  const ENDS = ['', 'ended well', 'ended with an exit code', 'ended by a signal', 'ended by an exception', 'gave up waiting', 'was stopped'];
  const LANE = {of: 0, name: 1, host: 2, pid: 3, culprit: 4, why: 5, first: 6, last: 7, ended: 8, how: 9, left: 10, bars: 11, marks: 12};
  const CHUNK = 256;

  const make = (tag, className, ...content) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...content);
    return element;
  };
  const svg = (tag, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const shape = (kind) => {
    const root = svg('svg', {viewBox: '-9 -9 18 18', 'aria-hidden': 'true'});
    root.append(svg('path', {class: 'shape', d: KINDS[kind][1]}));
    return root;
  };

  // ---- moments ----
  const moments = new Map();
  for (let i = 0, id = 0, t = 0; i < data.id.length; ++i) {
    id += data.id[i];
    t += data.t[i];
    moments.set(id, {id, t, how: data.how[i], input: data.in[i], line: data.ln[i]});
  }
  const pad = (number, width) => String(number).padStart(width, '0');
  const clock = (t, fine) => {
    const at = new Date((data.base + t) / 1000);
    const rest = Math.round((data.base + t) / 1000) % 1000;
    return `${pad(at.getUTCHours(), 2)}:${pad(at.getUTCMinutes(), 2)}:${pad(at.getUTCSeconds(), 2)}` + (fine && rest ? '.' + pad(rest, 3) : '');
  };
  const day = (t) => {
    const at = new Date((data.base + t) / 1000);
    const date = `${pad(at.getUTCMonth() + 1, 2)}-${pad(at.getUTCDate(), 2)}`;
    return data.date === 2 ? `${at.getUTCFullYear()}-${date}` : data.date === 1 ? date : '';
  };
  const when = (id) => {
    const m = moments.get(id);
    if (!data.clock || m.how === 'b') return `line ${m.line}`;
    if (m.how === 'a') return 'before all lines of its file that have a time';
    const time = clock(m.t, true);
    return m.how === 'p' ? time : m.how === 'c' ? `${time} (from the time-out)` : `near ${time}, no time of its own`;
  };
  const place = (id) => `${data.inputs[moments.get(id).input]}:${moments.get(id).line}`;
  const textOf = (id) => {
    const text = data.texts[id];
    if (!text) return '';
    const numbers = text[1].split(' ');
    let next = 0;
    return data.forms[text[0]].replace(/\u0001/g, () => numbers[next++] ?? '');
  };
  const lasting = (us) => {
    const s = us / 1e6;
    return s < 1 ? `${Math.round(us / 1000)} ms` : s < 120 ? `${+s.toFixed(1)} s` : s < 7200 ? `${Math.round(s / 60)} min` : s < 172800 ? `${+(s / 3600).toFixed(1)} h` : `${Math.round(s / 86400)} days`;
  };

  // ---- lanes ----
  const rows = (flat, width) => {
    const out = [];
    for (let i = 0; i < flat.length; i += width) out.push(flat.slice(i, i + width));
    return out;
  };
  const lanes = data.lanes.map((lane, number) => ({
    number, rank: typeof lane[LANE.name] === 'number' ? lane[LANE.name] : null, of: lane[LANE.of],
    name: lane[LANE.of] === 0 ? `rank ${lane[LANE.name]}` : lane[LANE.of] === 1 ? `pid ${lane[LANE.pid]}` : (lane[LANE.of] === 4 ? 'GPU ' : '') + lane[LANE.name],
    host: lane[LANE.host] < 0 ? '' : data.hosts[lane[LANE.host]], pid: lane[LANE.pid], culprit: !!lane[LANE.culprit],
    why: lane[LANE.why] < 0 ? '' : data.words[lane[LANE.why]], first: lane[LANE.first], last: lane[LANE.last], ended: lane[LANE.ended],
    how: lane[LANE.how], left: lane[LANE.left],
    bars: rows(lane[LANE.bars], 5).map(([stage, word, begin, end, open]) => ({stage, what: data.words[word], begin, end, open: !!open})),
    marks: rows(lane[LANE.marks], 4).map(([kind, word, at, cause]) => ({kind, what: data.words[word], at, cause: !!cause})),
  }));
  let next = 0;
  const folds = data.folds.map(([who, count, shown]) => ({who, count, lanes: lanes.slice(next, next += shown), open: false}));
  const laneOf = new Map();
  for (const lane of lanes)
    for (const id of [...lane.marks.map((m) => m.at), ...lane.bars.flatMap((b) => [b.begin, b.end]), lane.last, lane.first])
      if (id >= 0 && !laneOf.has(id)) laneOf.set(id, lane);

  // ---- scales: where a moment stands, from 0 to 1 ----
  // Only what stands for a fold sets the pace; a thousand alike ranks in between do not.
  const paced = new Set(data.links.flatMap(([from, to]) => [from, to]));
  for (const {lanes: [lane]} of folds)
    for (const id of [...lane.marks.map((m) => m.at), ...lane.bars.flatMap((b) => [b.begin, b.end]), lane.first, lane.last])
      if (id >= 0) paced.add(id);
  const anchors = [...paced].sort((a, b) => a - b).map((id) => moments.get(id));
  const between = (keys, places, key) => {
    let low = 0, high = keys.length - 1;
    if (high < 0) return 0.5;
    if (key <= keys[0]) return places[0];
    if (key >= keys[high]) return places[high];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (keys[middle] <= key) low = middle; else high = middle;
    }
    const part = keys[high] === keys[low] ? 0 : (key - keys[low]) / (keys[high] - keys[low]);
    return places[low] + part * (places[high] - places[low]);
  };
  const spread = (keys, gap) => {
    const places = [0];
    for (let i = 1; i < keys.length; ++i) places.push(places[i - 1] + gap(keys[i] - keys[i - 1]));
    const whole = places[places.length - 1] || 1;
    return places.map((x) => 0.02 + 0.96 * x / whole);
  };
  const times = [...new Set(anchors.map((m) => m.t))], dated = [...new Set(anchors.filter((m) => m.how !== 'a').map((m) => m.t))], order = anchors.map((m) => m.id);
  const SCALES = {
    time: {name: 'time, quiet stretches shortened', keys: times, places: spread(times, (gap) => Math.log1p(gap / 2e5)), key: (m) => m.t},
    even: {name: 'time, to scale', keys: times, places: spread(times, (gap) => gap), key: (m) => m.t},
    order: {name: 'order of lines', keys: order, places: spread(order, () => 1), key: (m) => m.id},
  };
  let scale = data.timed ? SCALES.time : SCALES.order, zoom = 1, query = '';
  const at = (id) => between(scale.keys, scale.places, scale.key(moments.get(id)));
  const percent = (x) => `${(100 * x).toFixed(3)}%`;

  // ---- the frame ----
  const filter = make('input');
  Object.assign(filter, {type: 'search', placeholder: 'Filter: rank, host, words', ariaLabel: 'Filter lanes by rank, host or words'});
  const choice = make('select');
  choice.ariaLabel = 'What the axis shows';
  for (const [key, {name}] of Object.entries(SCALES)) {
    if (key !== 'order' && !data.clock) continue;
    const option = make('option', '', name);
    option.value = key;
    option.selected = SCALES[key] === scale;
    choice.append(option);
  }
  const button = (label, title, act) => {
    const element = make('button', '', label);
    Object.assign(element, {type: 'button', title, ariaLabel: title});
    element.addEventListener('click', act);
    return element;
  };
  const found = make('output');
  const axisLabel = make('label', '', 'Axis: ', choice);
  const tools = make('div', 'tools', filter, axisLabel, button('−', 'Narrower', () => zoomTo(zoom / 2)), button('+', 'Wider', () => zoomTo(zoom * 2)),
    button('Open all', 'Open or close all folds', () => openAll()), button('?', 'Keys', () => help.showModal()), found);
  const ticks = make('div', 'ticks'), axisHead = make('div', 'head'), body = make('div');
  const axis = make('div', 'axis', axisHead, ticks);
  const arrows = svg('svg', {class: 'arrows', 'aria-hidden': 'true'});
  const sheet = make('div', 'sheet', axis, body, arrows);
  const frame = make('div', 'frame', sheet);
  frame.setAttribute('role', 'group');
  frame.ariaLabel = 'Lanes over time. Arrow keys move, Enter opens a fold or goes to the line.';
  const hint = make('div', 'hint');
  hint.hidden = true;
  const help = make('dialog');
  const keys = make('dl');
  for (const [key, what] of [['Tab', 'into the picture and out of it'], ['← →', 'to the next mark or stretch of a lane'], ['↑ ↓', 'to the next lane'],
    ['Enter', 'opens a fold; on a mark, goes to its line'], ['Esc', 'back to the mark; clears the filter'], ['/', 'to the filter'], ['+ −', 'wider, narrower'], ['?', 'these keys']])
    keys.append(make('dt', '', make('kbd', '', key)), make('dd', '', what));
  help.append(make('h2', '', 'Keys'), keys, button('Close', 'Close', () => help.close()));
  help.ariaLabel = 'Keys';

  const legend = make('ul', 'legend');
  const usedStages = new Set(lanes.flatMap((lane) => lane.bars.map((b) => b.stage))), usedKinds = new Set(lanes.flatMap((lane) => lane.marks.map((m) => m.kind)));
  STAGES.forEach(([style, name], i) => {
    if (usedStages.has(i)) legend.append(make('li', '', make('span', `swatch ${style}`), name));
  });
  KINDS.forEach(([name, , style], i) => {
    if (usedKinds.has(i)) legend.append(make('li', style, shape(i), name));
  });
  if (lanes.some((lane) => lane.marks.some((m) => 'na'.includes(moments.get(m.at).how)))) {
    const example = make('li', 'near-time', shape(0), 'hollow: its line has no time, that of a line near it');
    legend.append(example);
  }

  // ---- drawing ----
  const item = (className, label, id) => {
    const element = make('button', className);
    Object.assign(element, {type: 'button', tabIndex: -1, ariaLabel: label});
    element.dataset.moment = id;
    return element;
  };
  const describe = (lane, thing, fold) => {
    const who = fold && fold.count > 1 ? `${fold.who}, as ${lane.name}` : lane.name;
    if (thing.kind !== undefined) return [`${who}: ${thing.what}`, `${when(thing.at)} · ${place(thing.at)}`, textOf(thing.at)];
    const [from, to] = [moments.get(thing.begin), moments.get(thing.end)];
    const long = data.clock && from.how !== 'b' && from.how !== 'a' && to.t > from.t ? `, ${lasting(to.t - from.t)}` : '';
    return [`${who}: ${STAGES[thing.stage][1]}${thing.what && thing.what !== STAGES[thing.stage][0] ? ` – ${thing.what}` : ''}`,
      `${when(thing.begin)} to ${when(thing.end)}${long}${thing.open ? ', no end of it is told' : ''} · ${place(thing.begin)}`, textOf(thing.begin)];
  };
  const drawTrack = (row) => {
    const {lane, fold, track} = row;
    const things = [];
    track.replaceChildren();
    if (lane.first >= 0) {
      const alive = make('div', 'alive'), end = make('div', lane.ended >= 0 ? 'gone' : 'silent');
      alive.style.left = percent(at(lane.first));
      alive.style.width = percent(Math.max(0, at(lane.last) - at(lane.first)));
      end.style.left = percent(at(lane.last));
      track.append(end, alive);
    }
    for (const bar of lane.bars) {
      const element = item(`bar ${STAGES[bar.stage][0]}${bar.open ? ' open' : ''}`, describe(lane, bar, fold).join('. '), bar.begin);
      element.style.left = percent(at(bar.begin));
      element.style.width = `max(5px, ${percent(at(bar.end) - at(bar.begin))})`;
      if (at(bar.end) - at(bar.begin) > 0.06) element.append(make('span', '', bar.stage === 6 ? 'failed' : bar.what));
      track.append(element);
      things.push({element, x: at(bar.begin), thing: bar});
    }
    // What matters lies above what does not.
    for (const mark of [...lane.marks].sort((a, b) => (KINDS[a.kind][2] === '') - (KINDS[b.kind][2] === ''))) {
      const near = 'na'.includes(moments.get(mark.at).how) ? ' near-time' : '';
      const element = item(`mark ${KINDS[mark.kind][2]}${near}${mark.cause ? ' first-cause' : ''}`, describe(lane, mark, fold).join('. '), mark.at);
      element.style.left = percent(at(mark.at));
      element.append(shape(mark.kind));
      track.append(element);
      things.push({element, x: at(mark.at) + 1e-6, thing: mark});
    }
    things.sort((a, b) => a.x - b.x);
    row.things = things;
    for (const {element, thing} of things) {
      element.about = () => describe(lane, thing, fold);
      element.row = row;
    }
  };
  let shownRows = [];
  const drawRow = (lane, fold, isMember) => {
    const head = make('div', 'head'), track = make('div', 'track');
    const many = !isMember && fold.count > 1;
    const name = make(many ? 'button' : 'span', 'name', many ? fold.who : lane.name);
    name.tabIndex = -1;
    const row = {lane, fold, isMember, name, track, things: []};
    if (many) {
      name.type = 'button';
      name.setAttribute('aria-expanded', String(fold.open));
      name.addEventListener('click', () => toggle(fold));
    }
    const about = [many ? `${fold.count} alike` : '', many && new Set(fold.lanes.map((l) => l.host)).size > 1 ? '' : lane.of === 3 ? '' : lane.host,
      !many && lane.pid && lane.of !== 1 ? `pid ${lane.pid}` : '', lane.first < 0 && !lane.left ? 'no line of it was given' : '',
      lane.of === 2 ? 'lines that name no rank' : '', lane.how && !lane.marks.length ? ENDS[lane.how] : '', lane.left ? `${lane.left} more marks in --format json` : ''];
    head.append(name, make('small', '', [lane.why, about.filter(Boolean).join(' · ')].filter(Boolean).join(' · ')));
    row.element = make('div', `lane${lane.culprit ? ' culprit' : ''}${isMember ? ' member' : ''}`, head, track);
    row.element.row = row;
    name.row = row;
    drawTrack(row);
    return row;
  };
  const matches = (lane, words) => words.every((word) => {
    const range = /^(\d+)(?:-(\d+))?$/.exec(word);
    if (range && lane.rank !== null && lane.rank >= +range[1] && lane.rank <= +(range[2] ?? range[1])) return true;
    if (range && !range[2] && lane.rank !== null) return lane.pid === +word;
    lane.words ??= [lane.name, lane.host, lane.why, `pid ${lane.pid}`, ENDS[lane.how], ...lane.bars.flatMap((b) => [b.what, STAGES[b.stage][1]]),
      ...lane.marks.flatMap((m) => [m.what, KINDS[m.kind][0], textOf(m.at), data.inputs[moments.get(m.at).input]])].join('\n').toLowerCase();
    return lane.words.includes(word);
  });
  const draw = () => {
    const words = query.toLowerCase().replace(/\branks?\b/g, ' ').split(/[\s,]+/).filter(Boolean);
    shownRows = [];
    const content = [];
    let count = 0, whole = 0;
    for (const fold of folds) {
      const hit = words.length ? fold.lanes.filter((lane) => matches(lane, words)) : fold.lanes;
      whole += fold.count;
      if (!hit.length) continue;
      count += words.length ? hit.length : fold.count;
      const add = (row) => { shownRows.push(row); content.push(row.element); };
      if (words.length && hit.length < fold.lanes.length) {
        for (const lane of hit.slice(0, CHUNK)) add(drawRow(lane, fold, true));
        continue;
      }
      add(drawRow(fold.lanes[0], fold, false));
      if (!fold.open || fold.count < 2) continue;
      const upTo = fold.upTo ?? CHUNK;
      for (const lane of fold.lanes.slice(0, upTo)) add(drawRow(lane, fold, true));
      if (fold.lanes.length > upTo)
        content.push(make('div', '', (() => {
          const more = button(`${Math.min(CHUNK, fold.lanes.length - upTo)} more of ${fold.lanes.length - upTo}`, 'Show more ranks', () => { fold.upTo = upTo + CHUNK; draw(); });
          more.className = 'rest';
          return more;
        })()));
    }
    body.replaceChildren(...content);
    found.value = words.length ? `${count} of ${whole} lanes` : '';
    if (shownRows.length) shownRows[0].name.tabIndex = 0;
    layOut();
  };
  const layOut = () => {
    const width = ticks.clientWidth, seen = [];
    const labels = [];
    if (scale === SCALES.order) {
      labels.push([0.02, 'first line'], [0.98, 'last line']);
    } else {
      if (dated.length < times.length && times[0] < dated[0]) { labels.push([between(scale.keys, scale.places, times[0]), 'no times']); seen.push(labels[0][0]); }
      const candidates = scale === SCALES.even ? evenTicks(width) : dated;
      for (const t of candidates) {
        const x = between(scale.keys, scale.places, t);
        if (seen.every((other) => Math.abs(other - x) * width > (days > 1 ? 112 : 88)) && x * width < width - (days > 1 ? 92 : 60)) { seen.push(x); labels.push([x, tickOf(t, labels)]); }
      }
    }
    ticks.replaceChildren(...labels.map(([x, text], i) => {
      const tick = make('span', '', text);
      if (scale === SCALES.order && i === 1) tick.style.right = percent(1 - x); else tick.style.left = percent(x);
      return tick;
    }));
    axisHead.textContent = scale === SCALES.order ? 'in order, no times' : [days > 1 ? '' : day(dated[0] ?? 0), data.zone ? 'UTC' : ''].filter(Boolean).join(' ');
    drawArrows();
  };
  const days = new Set(dated.map(day)).size;
  const tickOf = (t, labels) => {
    const date = days > 1 ? `${day(t).slice(-5)} ` : '', coarse = date + clock(t, false);
    return labels.some(([, text]) => text === coarse) ? date + clock(t, true) : coarse;
  };
  const evenTicks = (width) => {
    const whole = (dated[dated.length - 1] - dated[0]) / 1e6 || 1, steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800];
    const step = (steps.find((s) => whole / s * 90 < width) ?? 2592000) * 1e6, out = [];
    for (let t = Math.ceil((data.base + dated[0]) / step) * step - data.base; t <= dated[dated.length - 1]; t += step) out.push(t);
    return out;
  };
  const drawArrows = () => {
    arrows.replaceChildren();
    if (query) return;
    const defs = svg('defs', {}), head = svg('marker', {id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto'});
    head.append(svg('path', {class: 'tip', d: 'M0 0 8 4 0 8z'}));
    defs.append(head);
    arrows.append(defs);
    const box = sheet.getBoundingClientRect(), trackBox = ticks.getBoundingClientRect();
    const rowFor = (lane) => shownRows.find((row) => row.lane === lane && (row.isMember || row.fold.count < 2)) ?? shownRows.find((row) => !row.isMember && row.fold.lanes.includes(lane));
    const drawn = new Set();
    for (const [from, to] of data.links) {
      const a = laneOf.get(from) && rowFor(laneOf.get(from)), b = laneOf.get(to) && rowFor(laneOf.get(to));
      if (!a || !b || (a === b && Math.abs(at(from) - at(to)) * trackBox.width < 24)) continue;
      const point = (row, id) => {
        const track = row.track.getBoundingClientRect();
        return [track.left - box.left + at(id) * track.width, track.top - box.top + track.height / 2];
      };
      const [x1, y1] = point(a, from), [x2, y2] = point(b, to);
      const down = Math.sign(y2 - y1), lift = a === b ? -16 : 0;
      const key = [x1, y1, x2, y2].map(Math.round).join();
      if (drawn.has(key)) continue;
      drawn.add(key);
      const [sy, ey] = [y1 + (a === b ? -10 : 13 * down), y2 - (a === b ? 10 : 13 * down)], bend = Math.max(18, Math.abs(ey - sy) / 2);
      arrows.append(svg('path', {class: 'link', 'marker-end': 'url(#tip)',
        d: a === b ? `M${x1} ${sy}C${x1 + 12} ${sy + lift} ${x2 - 12} ${ey + lift} ${x2} ${ey}` : `M${x1} ${sy}C${x1} ${sy + bend * down} ${x2} ${ey - bend * down} ${x2} ${ey}`}));
    }
  };

  // ---- what the reader does ----
  const toggle = (fold) => {
    fold.open = !fold.open;
    draw();
    shownRows.find((row) => row.fold === fold && !row.isMember)?.name.focus();
  };
  const openAll = () => {
    const open = !folds.some((fold) => fold.open);
    for (const fold of folds) fold.open = open && fold.count > 1;
    draw();
  };
  const zoomTo = (wanted) => {
    zoom = Math.min(16, Math.max(1, wanted));
    sheet.style.width = `${100 * zoom}%`;
    layOut();
  };
  const showHint = (element) => {
    const [title, where, text] = element.about();
    hint.replaceChildren(make('strong', '', title), document.createElement('br'), make('span', '', where), ...(text ? [make('code', '', text)] : []));
    hint.hidden = false;
    const box = element.getBoundingClientRect(), own = hint.getBoundingClientRect();
    hint.style.left = `${Math.max(8, Math.min(box.left, innerWidth - own.width - 8))}px`;
    hint.style.top = `${box.bottom + own.height + 12 < innerHeight ? box.bottom + 8 : Math.max(8, box.top - own.height - 8)}px`;
  };
  const hideHint = () => { hint.hidden = true; };
  let cameFrom = null;
  const goToLine = (element) => {
    const id = +element.dataset.moment, m = moments.get(id);
    let line = document.getElementById(`l${m.input}-${m.line}`);
    if (!line) {
      line = make('div', 'line context', make('span', 'place', place(id)), make('code', '', textOf(id) || 'The line itself is not on this page: look it up in the file.'));
      line.id = `l${m.input}-${m.line}`;
      line.tabIndex = -1;
      const section = document.getElementById('lines');
      section.hidden = false;
      section.querySelector('ol').append(make('li', '', line));
    }
    for (let up = line; up; up = up.parentElement) if (up.tagName === 'DETAILS') up.open = true;
    document.querySelectorAll('.target').forEach((other) => other.classList.remove('target'));
    line.classList.add('target');
    line.scrollIntoView({block: 'center'});
    (line.querySelector('summary') ?? line).focus({preventScroll: true});
    hideHint();
    cameFrom = {moment: id, row: element.row};
  };
  const goBack = () => {
    if (!cameFrom) return false;
    document.querySelectorAll('.target').forEach((other) => other.classList.remove('target'));
    const row = shownRows.find((r) => r.lane === cameFrom.row.lane && r.isMember === cameFrom.row.isMember);
    const thing = row?.things.find(({element}) => +element.dataset.moment === cameFrom.moment);
    cameFrom = null;
    (thing?.element ?? row?.name ?? filter).focus();
    return true;
  };
  const focusOn = (element) => {
    frame.querySelectorAll('[tabindex="0"]').forEach((other) => { other.tabIndex = -1; });
    element.tabIndex = 0;
    element.focus({preventScroll: true});
    element.scrollIntoView({block: 'nearest', inline: 'nearest'});
  };
  frame.addEventListener('click', (event) => {
    const element = event.target.closest('[data-moment]');
    if (element) goToLine(element);
  });
  frame.addEventListener('mouseover', (event) => {
    const element = event.target.closest('[data-moment]');
    if (element) showHint(element); else hideHint();
  });
  frame.addEventListener('mouseleave', hideHint);
  frame.addEventListener('scroll', hideHint);
  frame.addEventListener('focusin', (event) => {
    if (event.target.about) showHint(event.target); else hideHint();
  });
  frame.addEventListener('focusout', hideHint);
  frame.addEventListener('keydown', (event) => {
    const row = event.target.row;
    if (!row || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = [row.name, ...row.things.map(({element}) => element)], here = all.indexOf(event.target);
    const vertical = (step) => {
      const other = shownRows[shownRows.indexOf(row) + step];
      if (!other) return;
      if (here <= 0 || !other.things.length) return focusOn(other.name);
      const x = row.things[here - 1].x;
      focusOn(other.things.reduce((best, thing) => (Math.abs(thing.x - x) < Math.abs(best.x - x) ? thing : best)).element);
    };
    const act = {ArrowRight: () => all[here + 1] && focusOn(all[here + 1]), ArrowLeft: () => all[here - 1] && focusOn(all[here - 1]),
      ArrowDown: () => vertical(1), ArrowUp: () => vertical(-1), Home: () => focusOn(all[0]), End: () => focusOn(all[all.length - 1])}[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
    if (event.key === 'Escape') {
      if (goBack()) return event.preventDefault();
      if (query) { filter.value = query = ''; draw(); }
      return hideHint();
    }
    if (event.target === filter || event.target.tagName === 'SELECT') return;
    const act = {'/': () => filter.focus(), '?': () => help.showModal(), '+': () => zoomTo(zoom * 2), '-': () => zoomTo(zoom / 2)}[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  let wait = 0;
  filter.addEventListener('input', () => {
    clearTimeout(wait);
    wait = setTimeout(() => { query = filter.value.trim(); draw(); }, 60);
  });
  choice.addEventListener('change', () => {
    scale = SCALES[choice.value];
    for (const row of shownRows) drawTrack(row);
    layOut();
  });
  // What is folded stays so on paper; the line of the first cause is shown with what stands round it.
  addEventListener('beforeprint', () => {
    document.querySelectorAll('#evidence details.cause').forEach((details) => { details.open = true; });
    zoomTo(1);
  });
  new ResizeObserver(layOut).observe(frame);

  host.append(tools, legend, frame, hint, help);
  draw();
})();
