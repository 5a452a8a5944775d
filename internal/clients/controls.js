// How the sidecar's controls get through the clients for JavaScript, and the header of its replies back: what controls.py says.
//
//	controls.js elasticsearch|typesense --url URL [--key KEY] --index NAME
'use strict'

const { parseArgs } = require('node:util')

const string = { type: 'string' }
const { values: args, positionals: [kind] } = parseArgs({
  allowPositionals: true, options: { url: string, key: string, index: string }
})

function elasticsearch () {
  const { Client } = require('@elastic/elasticsearch')
  const client = new Client({ node: args.url })
  const search = async (options, body) => {
    const { body: reply, headers } = await client.search({ index: args.index, q: 'ferry', ...body }, { meta: true, ...options })
    return [reply.hits.hits.length, headers.neardup]
  }
  return {
    none: () => search({}),
    header: () => search({ headers: { 'Neardup-Control': 'off' } }),
    parameter: () => search({ querystring: { neardup: 'off' } }),
    // With nothing but the index it is a GET without a body, whose Accept is a list.
    bare: async () => (await client.search({ index: args.index }, { meta: true })).headers.neardup
  }
}

function typesense () {
  const { Client } = require('typesense')
  const client = new Client({ nodes: [{ url: args.url }], apiKey: args.key, connectionTimeoutSeconds: 60, logLevel: 'silent' })
  const search = async control => {
    const reply = await client.collections(args.index).documents().search({ q: 'ferry', query_by: 'title,body', ...control })
    return [reply.hits.length, null]
  }
  return {
    none: () => search({}),
    parameter: () => search({ neardup: 'off' }),
    fraction: () => search({ neardup_threshold: 0.999 })
  }
}

async function run () {
  const shown = {}
  for (const [way, search] of Object.entries({ elasticsearch, typesense }[kind]())) {
    shown[way] = await search().catch(raised => raised.name)
  }
  process.stdout.write(JSON.stringify(shown))
}

run().catch(raised => {
  console.error(raised)
  process.exitCode = 1
})
