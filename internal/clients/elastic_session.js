// A session with the official Elasticsearch client for JavaScript, with its helpers. session.py says what it prints.
'use strict'

const { readFileSync } = require('node:fs')
const { Readable } = require('node:stream')
const { parseArgs } = require('node:util')
const { gunzipSync } = require('node:zlib')

const string = { type: 'string' }
const { values: args } = parseArgs({ options: { url: string, index: string, corpus: string, client: { type: 'string', default: '@elastic/elasticsearch' } } })
const { Client, errors } = require(args.client) // the current major, or elasticsearch8
const documents = readFileSync(args.corpus, 'utf8').split('\n').filter(Boolean).map(line => JSON.parse(line))
const name = suffix => `${args.index}-${suffix}`
const main = name('main')
const client = new Client({ node: args.url, compression: true, requestTimeout: 60000 })

const TEXT = { multi_match: { query: 'river town old', fields: ['title', 'body'] } }
const ORDER = ['_score', { id: 'asc' }]
const FIELDS = {
  id: { type: 'keyword' },
  title: { type: 'text' },
  body: { type: 'text' },
  url: { type: 'keyword' },
  host: { type: 'keyword' },
  published_at: { type: 'date' }
}

const shown = { same: {}, searches: {}, cursors: {} }

// error returns what a caller can tell of an exception.
function error (raised) {
  const { name, message, statusCode, body, meta } = raised
  return { raised: name, message, statusCode, body, headers: meta?.headers, response: raised instanceof errors.ResponseError }
}

async function same (step, call) {
  if (step in shown.same) throw new Error(`two steps ${step}`)
  shown.same[step] = await Promise.resolve().then(call).catch(error) ?? null
}

// search reads a list in pages of a size: page(from) answers one.
async function search (step, size, page) {
  const pages = shown.searches[step] = []
  do pages.push(await page(pages.length * size)); while (pages.at(-1).hits.hits.length > 0)
}

// cursor reads a list by the sort values of the last hit: page(values) answers one.
async function cursor (step, page) {
  const pages = shown.cursors[step] = [await page(undefined)]
  while (pages.at(-1).hits.hits.length > 0) pages.push(await page(pages.at(-1).hits.hits.at(-1).sort))
}

async function all (iterable) {
  const list = []
  for await (const item of iterable) list.push(item)
  return list
}

// bulk runs the helper and returns what it counted and dropped.
async function bulk (datasource, onDocument, more) {
  const dropped = []
  const onDrop = ({ status, operation, document, error, retried }) => {
    dropped.push({ status, operation, document, error, retried })
  }
  const { time, bytes, ...counts } = await client.helpers.bulk({
    datasource, onDocument, onDrop, refreshOnCompletion: true, ...more
  })
  dropped.sort((a, b) => JSON.stringify(a.operation).localeCompare(JSON.stringify(b.operation)))
  return { bytes, counts, dropped }
}

async function writes () {
  const work = name('work')
  await same('create', () => client.indices.create({ index: main, mappings: { properties: FIELDS } }))
  // In one piece, so that the order of the index, which settles ties, is the same each time.
  await same('bulk', () => bulk(documents, d => ({ index: { _index: main, _id: d.id } }), { concurrency: 1 }))
  await same('bulk in pieces', () => bulk(
    documents, d => ({ index: { _index: name('pieces'), _id: d.id } }), { concurrency: 1, flushBytes: 20000 }))
  await same('bulk of a stream', () => bulk(
    Readable.from(documents.slice(0, 60)), d => ({ create: { _index: name('other'), _id: d.id } }),
    { concurrency: 5, flushBytes: 5000, flushInterval: 50 }))
  await same('bulk of updates', () => bulk(documents.slice(50, 70), d => [
    { update: { _index: name('other'), _id: d.id } }, { doc: { title: d.title }, doc_as_upsert: d.id > 'a05' }
  ], { concurrency: 1 }))
  await same('bulk of deletes', () => bulk(documents.slice(0, 5), d => ({ delete: { _index: name('other'), _id: d.id } })))
  await same('bulk that drops', () => bulk([{ published_at: 'no date' }, documents[1], documents[1]],
    d => d.id ? { create: { _index: name('bad'), _id: d.id } } : { index: { _index: main, _id: 'bad' } }, { concurrency: 1 }))
  await same('bulk that stops', () => {
    const running = client.helpers.bulk({
      datasource: documents, concurrency: 1, flushBytes: 1000, onDrop: () => {}, onDocument (d) {
        if (d.id === documents[30].id) running.abort()
        return { index: { _index: name('stopped'), _id: d.id } }
      }
    })
    return running.then(({ time, ...counts }) => counts)
  })
  await same('bulk itself', () => client.bulk({ index: work, refresh: true, operations: [
    { index: { _id: 'one' } }, documents[0], { create: { _id: 'two' } }, documents[1],
    { update: { _id: 'one' } }, { doc: { body: documents[2].body } }, { delete: { _id: 'two' } },
    { update: { _id: 'three' } }, { doc: { n: 1 }, upsert: documents[3] }, { update: { _id: 'four' } }, { doc: { n: 1 } }
  ] }))
  await same('index', () => client.index({ index: work, id: '1', document: documents[4] }))
  await same('create twice', () => client.create({ index: work, id: '1', document: documents[5] }))
  await same('update', () => client.update({ index: work, id: '1', doc: { title: 'half of it' }, _source: true }))
  await same('update by script', () => client.update({
    index: work, id: '1', script: { source: 'ctx._source.n = params.n', params: { n: 3 } }
  }))
  await same('doc_as_upsert', () => client.update({ index: work, id: '2', doc: documents[6], doc_as_upsert: true }))
  await same('conflict', () => client.index({ index: work, id: '1', document: documents[4], if_seq_no: 0, if_primary_term: 1 }))
  await same('get', () => client.get({ index: work, id: '1' }))
  await same('get nothing', () => client.get({ index: work, id: 'nowhere' }))
  await same('get nothing, ignored', () => client.get({ index: work, id: 'nowhere' }, { ignore: [404] }))
  await same('get_source', () => client.getSource({ index: main, id: documents[0].id, _source_includes: 'title,url' }))
  await same('exists', () => client.exists({ index: work, id: '1' }))
  await same('exists not', () => client.exists({ index: work, id: 'nowhere' }))
  await same('source exists', () => client.existsSource({ index: work, id: '1' }))
  await same('index exists', () => client.indices.exists({ index: work }))
  await same('index exists not', () => client.indices.exists({ index: name('nowhere') }))
  await same('mget', () => client.mget({ index: main, ids: [documents[3].id, 'nowhere', documents[1].id] }))
  await same('delete', () => client.delete({ index: work, id: '2', refresh: true }))
  await same('update_by_query', () => client.updateByQuery({
    index: work, refresh: true, script: { source: 'ctx._source.touched = true' }
  }))
  await same('delete_by_query', () => client.deleteByQuery({ index: work, refresh: true, query: { term: { n: 3 } } }))
  await same('reindex', () => client.reindex({
    refresh: true, source: { index: main, query: TEXT }, dest: { index: name('inner') }
  }))
  await same('refresh', () => client.indices.refresh({ index: name('*') }))
  await same('count', () => client.count({ index: name('*') }))
  await same('mapping', () => client.indices.getMapping({ index: name('*') }))
  await same('index as it is', () => client.indices.get({ index: main }))
  await same('field caps', () => client.fieldCaps({ index: main, fields: '*' }))
}

async function exports () {
  const query = { index: main, query: TEXT, sort: ORDER, size: 8 }
  await same('scrollSearch', async () =>
    (await all(client.helpers.scrollSearch(query))).map(({ documents, body }) => ({ documents, hits: body.hits })))
  await same('scrollSearch that stops', async () => {
    let pages = 0
    for await (const page of client.helpers.scrollSearch(query)) {
      pages++
      await page.clear()
    }
    return pages
  })
  await same('scrollDocuments', () => all(client.helpers.scrollDocuments(query)))
  const { id } = await client.openPointInTime({ index: main, keep_alive: '1m' })
  await same('export from a point in time', async () => {
    const hits = []
    for (;;) {
      const page = await client.search({
        pit: { id, keep_alive: '1m' }, sort: '_shard_doc', size: 17, search_after: hits.at(-1)?.sort, track_total_hits: false
      })
      if (page.hits.hits.length === 0) return hits
      hits.push(...page.hits.hits)
    }
  })
  await cursor('point in time', after => client.search({
    pit: { id, keep_alive: '1m' }, query: TEXT, sort: [{ published_at: 'desc' }, { id: 'asc' }], size: 12, search_after: after }))
  await same('close point in time', () => client.closePointInTime({ id }))
}

async function searches () {
  const paged = (step, size, body) =>
    search(step, size, from => client.search({ index: main, query: TEXT, sort: ORDER, from, size, ...body }))
  await paged('text', 10, {})
  await paged('everything', 40, { query: { match_all: {} }, sort: [{ id: 'asc' }] })
  await paged('aggregations', 30, { aggs: {
    hosts: { terms: { field: 'host', order: { _key: 'asc' } } },
    years: { date_histogram: { field: 'published_at', calendar_interval: 'year' } }
  } })
  await paged('parts of hits', 12, {
    _source: ['t*'], fields: ['url'], docvalue_fields: ['id'], highlight: { fields: { '*': {} } }
  })
  await paged('keys with types', 20, {
    rest_total_hits_as_int: true, typed_keys: true, aggs: { n: { value_count: { field: 'id' } } }
  })
  // The helper answers documents alone: it asks for a reply that holds nothing else.
  await search('documents', 15, async from => {
    const documents = await client.helpers.search({ index: main, query: TEXT, sort: ORDER, from, size: 15 })
    return { hits: { hits: documents.map(document => ({ _id: document.id, document })) } }
  })
  await search('in the URL', 20, from =>
    client.search({ index: main, q: 'title:old OR body:river', sort: '_score,id:asc', from, size: 20 }))
  const several = client.helpers.msearch({ operations: 3, flushInterval: 20, concurrency: 2 })
  await Promise.all([1, 2, 3, 4].map(i => search(`msearch helper ${i}`, 9 * i, async from =>
    (await several.search({ index: main }, { query: TEXT, sort: ORDER, from, size: 9 * i })).body)))
  await same('msearch helper that fails', () => several.search({ index: main }, { query: { nothing: {} } }))
  await same('msearch helper in index order', async () =>
    (await several.search({ index: main }, { query: TEXT, sort: ['_doc'] })).documents)
  several.stop()
  await search('msearch', 25, async from => (await client.msearch({ index: main, searches: [
    {}, { query: TEXT, sort: ORDER, from, size: 25 }, { index: main }, { size: 0, query: TEXT }] })).responses[0])
  await same('counts alone', () => client.search({
    index: main, size: 0, query: TEXT, aggs: { n: { value_count: { field: 'id' } } }
  }))
  await same('bad query', () => client.search({ index: main, query: { nothing: {} } }))
  await same('nowhere', () => client.search({ index: name('nowhere') }))
}

// replies are what the client tells beside bodies. It checks of each reply that it comes from the product it is made for.
async function replies () {
  const told = ({ statusCode, headers, warnings, body }) => ({ statusCode, headers, warnings, body })
  await same('info', () => client.info())
  await same('ping', () => client.ping())
  await same('meta of get', async () => told(await client.get({ index: main, id: documents[0].id }, { meta: true })))
  await same('meta of exists', async () => told(await client.exists({ index: main, id: documents[0].id }, { meta: true })))
  await same('meta of a search in index order', async () =>
    told(await client.search({ index: main, sort: '_doc', size: 3 }, { meta: true, opaqueId: 'a trace' })))
  await same('meta of a search', async () => {
    const { body, ...rest } = told(await client.search({ index: main, q: 'old' }, { meta: true, headers: { 'x-own': 'header' } }))
    return rest
  })
  await same('as a stream', async () => {
    const stream = await client.get({ index: main, id: documents[0].id }, { asStream: true })
    return JSON.parse(gunzipSync(Buffer.concat(await all(stream))))
  })
  await same('text', () => client.cat.count({ index: main, h: 'count' }))
  await same('of its own', () => client.transport.request({
    method: 'GET', path: `/${main}/_source/${documents[0].id}`, querystring: { _source: 'title' }
  }))
}

async function run () {
  await writes()
  await exports()
  await searches()
  await replies()
  await client.close()
  process.stdout.write(JSON.stringify(shown))
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
