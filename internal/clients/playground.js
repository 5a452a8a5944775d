// The playground's page in a real browser.
//
//	playground.js --url URL --browser CHROMIUM --visits FILE.json [--shots FOLDER]
//
// FILE is a list of visits {name, hash, width, height, scheme, reduced, steps}; a step is {do, …}, one of the actions below. It
// prints {visit: {seen, complaints, strangers}}: seen is what the steps that look have seen, complaints are errors in the
// console, violations of the page's policy and requests that failed, strangers the addresses outside the page's own origin that
// were asked.
'use strict'

const { mkdirSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { parseArgs } = require('node:util')
const { chromium } = require('playwright-core')
const { audit, focused } = require('./playground_audit.js')

const string = { type: 'string' }
const { values: args } = parseArgs({ options: { url: string, browser: string, visits: string, shots: string } })
const WAIT = 60_000 // for a page that a busy machine draws

class Visit {
  constructor (context, plan) {
    Object.assign(this, { context, plan, seen: [], complaints: [], strangers: [], asked: [] })
  }

  // tab opens a page of the browser, with nothing of an earlier one but what the browser keeps.
  async tab () {
    const page = (this.page = await this.context.newPage())
    page.setDefaultTimeout(WAIT)
    page.on('pageerror', error => this.complaints.push(String(error)))
    page.on('console', message => {
      // The browser writes down each refusal; what the page makes of it is looked at.
      if (message.type() === 'error' && !/status of (4|5)\d\d/.test(message.text())) this.complaints.push(message.text())
    })
    page.on('requestfailed', request => {
      if (request.failure().errorText !== 'net::ERR_ABORTED')
        this.complaints.push(`${request.url()}: ${request.failure().errorText}`)
    })
    page.on('request', request => {
      const url = new URL(request.url())
      if (url.protocol === 'data:') return
      if (url.origin !== new URL(args.url).origin) this.strangers.push(request.url())
      if (url.pathname.includes('/api/')) this.asked.push({ path: url.pathname, body: request.postDataJSON() })
    })
    await page.addInitScript(() => {
      window.violations = []
      addEventListener('securitypolicyviolation', event =>
        window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`)
      )
    })
    await this.go(this.plan.hash ?? '')
  }

  async go (hash) {
    await this.page.goto(new URL('/', args.url) + hash)
    await this.settled()
  }

  // settled waits until nothing is asked and all that was chosen is drawn.
  async settled () {
    await this.page.waitForSelector('main[aria-busy=false]')
    await this.drawn()
  }

  drawn () {
    return this.page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))))
  }

  async told () {
    this.complaints.push(...(await this.page.evaluate(() => window.violations)))
    const { seen, complaints, strangers } = this
    return { seen, complaints, strangers }
  }

  // walk turns all pages of a list from the first on, and tells what they show.
  async walk (list) {
    await this.reveal(list)
    return this.page.evaluate(list => {
      const [back, on] = document.querySelectorAll(`#${list}-pager button`)
      while (back.getAttribute('aria-disabled') === 'false') back.click()
      const all = []
      for (;;) {
        for (const more of document.querySelectorAll(`#${list}-list .more`)) more.click()
        for (const item of document.querySelectorAll(`#${list}-list > li`)) {
          all.push({
            rank: Number(item.dataset.rank),
            id: item.querySelector('.meta .id').textContent,
            folded: [...item.querySelectorAll('[data-version]')].map(one => Number(one.dataset.version))
          })
        }
        if (on.getAttribute('aria-disabled') !== 'false') return all
        on.click()
      }
    }, list)
  }

  // reveal switches to a list where one is shown at a time.
  async reveal (list) {
    if (await this.page.locator('#which').isVisible())
      await this.page.locator(`#which input[value=${list}]`).check({ force: true })
  }
}

const text = (page, selector) =>
  page.locator(selector).evaluate(element => (element.closest('[hidden]') ? '' : element.textContent))

// actions are the steps, by what they do. What one returns is seen.
const actions = {
  open: (visit, { hash }) => visit.go(hash).then(() => undefined),
  async type (visit, { text }) {
    await visit.page.locator('#query').fill('')
    await visit.page.locator('#query').pressSequentially(text)
    await visit.page.locator('#query').press('Enter')
    await visit.settled()
  },
  async threshold (visit, { value }) {
    await visit.page.locator('#exactly').fill(String(value))
    await visit.drawn()
  },
  // slide moves the slider as a mouse does.
  async slide (visit, { value }) {
    await visit.page.locator('#threshold').fill(String(value))
    await visit.drawn()
  },
  async window (visit, { value }) {
    await visit.page.locator('#window').fill(String(value))
    await visit.drawn()
  },
  // name types the name of an index where the engine lists none.
  async name (visit, { text }) {
    await visit.page.locator('input#index').fill(text)
    await visit.page.locator('input#index').press('Enter')
    await visit.settled()
  },
  async choose (visit, { what, value }) {
    await visit.page.locator('#' + what).selectOption(value)
    await visit.settled()
  },
  async click (visit, { on }) {
    await visit.page.locator(on).first().click()
    await visit.settled()
  },
  async press (visit, { key, times = 1 }) {
    for (let i = 0; i < times; i++) await visit.page.keyboard.press(key)
    await visit.settled()
  },
  // reach walks by the tab key until it is at an element.
  async reach (visit, { on, back }) {
    for (let i = 0; i < 300; i++) {
      await visit.page.keyboard.press(back ? 'Shift+Tab' : 'Tab')
      if (await visit.page.evaluate(on => document.activeElement.matches(on), on)) return
    }
    throw new Error(`the tab key does not come to ${on}`)
  },
  async reload (visit) {
    await visit.page.reload()
    await visit.settled()
  },
  async back (visit) {
    await visit.page.goBack()
    await visit.settled()
  },
  async forward (visit) {
    await visit.page.goForward()
    await visit.settled()
  },
  tab: visit => visit.tab(),
  async login (visit, { user, password, key, keep }) {
    const { page } = visit
    if (key && (await page.locator('#way').isVisible())) await page.locator('#way input[value=key]').check({ force: true })
    for (const [id, value] of Object.entries({ user, password, key })) if (value) await page.locator('#' + id).fill(value)
    await page.locator('#keep').setChecked(Boolean(keep))
    await page.locator('#credentials button[type=submit]').click()
    await visit.settled()
  },
  // look is all that there is to see.
  async look (visit) {
    const { page } = visit
    const before = visit.asked.length
    const engine = (await page.locator('#bench').isVisible()) ? await visit.walk('engine') : []
    const collapsed = engine.length ? await visit.walk('collapsed') : []
    const followed = () =>
      document.getElementById('bench').hidden ||
      new URLSearchParams(location.hash.slice(1)).get('threshold') === document.getElementById('exactly').value
    await page.waitForFunction(followed) // the address comes a little later
    return {
      engine,
      collapsed,
      summary: await text(page, '#summary'),
      looked: await text(page, '#looked'),
      problem: await text(page, '#problem'),
      empty: await text(page, '#empty'),
      yaml: await text(page, '#yaml'),
      says: await text(page, '#threshold-says'),
      times: await page.locator('#timing dd').allTextContents(),
      login: await page.locator('#credentials').isVisible(),
      threshold: Number(await page.locator('#exactly').inputValue()),
      window: Number(await page.locator('#window').inputValue()),
      focus: await page.evaluate(() => document.activeElement.id),
      address: new URL(page.url()).hash,
      asked: visit.asked.map(({ path }) => path.split('/').at(-1)),
      askedByLooking: visit.asked.length - before,
      credentials: visit.asked.map(({ body }) => body?.credentials ?? null),
      kept: await page.evaluate(() => ({ session: { ...sessionStorage }, local: { ...localStorage }, cookies: document.cookie }))
    }
  },
  // words opens the versions on a page of the collapsed list and tells what is said of their words.
  async words (visit) {
    await visit.reveal('collapsed')
    return visit.page.evaluate(async () => {
      const all = [...document.querySelectorAll('#collapsed-list [data-version]')]
      for (const details of all) if (!details.open) details.querySelector('summary').click()
      while (!all.every(details => details.querySelector('.note'))) await new Promise(resolve => requestAnimationFrame(resolve))
      return all.map(element => ({
        version: Number(element.dataset.version),
        agreement: element.querySelector('.agreement').textContent,
        note: element.querySelector('.note').textContent,
        inserted: [...element.querySelectorAll('.text ins')].map(one => one.lastChild.textContent),
        deleted: [...element.querySelectorAll('.text del')].map(one => one.lastChild.textContent),
        children: [...new Set([...element.querySelectorAll('.text *')].map(one => one.localName))].sort()
      }))
    })
  },
  // tell evaluates an expression in the page.
  tell: (visit, { script }) => visit.page.evaluate(script),
  // audit looks for what keeps people out; see playground_audit.js.
  audit: async visit => audit(visit.page, await visit.context.newCDPSession(visit.page)),
  // tabs walks by the tab key from the top to the end and tells where it stops.
  async tabs (visit, { most = 400 }) {
    const stops = []
    await visit.page.evaluate(() => {
      document.activeElement.blur()
      scrollTo(0, 0)
    })
    for (let i = 0; i < most; i++) {
      await visit.page.keyboard.press('Tab')
      const stop = await visit.page.evaluate(focused)
      if (!stop || (stops.length && stop.first)) break
      stops.push(stop)
    }
    return stops
  },
  async shot (visit, { name, full }) {
    if (!args.shots) return
    mkdirSync(args.shots, { recursive: true })
    await visit.page.screenshot({ path: join(args.shots, name + '.png'), fullPage: Boolean(full) })
  },
  // hurry moves the slider over its whole length and tells how long the page took to draw each place, in ms.
  hurry: visit =>
    visit.page.evaluate(async () => {
      const slider = document.getElementById('threshold')
      const times = []
      for (let value = 5; value <= 100; value += 5) {
        const began = performance.now()
        slider.value = value / 100
        slider.dispatchEvent(new Event('input', { bubbles: true }))
        await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
        times.push(performance.now() - began)
      }
      return { times, elements: document.querySelectorAll('*').length }
    })
}

// make makes one visit, in a context of its own, and returns what is told of it.
async function make (browser, plan) {
  const context = await browser.newContext({
    viewport: { width: plan.width || 1280, height: plan.height || 800 },
    colorScheme: plan.scheme || 'light',
    reducedMotion: plan.reduced ? 'reduce' : 'no-preference',
    permissions: ['clipboard-read', 'clipboard-write']
  })
  const visit = new Visit(context, plan)
  let doing = { do: 'tab' }
  try {
    await visit.tab()
    for (doing of plan.steps ?? []) {
      const seen = await actions[doing.do](visit, doing)
      if (seen !== undefined) visit.seen.push(seen)
    }
  } catch (error) {
    const page = await visit.page.evaluate(() => document.body.innerText).catch(String)
    throw new Error(`${plan.name}, ${JSON.stringify(doing)}: ${error.stack}\n${visit.complaints}\n${page.slice(0, 2000)}`)
  }
  const told = await visit.told()
  await context.close()
  return told
}

// run makes some visits at once, since each waits most of the time.
async function run () {
  const browser = await chromium.launch({
    executablePath: args.browser,
    timeout: WAIT,
    chromiumSandbox: false,
    args: ['--no-proxy-server', '--disable-gpu', '--hide-scrollbars']
  })
  const told = {}
  try {
    const plans = JSON.parse(readFileSync(args.visits, 'utf8'))
    const some = async () => {
      for (let plan = plans.shift(); plan; plan = plans.shift()) told[plan.name] = await make(browser, plan)
    }
    await Promise.all([some(), some(), some(), some()])
  } finally {
    await browser.close()
  }
  process.stdout.write(JSON.stringify(told))
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
