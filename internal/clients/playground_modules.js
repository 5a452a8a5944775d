// The playground's modules without a browser: what they make of cases that a test has written down.
//
//	playground_modules.js --assets FOLDER --cases FILE.json
//
// FILE has {fold, diff, query, yaml}, lists of cases; what is printed has the answers in the same form and order.
'use strict'

const { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { parseArgs } = require('node:util')

const string = { type: 'string' }
const { values: args } = parseArgs({ options: { assets: string, cases: string } })

const answers = {
  // fold: {hits, pairs, options: [{threshold, window, keep, transitive}]}
  fold:
    ({ neighbours, fold, nearest }) =>
    ({ hits, pairs, options }) => {
      const near = neighbours(hits, pairs)
      return options.map(option => ({ ...fold(hits, near, option), nearest: nearest(near, option.window) }))
    },
  // diff: {a, b}
  diff:
    ({ tokens, diff }) =>
    ({ a, b }) => {
      const [x, y] = [tokens(a), tokens(b)]
      const began = performance.now()
      const runs = diff(x, y)
      const whole = list => list.before + list.map(({ text, rest }) => text + rest).join('')
      return { a: x.map(t => t.key), b: y.map(t => t.key), whole: [whole(x), whole(y)], runs, ms: performance.now() - began }
    },
  // query: {query, text}
  query:
    ({ sought, excerpt }) =>
    ({ query, text }) => {
      const words = sought(query)
      return { words: (words && text.match(words)) ?? [], excerpt: excerpt(text, words, 30) }
    },
  // yaml: {yaml, threshold, window}
  yaml:
    ({ yamlOf }) =>
    ({ yaml, threshold, window }) =>
      yamlOf(yaml, threshold, window)
}

async function run () {
  const dir = mkdtempSync(join(tmpdir(), 'neardup-modules-'))
  try {
    cpSync(args.assets, dir, { recursive: true })
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
    const load = name => import(pathToFileURL(join(dir, name)))
    const modules = {
      fold: await load('fold.js'),
      diff: await load('diff.js'),
      query: await load('query.js'),
      yaml: await load('panel.js')
    }
    const cases = JSON.parse(readFileSync(args.cases, 'utf8'))
    const told = {}
    for (const [name, list] of Object.entries(cases)) told[name] = (list ?? []).map(answers[name](modules[name]))
    process.stdout.write(JSON.stringify(told))
  } finally {
    rmSync(dir, { recursive: true })
  }
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
