// The page of examples/instantsearch, set up, served and used as its README says.
//
//	examples_page.js --url URL --key KEY --index NAME --page FOLDER --browser CHROMIUM [--screenshots FOLDER]
//
// FOLDER is a copy of the example, beside a copy of the articles. It prints {search_key, steps, requests, complaints}: a step is
// what the page shows after something was done to it; requests are the statuses of what the page asked the engine; complaints are
// errors in the console and requests that failed.
'use strict'

const { execFileSync, spawn } = require('node:child_process')
const { readFileSync, symlinkSync } = require('node:fs')
const { createServer } = require('node:net')
const { dirname, join } = require('node:path')
const { parseArgs } = require('node:util')
const { chromium } = require('playwright-core')

const string = { type: 'string' }
const { values: args } = parseArgs({
  options: { url: string, key: string, index: string, page: string, browser: string, screenshots: string }
})
const { scripts } = JSON.parse(readFileSync(join(args.page, 'package.json'), 'utf8'))
const WAIT = 60_000 // for a page that a busy machine draws

// setUp puts the packages where npm install does, and runs the example's own script.
function setUp () {
  symlinkSync(dirname(dirname(require.resolve('instantsearch.js/package.json'))), join(args.page, 'node_modules'))
  const [program, ...words] = scripts.setup.split(' ')
  if (program !== 'node') throw new Error(`the script setup runs ${program}`)
  execFileSync(process.execPath, [...words, '--url', args.url, '--collection', args.index], {
    cwd: args.page, env: { ...process.env, TYPESENSE_API_KEY: args.key }, stdio: ['ignore', 2, 2]
  })
  return JSON.parse(readFileSync(join(args.page, 'config.json'), 'utf8')).key
}

// serve runs the example's own server, on a free port, and returns it and its address once it answers.
async function serve () {
  const port = await new Promise(resolve => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
  const [program, ...words] = scripts.start.replace('8000', port).split(' ')
  const server = spawn(program, words, { cwd: args.page, stdio: 'ignore' })
  const origin = `http://127.0.0.1:${port}/`
  for (const end = Date.now() + WAIT; ;) {
    if (await fetch(origin).then(reply => reply.ok, () => false)) return { server, origin }
    if (Date.now() > end || server.exitCode !== null) throw new Error(`${scripts.start} does not answer`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

// look reads the page as a visitor does.
function look () {
  const texts = (within, selector) => [...within.querySelectorAll(selector)].map(element => element.textContent.trim())
  return {
    stats: document.querySelector('#stats').textContent.trim(),
    trouble: document.querySelector('#trouble').textContent,
    pages: texts(document, '.ais-Pagination-item--page').length,
    hits: [...document.querySelectorAll('#hits article')].map(hit => ({
      id: hit.dataset.id, title: texts(hit, 'h2')[0], versions: texts(hit, 'summary')[0] ?? '', folded: texts(hit, 'li')
    }))
  }
}

async function visit (browser, origin) {
  const steps = {}
  const asked = []
  const complaints = []
  const page = await browser.newPage({ viewport: { width: 900, height: 800 } })
  page.setDefaultTimeout(WAIT)
  page.on('pageerror', error => complaints.push(String(error)))
  page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
  page.on('requestfailed', request => complaints.push(`${request.url()}: ${request.failure().errorText}`))
  page.on('requestfinished', async request => {
    if (request.url().startsWith(args.url)) asked.push((await request.response()).status())
  })
  // after does something to the page and writes down what it shows once the engine has answered and the page stays as it is.
  const after = async (name, what) => {
    const before = asked.length
    await what()
    for (const end = Date.now() + WAIT; asked.length === before;) {
      if (Date.now() > end) throw new Error(`${name}: the page asks nothing: ${complaints}`)
      await page.waitForTimeout(20)
    }
    for (let last = ''; last !== JSON.stringify(steps[name]);) {
      last = JSON.stringify(steps[name])
      await page.waitForTimeout(150)
      steps[name] = await page.evaluate(look)
    }
    if (args.screenshots) {
      const details = page.locator('summary').first()
      if (await details.count()) await details.click()
      await page.screenshot({ path: join(args.screenshots, `instantsearch ${name}.png`) })
      if (await details.count()) await details.click()
    }
  }
  const box = page.getByRole('searchbox')
  const all = page.getByLabel('Show all versions')
  await after('at first', () => page.goto(origin))
  await after('ferry', () => box.fill('ferry'))
  await after('ferry, all', () => all.check())
  await after('ferry, all, page 2', () => page.locator('.ais-Pagination-item--page a').nth(1).click())
  await after('ferry again', () => all.uncheck())
  await after('choir', () => box.fill('choir'))
  await after('nothing', () => box.fill('nothingmatchesthis'))
  return { steps, requests: asked, complaints }
}

async function run () {
  const key = setUp()
  const { server, origin } = await serve()
  const browser = await chromium.launch({
    executablePath: args.browser, timeout: WAIT, chromiumSandbox: false, args: ['--no-proxy-server', '--disable-gpu']
  })
  try {
    process.stdout.write(JSON.stringify({ search_key: key, ...await visit(browser, origin) }))
  } finally {
    await browser.close()
    server.kill()
  }
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
