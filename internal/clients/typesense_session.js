// A session with the official Typesense client for JavaScript. session.py says what it prints.
'use strict'

const { once } = require('node:events')
const { createReadStream, readFileSync } = require('node:fs')
const { parseArgs } = require('node:util')
const { Client, SearchClient } = require('typesense')

const string = { type: 'string' }
const { values: args } = parseArgs({ options: { url: string, key: string, index: string, corpus: string } })
const documents = readFileSync(args.corpus, 'utf8').split('\n').filter(Boolean).map((line, i) => {
  const document = JSON.parse(line)
  return { ...document, n: i % 7, words: document.title.split(' ', 2), near: [1, i % 5, i % 11 / 10] }
})
const name = suffix => `${args.index}-${suffix}`
const main = name('main')

// configured returns what a client is made of: with another key, or more.
const configured = (key, more) => ({
  nodes: [{ url: args.url }], apiKey: key ?? args.key, connectionTimeoutSeconds: 60, numRetries: 1, retryIntervalSeconds: 0.01,
  logLevel: 'silent', ...more
})
const client = new Client(configured())

const FIELDS = [
  { name: 'title', type: 'string', infix: true },
  { name: 'body', type: 'string' },
  { name: 'url', type: 'string', index: false, optional: true },
  { name: 'host', type: 'string', facet: true },
  { name: 'published_at', type: 'string', sort: true, optional: true },
  { name: 'n', type: 'int32', facet: true, optional: true },
  { name: 'words', type: 'string[]', facet: true, optional: true },
  { name: 'near', type: 'float[]', num_dim: 3, optional: true }
]
const TEXT = { q: 'the town', query_by: 'title,body' }
const ALL = { q: '*', query_by: 'title' }

const shown = { same: {}, searches: {}, cursors: {} }

// error returns what a caller can tell of an exception.
function error (raised) {
  const { name, message, httpStatus, httpBody, importResults } = raised
  return { raised: name, type: raised.constructor.name, message, httpStatus, httpBody, importResults }
}

async function same (step, call) {
  if (step in shown.same) throw new Error(`two steps ${step}`)
  shown.same[step] = await Promise.resolve().then(call).catch(error) ?? null
}

// search reads a list in pages of a size: page(number) answers one, from 1 on.
async function search (step, page) {
  if (step in shown.searches) throw new Error(`two steps ${step}`)
  const pages = shown.searches[step] = []
  do pages.push(await page(pages.length + 1)); while (pages.at(-1).hits.length > 0)
}

// paged reads a search of documents in pages.
const paged = (step, held, size, params) => search(step, page => held.search({ ...params, page, per_page: size }))

async function collections () {
  const create = (suffix, more) => client.collections().create({ name: name(suffix), fields: FIELDS, ...more })
  await same('create', () => create('main'))
  await same('create twice', () => create('main'))
  await same('create a bad one', () => create('bad', { fields: [{ name: 'x', type: 'y' }] }))
  await same('create with all', () => create('work', {
    token_separators: ['-'], symbols_to_index: ['+'], enable_nested_fields: true, metadata: { made: 'here' }
  }))
  await same('create with fields found', () => create('auto', { fields: [{ name: '.*', type: 'auto' }] }))
  await same('create like another', () => client.collections().create({ name: name('like') }, { src_name: main }))
  await same('retrieve', () => client.collections(main).retrieve())
  await same('retrieve nothing', () => client.collections(name('nowhere')).retrieve())
  await same('exists', async () => [await client.collections(main).exists(), await client.collections(name('nowhere')).exists()])
  await same('retrieve all', async () => (await client.collections().retrieve())
    .filter(c => c.name.startsWith(name(''))).sort((a, b) => a.name.localeCompare(b.name)))
}

async function imports () {
  const held = client.collections(main).documents()
  const work = client.collections(name('work')).documents()
  await same('import', () => held.import(documents, { action: 'create', batch_size: 40 }))
  await same('import with ids', () => work.import(documents.slice(0, 40), { action: 'upsert', return_id: true }))
  await same('import again', () => work.import(documents.slice(38, 42), { action: 'create', throwOnFail: false }))
  await same('import that throws', () => work.import(documents.slice(38, 43), { action: 'create' }))
  await same('import with documents', () => work.import(documents.slice(40, 44), {
    action: 'emplace', return_doc: true, return_id: true
  }))
  const part = documents.slice(0, 5).map(({ id }, i) => ({ id, title: documents[i + 1].title }))
  const whole = documents.slice(5, 9).map(({ id }, i) => ({ id, title: documents[i].title, body: documents[i].body }))
  for (const action of ['create', 'update', 'upsert', 'emplace']) {
    await same(`import: ${action}`, () => work.import([...part, ...whole, { id: 'nowhere', n: 1 }], {
      action, return_doc: true, throwOnFail: false
    }))
  }
  await same('delete what has no text', () => client.collections(name('work')).documents('nowhere').delete())
  const lines = [JSON.stringify(documents[50]), '', 'no json', '{"title":1,"body":[]}', '{"n":"x","id":"bad"}', '[]',
    JSON.stringify({ ...documents[51], n: '12' }), JSON.stringify(documents[50])].join('\n')
  await same('import of lines', () => work.import(lines, { action: 'create', return_id: true }))
  await same('import of lines, with documents', () => work.import(lines, { action: 'upsert', return_doc: true }))
  for (const values of ['coerce_or_reject', 'coerce_or_drop', 'drop', 'reject']) {
    await same(`dirty values: ${values}`, () => work.import([
      { ...documents[60], n: '7' }, { ...documents[61], n: 'x' }, { ...documents[62], title: 5 }, { ...documents[63], body: null }
    ], { action: 'upsert', dirty_values: values, return_doc: true, throwOnFail: false }))
  }
  await same('createMany', () => work.createMany(documents.slice(64, 66)))
  await same('import of a stream', () => client.collections(name('like')).documents().importStream(
    createReadStream(args.corpus), { action: 'create', batch_size: 17 }))
  await same('import into fields found', () => client.collections(name('auto')).documents().import(
    documents.slice(0, 9), { return_doc: true }))
  await same('import of nothing', () => work.import([]))
  await same('import to nowhere', () => client.collections(name('nowhere')).documents().import(documents.slice(0, 2)))
}

async function writes () {
  const { id, ...anonymous } = documents[71]
  const first = documents[70]
  const all = client.collections(name('work')).documents()
  const one = client.collections(name('work')).documents(first.id)
  const nowhere = client.collections(name('work')).documents('nowhere')
  await same('document: create', () => all.create(first))
  await same('document: create twice', () => all.create(first))
  await same('document: create without id', () => all.create(anonymous))
  await same('document: create dirty', () => all.create({ id, ...anonymous, n: '5' }, { dirty_values: 'coerce_or_reject' }))
  await same('document: create too little', () => all.create({ title: 'x' }))
  await same('document: upsert', () => all.upsert({ ...documents[72], id: first.id }))
  await same('document: emplace', () => all.emplace({ id: first.id, title: 'half of it' }))
  await same('document: emplace anew', () => all.emplace({ ...documents[73], id: 'anew' }))
  await same('document: update of all', () => all.update({ ...documents[72], id: 'anew' }, {}))
  await same('document: retrieve', () => one.retrieve())
  await same('document: retrieve in part', () => one.retrieve({ include_fields: ['title', 'n'] }))
  await same('document: retrieve nothing', () => nowhere.retrieve())
  for (const [step, change] of Object.entries({
    'whole text': { title: anonymous.title, body: anonymous.body }, 'part of the text': { title: 'half of it' },
    'another field': { n: 3 }, null: { n: null }, 'null text': { body: null }, undeclared: { beside: { x: [1, 2] } }
  })) {
    await same(`document: update ${step}`, async () => [await one.update(change), await one.retrieve()])
  }
  await same('document: update nothing', () => nowhere.update({ n: 1 }))
  await same('document: update by filter', () => all.update({ n: 9 }, { filter_by: 'n:=1' }))
  await same('document: delete', () => one.delete())
  await same('document: delete again', () => one.delete())
  await same('document: delete by filter', () => all.delete({ filter_by: 'n:=4', batch_size: 10 }))
  await same('document: delete by nothing', () => all.delete())
  const held = client.collections(main).documents()
  await same('export', () => all.export())
  await same('export in part', () => held.export({ filter_by: 'n:<3', exclude_fields: ['body', 'near'] }))
  await same('export as a stream', async () => {
    const stream = await held.exportStream({ include_fields: 'id,title' })
    let text = ''
    stream.on('data', piece => { text += piece })
    await once(stream, 'end')
    return text
  })
}

async function schemas () {
  const work = client.collections(name('work'))
  const changed = async fields => [await work.update({ fields }), await work.retrieve()]
  await same('schema: add', () => changed([{ name: 'beside', type: 'object', optional: true }]))
  await same('schema: drop', () => changed([{ name: 'words', drop: true }]))
  await same('schema: bad', () => changed([{ name: 'title', type: 'int32' }]))
  await same('schema: of fields found', () => client.collections(name('auto')).retrieve())
  await same('alias', () => client.aliases().upsert(name('alias'), { collection_name: main }))
  await same('alias: retrieve', () => client.aliases(name('alias')).retrieve())
  await same('alias: all', async () => (await client.aliases().retrieve()).aliases.filter(a => a.name.startsWith(name(''))))
  await same('alias: its collection', () => client.collections(name('alias')).retrieve())
  await same('alias: for a while', async () => [
    await client.aliases().upsert(name('other'), { collection_name: name('work') }),
    await client.aliases(name('other')).delete()
  ])
  await same('collection: delete', () => client.collections(name('auto')).delete())
  await same('collection: delete again', () => client.collections(name('auto')).delete())
}

async function searches () {
  const held = client.collections(main).documents()
  await paged('text', held, 10, TEXT)
  await paged('everything', held, 40, ALL)
  await paged('filtered and sorted', held, 9, { ...TEXT, filter_by: 'n:<5', sort_by: ['n:desc', '_text_match:desc'] })
  await paged('sorted by text', held, 25, { ...ALL, sort_by: 'published_at:asc' })
  await paged('facets', held, 13, { ...TEXT, facet_by: ['host', 'n', 'words'], max_facet_values: 4, facet_query: 'host:a' })
  await paged('fields named', held, 12, { ...TEXT, include_fields: 'id,title,url', highlight_full_fields: 'title' })
  await paged('fields left out', held, 12, { ...TEXT, exclude_fields: ['body', 'near', 'out_of'] })
  await paged('highlights', held, 20, {
    ...TEXT, highlight_fields: 'body', highlight_affix_num_tokens: 2, highlight_start_tag: '<b>', highlight_end_tag: '</b>',
    snippet_threshold: 5, enable_highlight_v1: false
  })
  await paged('how words match', held, 15, {
    q: 'rivr towm', query_by: ['title', 'body'], query_by_weights: [3, 1], num_typos: '2,1', prefix: [true, false],
    drop_tokens_threshold: 2, typo_tokens_threshold: 3, exhaustive_search: true, max_candidates: 9, min_len_1typo: 3
  })
  await paged('phrase and exclusion', held, 15, { q: '"the old" -nothing', query_by: 'body,title' })
  await paged('pinned by the search', held, 14, { ...TEXT, pinned_hits: `${documents[1].id}:1`, hidden_hits: documents[4].id })
  await paged('alias', client.collections(name('alias')).documents(), 11, TEXT)
  await paged('cached by the client', held, 19, TEXT)
  await same('kept by the client', async () => {
    const ask = () => held.search({ ...TEXT, neardup: 'off' }, { cacheSearchResultsForSeconds: 60 })
    return [await ask(), await ask()]
  })
  const served = new Client(configured(undefined, { useServerSideSearchCache: true, sendApiKeyAsQueryParam: true }))
  // The engine's cache outlives a collection: a filter that is new in each run finds nothing in it.
  const anew = { ...TEXT, filter_by: `n:<${Date.now() % 2 ** 30 + 9}` }
  await paged('cached by the engine', served.collections(main).documents(), 18, anew)
  await same('no hits', () => held.search({ q: 'nothingmatchesthis', query_by: 'title' }))
  await same('counts alone', () => held.search({ ...TEXT, per_page: 0, facet_by: 'host' }))
  await same('grouped by the client', () => held.search({ ...TEXT, group_by: 'host', group_limit: 3 }))
  await same('turned off', () => held.search({ ...TEXT, neardup: 'off', per_page: 100 }))
  for (const [step, params] of Object.entries({
    'bad field': { q: 'x', query_by: 'nothing' },
    'bad filter': { ...TEXT, filter_by: 'n:<<1' },
    'too many a page': { ...TEXT, per_page: 251 },
    'page 0': { ...TEXT, page: 0 },
    'no query': {},
    long: { q: 'town '.repeat(900), query_by: 'title' }
  })) {
    await same(`refused: ${step}`, () => held.search(params))
  }
  await same('nowhere', () => client.collections(name('nowhere')).documents().search(TEXT))
}

async function several () {
  const ask = (from, page, common) => from.multiSearch.perform({ searches: [
    { collection: main, q: 'river', page }, { collection: main, q: 'old', page, facet_by: 'host' },
    { collection: name('alias'), q: '*', page }] }, { query_by: 'title,body', per_page: 20, ...common })
  for (const i of [0, 1, 2]) await search(`multi ${i}`, async page => (await ask(client, page)).results[i])
  // The client for browsers: its bodies go as plain text, its key in the address.
  const browser = new SearchClient(configured(undefined, { sendApiKeyAsQueryParam: true }))
  await search('multi of a browser', async page => (await ask(browser, page, { per_page: 33 })).results[2])
  await paged('search of a browser', browser.collections(main).documents(), 21, TEXT)
  const perform = (searches, common) => client.multiSearch.perform({ searches }, common)
  await same('multi that fails', () => perform([
    { collection: name('nowhere'), ...TEXT }, { collection: main, ...TEXT, neardup: 'off' },
    { collection: main, ...TEXT, query_by: 'nothing' }]))
  await same('multi of nothing', () => perform([]))
  await same('multi without collection', () => perform([TEXT]))
  await same('multi, too many', () => perform(Array(51).fill({ collection: main, ...TEXT })))
  await same('multi, limited', () => perform([TEXT, TEXT], { limit_multi_searches: 1, collection: main }))
}

async function curation () {
  const curated = client.collections(main)
  const ids = documents.map(({ id }) => id)
  await same('synonym', () => curated.synonyms().upsert('streams', { synonyms: ['brook', 'river', 'stream'] }))
  await same('synonym: one way', () => curated.synonyms().upsert('towns', { root: 'hamlet', synonyms: ['town', 'village'] }))
  await same('synonym: retrieve', async () => [await curated.synonyms().retrieve(), await curated.synonyms('towns').retrieve()])
  await paged('synonyms', curated.documents(), 14, { q: 'hamlet', query_by: 'title,body' })
  await same('synonym: delete', async () => [
    await curated.synonyms('towns').delete(), await curated.synonyms('streams').delete()])
  await same('override', () => curated.overrides().upsert('pinned', {
    rule: { query: 'pinned old', match: 'exact' }, includes: [{ id: ids[1], position: 1 }], excludes: [{ id: ids[2] }]
  }))
  await same('override: retrieve', async () => [
    await curated.overrides().retrieve(), await curated.overrides('pinned').retrieve()])
  await same('curated', () => curated.documents().search({ q: 'pinned old', query_by: 'title', per_page: 1 }))
  await paged('curated off', curated.documents(), 14, { q: 'pinned old', query_by: 'title,body', enable_overrides: false })
  await same('override: bad', () => curated.overrides().upsert('bad', { rule: {} }))
  await same('override: delete', () => curated.overrides('pinned').delete())
  await same('preset', () => client.presets().upsert(name('preset'), { value: { ...TEXT, per_page: 9, sort_by: 'n:asc' } }))
  await same('preset: retrieve', () => client.presets(name('preset')).retrieve())
  await same('preset: all', async () => (await client.presets().retrieve()).presets.filter(p => p.name.startsWith(name(''))))
  await search('preset', page => curated.documents().search({ preset: name('preset'), page }))
  await same('preset: delete', () => client.presets(name('preset')).delete())
}

async function keys () {
  const numbers = []
  // A key without the number that the engine counts up.
  const numberless = ({ id, ...key }) => key
  const made = async schema => {
    const key = await client.keys().create({ description: 'of a session', collections: [name('.*')], ...schema })
    numbers.push(key.id)
    return numberless(key)
  }
  const value = name('search-only')
  await same('key', () => made({ actions: ['documents:search'], value, expires_at: 64723363199 }))
  await same('key: of its own', async () => (await made({ actions: ['documents:get'] })).value.length)
  await same('key: bad', () => made({ actions: [] }))
  await same('key: retrieve', async () => numberless(await client.keys(numbers[0]).retrieve()))
  await same('key: retrieve nothing', () => client.keys(2 ** 31).retrieve())
  await same('key: all', async () => (await client.keys().retrieve()).keys.filter(({ id }) => id === numbers[0]).map(numberless))
  const searchOnly = new Client(configured(value)).collections(main)
  await paged('key: searches', searchOnly.documents(), 10, TEXT)
  await same('key: writes not', () => searchOnly.documents().create(documents[0]))
  for (const [step, embedded] of Object.entries({
    filtered: { filter_by: 'n:>2' },
    'without body': { exclude_fields: 'body,near' },
    'of a size': { per_page: 10, filter_by: 'n:<6', expires_at: 64723363190 }
  })) {
    const scoped = client.keys().generateScopedSearchKey(value, embedded)
    await paged(`key: ${step}`, new Client(configured(scoped)).collections(main).documents(), 10, { ...TEXT, filter_by: 'n:<7' })
    const browser = new SearchClient(configured(scoped, { sendApiKeyAsQueryParam: true }))
    await search(`key: ${step}, in a browser`, async page =>
      (await browser.multiSearch.perform({ searches: [{ collection: main, ...TEXT, page, per_page: 10 }] })).results[0])
  }
  await same('key: wrong', () => new Client(configured('wrong')).collections(main).documents().search(TEXT))
  await same('key: delete', () => Promise.all(numbers.map(async id => Object.keys(await client.keys(id).delete()))))
}

// replies are what the engine says of itself, and what it does not have in this version.
async function replies () {
  await same('health', () => client.health.retrieve())
  await same('debug', () => client.debug.retrieve())
  await same('metrics', async () => Object.keys(await client.metrics.retrieve()).sort())
  await same('stats', async () => Object.keys(await client.stats.retrieve()).sort())
  await same('no such operation', () => client.operations.perform('nothing'))
  await same('schema changes', () => client.operations.getSchemaChanges())
  await same('stopwords', () => client.stopwords().upsert(name('words'), { stopwords: ['the'] }))
  await same('stopwords: retrieve', () => client.stopwords().retrieve())
  await same('synonym sets', () => client.synonymSets().retrieve())
  await same('curation sets', () => client.curationSets().retrieve())
  await same('analytics', () => client.analytics.rules().retrieve())
  await same('analytics, older', () => client.analyticsV1.rules().retrieve())
  await same('stemming', () => client.stemming.dictionaries().retrieve())
  await same('conversations', () => client.conversations().models().retrieve())
  await same('models', () => client.nlSearchModels().retrieve())
}

async function run () {
  for (const part of [collections, imports, writes, schemas, searches, several, curation, keys, replies]) await part()
  process.stdout.write(JSON.stringify(shown))
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
