// The playground's page in a real browser.
//
//	playground.js --url URL --browser CHROMIUM --visit FILE.json
//
// FILE is a visit {hash, steps}; a step is {do, …}, one of the actions below. It prints {seen, complaints, strangers}: seen is
// what the steps that look have seen, complaints are errors in the console, violations of the page's policy and requests that
// failed, strangers the addresses outside the page's own origin that were asked.
'use strict'

const { readFileSync } = require('node:fs')
const { parseArgs } = require('node:util')
const axe = require('axe-core')
const { chromium } = require('playwright-core')

const string = { type: 'string' }
const { values: args } = parseArgs({ options: { url: string, browser: string, visit: string } })
const WAIT = 60_000 // for a page that a busy machine draws

class Visit {
  constructor (context, hash) {
    Object.assign(this, { context, hash, seen: [], complaints: [], strangers: [] })
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
      if (url.protocol !== 'data:' && url.origin !== new URL(args.url).origin) this.strangers.push(request.url())
    })
    await page.addInitScript(() => {
      window.violations = []
      addEventListener('securitypolicyviolation', event =>
        window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`)
      )
    })
    await page.goto(new URL('/', args.url) + this.hash)
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
}

const text = (page, selector) =>
  page.locator(selector).evaluate(element => (element.closest('[hidden]') ? '' : element.textContent))

// actions are the steps, by what they do. What one returns is seen.
const actions = {
  async type (visit, { text, key = 'Enter' }) {
    await visit.page.locator('#query').fill(text)
    await visit.page.locator('#query').press(key)
    await visit.settled()
  },
  size: ({ page }, size) => page.setViewportSize(size),
  // drag moves the threshold's line to a share of the histogram's width, and a finger so far down.
  async drag ({ page, context }, { to, touch, down = 0 }) {
    const box = await page.locator('#bars').boundingBox()
    const [from, x, y] = [box.x + box.width / 2, box.x + to * box.width, box.y + box.height / 2]
    if (!touch) {
      await page.mouse.move(from, y)
      await page.mouse.down()
      await page.mouse.move(x, y, { steps: 4 })
      return page.mouse.up()
    }
    const finger = await context.newCDPSession(page)
    const put = (type, share) => {
      const at = { x: from + share * (x - from), y: y + share * down }
      return finger.send('Input.dispatchTouchEvent', { type, touchPoints: type === 'touchEnd' ? [] : [at] })
    }
    await put('touchStart', 0)
    for (let i = 1; i <= 8; i++) await put('touchMove', i / 8)
    await put('touchEnd')
  },
  async threshold (visit, { value }) {
    await visit.page.locator('#exactly').fill(String(value))
    await visit.drawn()
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
  tab: visit => visit.tab(),
  async login (visit, { user, password, key, keep }) {
    const { page } = visit
    if (key && (await page.locator('#way').isVisible())) await page.locator('#way input[value=key]').check({ force: true })
    for (const [id, value] of Object.entries({ user, password, key })) if (value) await page.locator('#' + id).fill(value)
    await page.locator('#keep').setChecked(Boolean(keep))
    await page.locator('#credentials button[type=submit]').click()
    await visit.settled()
  },
  // look is what a visitor sees, and what the browser keeps.
  async look ({ page }) {
    const followed = () =>
      document.getElementById('bench').hidden ||
      new URLSearchParams(location.hash.slice(1)).get('threshold') === document.getElementById('exactly').value
    await page.waitForFunction(followed) // the address comes a little later
    return {
      engine: (await page.locator('#bench').isVisible()) ? await page.locator('#engine-list > li').count() : 0,
      problem: await text(page, '#problem'),
      summary: await text(page, '#summary'),
      yaml: await text(page, '#yaml'),
      login: await page.locator('#credentials').isVisible(),
      threshold: Number(await page.locator('#exactly').inputValue()),
      window: Number(await page.locator('#window').inputValue()),
      focus: await page.evaluate(() => document.activeElement.id),
      address: new URL(page.url()).hash,
      kept: await page.evaluate(() => ({ session: { ...sessionStorage }, local: { ...localStorage }, cookies: document.cookie }))
    }
  },
  // words opens the versions on a page of the collapsed list and tells of which elements their words are made.
  words: visit =>
    visit.page.evaluate(async () => {
      const all = [...document.querySelectorAll('#collapsed-list [data-version]')]
      for (const details of all) if (!details.open) details.querySelector('summary').click()
      while (!all.every(details => details.querySelector('.note'))) await new Promise(resolve => requestAnimationFrame(resolve))
      return all.flatMap(element => [...element.querySelectorAll('.text *')].map(one => one.localName))
    }),
  // axe is what the page's state has against the rules of accessibility, light and dark: [scheme, rule, place, what is wrong].
  async axe ({ page }) {
    const found = []
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(axe.source) // past the page's policy, as a debugger
      for (const { id, nodes } of await page.evaluate(() => window.axe.run().then(result => result.violations)))
        for (const { target, failureSummary } of nodes) found.push([colorScheme, id, target.flat().join(' '), failureSummary])
    }
    await page.emulateMedia({ colorScheme: null, reducedMotion: null })
    return found
  },
  // tell evaluates an expression in the page.
  tell: (visit, { script }) => visit.page.evaluate(script)
}

async function run () {
  const browser = await chromium.launch({
    executablePath: args.browser,
    timeout: WAIT,
    chromiumSandbox: false,
    args: ['--no-proxy-server', '--disable-gpu', '--hide-scrollbars']
  })
  const { hash, steps } = JSON.parse(readFileSync(args.visit, 'utf8'))
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] })
  const visit = new Visit(context, hash)
  let doing = { do: 'tab' }
  try {
    await visit.tab()
    for (doing of steps) {
      const seen = await actions[doing.do](visit, doing)
      if (seen !== undefined) visit.seen.push(seen)
    }
    const { seen, complaints, strangers } = visit
    complaints.push(...(await visit.page.evaluate(() => window.violations)))
    process.stdout.write(JSON.stringify({ seen, complaints, strangers }))
  } catch (error) {
    const page = await visit.page.evaluate(() => document.body.innerText).catch(String)
    throw new Error(`${JSON.stringify(doing)}: ${error.stack}\n${visit.complaints}\n${page.slice(0, 2000)}`)
  } finally {
    await browser.close()
  }
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
