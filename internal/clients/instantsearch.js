// InstantSearch with Typesense's adapter in a browser: a page served from loopback, its origin another than the engine's.
//
//	instantsearch.js --url URL --key KEY --index NAME --corpus FILE.jsonl --browser CHROMIUM --dead URL
//
// It loads the documents into two collections, uses the page as a visitor does, once for each of several configurations, and
// prints {visit: {steps, requests, complaints}}. A step is what the page shows: the list that it is a page of, which page, of how
// many hits, and all there is to see. A request is what the page sent and got; complaints are errors in the console and requests
// that failed. The visit "replies" has answers as the page's own script gets them, some of DEAD, whose engine does not answer.
'use strict'

const { once } = require('node:events')
const { readFileSync } = require('node:fs')
const { createServer } = require('node:http')
const { dirname, join } = require('node:path')
const { parseArgs } = require('node:util')
const { chromium } = require('playwright-core')
const { Client } = require('typesense')

const string = { type: 'string' }
const { values: args } = parseArgs({
  options: {
    url: string, key: string, index: string, corpus: string, browser: string, dead: string
  }
})
const main = `${args.index}-main`
const other = `${args.index}-other`
const searchOnly = `${args.index}-search-only`
const OTHER_SIZE = 4
const WAIT = 90_000 // for a page that a busy machine draws

const client = new Client({ nodes: [{ url: args.url }], apiKey: args.key, connectionTimeoutSeconds: 60, logLevel: 'silent' })

async function load () {
  const lines = readFileSync(args.corpus, 'utf8').split('\n').filter(Boolean)
  const documents = lines.map((line, i) => ({ ...JSON.parse(line), n: i % 5 }))
  for (const name of [main, other]) {
    await client.collections().create({
      name,
      fields: [{ name: 'title', type: 'string' }, { name: 'body', type: 'string' }, { name: 'n', type: 'int32', facet: true }]
    })
    await client.collections(name).documents().import(documents)
  }
  return client.keys().create({
    description: 'for a page', actions: ['documents:search'], collections: [main], value: searchOnly
  })
}

// serve answers the page and its two scripts.
async function serve () {
  const packaged = (name, file) => join(dirname(require.resolve(`${name}/package.json`)), 'dist', file)
  const files = {
    '/': ['text/html', join(__dirname, 'instantsearch.html')],
    '/instantsearch.js': ['text/javascript', packaged('instantsearch.js', 'instantsearch.production.min.js')],
    '/adapter.js': ['text/javascript', packaged('typesense-instantsearch-adapter', 'typesense-instantsearch-adapter.min.js')]
  }
  const server = createServer((request, response) => {
    const [type, path] = files[new URL(request.url, 'http://page').pathname] ?? []
    if (!path) return response.writeHead(204).end()
    response.writeHead(200, { 'Content-Type': type }).end(readFileSync(path))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

// Visit is one page of the browser, and what is written down of it.
class Visit {
  constructor (page, origin) {
    Object.assign(this, { page, origin, steps: [], requests: [], complaints: [] })
    page.setDefaultTimeout(WAIT)
    page.on('pageerror', error => this.complaints.push(String(error)))
    page.on('console', message => message.type() === 'error' && this.complaints.push(message.text()))
    page.on('requestfailed', request => this.complaints.push(`${request.url()}: ${request.failure().errorText}`))
    page.on('request', request => request.url().startsWith(origin) || this.requests.push(this.exchange(request).catch(String)))
  }

  // exchange is what is told of a request, once it is over.
  async exchange (request) {
    const response = await request.response()
    const url = new URL(request.url())
    url.searchParams.delete('x-typesense-api-key')
    return {
      request: `${request.method()} ${url.pathname}${url.search}`,
      body: request.postData(),
      status: response?.status(),
      reply: response && await response.json()
    }
  }

  async open (configuration) {
    const { adapter, ...rest } = configuration
    const server = {
      apiKey: args.key, nodes: [{ url: args.url }], connectionTimeoutSeconds: WAIT / 1000, numRetries: 0, ...adapter?.server
    }
    const additionalSearchParameters = { query_by: 'title,body', ...adapter?.additionalSearchParameters }
    this.size = rest.size ?? 23
    this.endless = rest.infinite
    this.other = rest.other
    await this.page.goto(this.origin)
    await this.page.evaluate(configuration => window.start(configuration), {
      index: main, ...rest, size: this.size, otherSize: OTHER_SIZE, adapter: { ...adapter, server, additionalSearchParameters }
    })
    await this.settled({ query: '', page: 0 })
  }

  settled (wanted) { return this.page.waitForFunction(wanted => window.shows(wanted), wanted, { polling: 30 }) }

  // note writes down what the page shows, as a page of a list: of an endless one what is new.
  async note (list) {
    const { other, ...shown } = await this.page.evaluate(() => window.look())
    if (this.endless && shown.page > 0) shown.ids = shown.ids.slice(shown.page * this.size)
    this.steps.push({ list, size: this.size, ...shown })
    const { page, found } = shown
    if (this.other) this.steps.push({ list: `${list}, other`, size: OTHER_SIZE, page, found, ids: other })
    return shown
  }

  async type (query) {
    await this.page.locator('.ais-SearchBox-input').fill('')
    await this.page.locator('.ais-SearchBox-input').pressSequentially(query)
    await this.settled({ query, page: 0 })
  }

  // leaf notes all pages of a list, from the one that is shown.
  async leaf (list) {
    const { pages } = await this.note(list)
    for (let page = 1; page < pages.length; page++) {
      await this.page.locator('.ais-Pagination-item--nextPage a').click()
      await this.settled({ page })
      await this.note(list)
    }
  }

  async refine (value, refined) {
    await this.page.locator(`.ais-RefinementList-checkbox[value="${value}"]`).click()
    await this.settled({ refined, page: 0 })
  }

  async told () {
    return { steps: this.steps, requests: await Promise.all(this.requests), complaints: this.complaints }
  }
}

// visits are what is done with the page, by name.
const visits = {
  async pages (visit) {
    await visit.open({ size: 13 })
    await visit.note('at first')
    await visit.type('old')
    await visit.leaf('typed')
    await visit.page.locator('.ais-Pagination-item--page a').first().click()
    await visit.settled({ page: 0 })
    await visit.note('typed')
    await visit.refine('2', '2')
    await visit.leaf('refined')
    await visit.refine('3', '2,3')
    await visit.leaf('refined twice')
    await visit.page.locator('.ais-ClearRefinements-button').click()
    await visit.settled({ refined: '', page: 0 })
    await visit.note('typed')
    await visit.page.goBack()
    await visit.settled({ refined: '2,3' })
    await visit.note('refined twice')
    await visit.page.locator('.ais-SortBy-select').selectOption(`${main}/sort/n:asc`)
    await visit.settled({ sorted: `${main}/sort/n:asc`, page: 0 })
    await visit.leaf('sorted')
    await visit.type('nothingmatchesthis')
    await visit.note('no hits')
  },
  async infinite (visit) {
    await visit.open({ infinite: true, size: 12 })
    await visit.type('the town')
    const more = visit.page.locator('.ais-InfiniteHits-loadMore:not([disabled])')
    for (let page = 1; ; page++) {
      await visit.note('all')
      if (!await more.count()) break
      await more.click()
      await visit.settled({ page })
    }
  },
  async several (visit) {
    await visit.open({ other, size: 5 })
    await visit.type('river')
    await visit.leaf('river')
    await visit.type('old')
    await visit.note('old')
  },
  async 'with a key that scopes' (visit) {
    const apiKey = client.keys().generateScopedSearchKey(searchOnly, { filter_by: 'n:<4' })
    await visit.open({ adapter: { server: { apiKey } } })
    await visit.type('old')
    await visit.leaf('typed')
    await visit.refine('2', '2')
    await visit.leaf('refined')
  },
  // The key in a header, and a body of another type, which the browser asks leave for.
  async 'with a header' (visit) {
    await visit.open({ adapter: { server: { sendApiKeyAsQueryParam: false, additionalHeaders: { 'X-Own': 'header' } } } })
    await visit.type('old')
    await visit.leaf('typed')
  },
  async 'with a threshold' (visit) {
    await visit.open({ adapter: { additionalSearchParameters: { neardup_threshold: 0.95 } } })
    await visit.type('old')
    await visit.leaf('at 0.95')
  },
  async replies (visit) {
    const search = '/documents/search?q=old&query_by=title'
    const key = { 'X-Typesense-Api-Key': args.key }
    const asked = {
      'the engine refuses': [args.url + '/collections/' + main + search, { headers: { 'X-Typesense-Api-Key': 'wrong' } }],
      'the engine knows not': [args.url + '/collections/nowhere' + search, { headers: key }],
      'asks leave': [args.url + '/multi_search', {
        method: 'POST',
        headers: { ...key, 'Content-Type': 'application/json', 'X-Own': 'header' },
        body: '{"searches":[{"q":"*"}]}'
      }],
      writes: [`${args.url}/collections/${main}/documents/nowhere`, { method: 'PATCH', headers: key, body: '{"n":1}' }],
      'a bad control': [args.url + '/collections/' + main + search + '&neardup_threshold=nonsense', { headers: key }],
      'a bad control of several': [args.url + '/multi_search', {
        method: 'POST', headers: key, body: JSON.stringify({ searches: [{ collection: main, q: '*', neardup_threshold: 'x' }] })
      }],
      // With the key in the address, as the adapter sends it: a dead engine gives no leave, with or without us.
      'a dead engine': [`${args.dead}/collections/${main}${search}&x-typesense-api-key=${args.key}`, {}]
    }
    await visit.page.goto(visit.origin)
    for (const [list, request] of Object.entries(asked)) {
      const answer = await visit.page.evaluate(([url, options]) => fetch(url, options).then(
        async reply => ({ status: reply.status, text: await reply.text() }),
        error => ({ status: 0, text: String(error) })
      ), request)
      visit.steps.push({ list, ...answer })
    }
    visit.complaints = [] // the browser writes down each refusal
    visit.requests = []
  }
}

async function run () {
  const key = await load()
  const server = await serve()
  const browser = await chromium.launch({
    executablePath: args.browser, timeout: WAIT, chromiumSandbox: false, args: ['--no-proxy-server', '--disable-gpu']
  })
  const shown = {}
  try {
    for (const name of Object.keys(visits)) {
      const context = await browser.newContext()
      const visit = new Visit(await context.newPage(), `http://127.0.0.1:${server.address().port}/`)
      await visits[name](visit).catch(async error => {
        throw new Error(`${name}: ${error.stack}\n${JSON.stringify(await visit.told()).slice(-4000)}`)
      })
      shown[name] = await visit.told()
      await context.close()
    }
  } finally {
    await browser.close()
    server.close()
    await client.keys(key.id).delete()
  }
  process.stdout.write(JSON.stringify(shown))
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
