// Makes what the page needs: a collection with a few articles, written through the sidecar, and a key that can only search it.
//
//   TYPESENSE_API_KEY=xyz node setup.js --url http://localhost:8109
//
// The key of the environment is an administrator's and stays here. What is written to config.json, and so to every visitor, is a
// search-only key with a filter inside that the visitor can't take off: drafts are not found, nor counted as versions of what is.
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { Client } from 'typesense'

const { values: { url, collection } } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://localhost:8109' },
    collection: { type: 'string', default: 'articles-page' }
  }
})
const client = new Client({ nodes: [{ url }], apiKey: process.env.TYPESENSE_API_KEY, connectionTimeoutSeconds: 10 })

const text = await readFile(new URL('../articles.jsonl', import.meta.url), 'utf8')
const articles = text.split('\n').filter(Boolean).map(line => JSON.parse(line))
for (const article of articles) article.draft = article.id === 'choir-2'

if (!await client.collections(collection).exists()) {
  await client.collections().create({
    name: collection,
    fields: [
      { name: 'title', type: 'string' },
      { name: 'body', type: 'string' },
      { name: 'host', type: 'string', facet: true },
      { name: 'draft', type: 'bool' }
    ]
  })
}
await client.collections(collection).documents().import(articles, { action: 'upsert' })

const week = Math.floor(Date.now() / 1000) + 7 * 24 * 60 * 60
const searchOnly = await client.keys().create({
  description: `searches ${collection}`, actions: ['documents:search'], collections: [collection], expires_at: week
})
const key = client.keys().generateScopedSearchKey(searchOnly.value, { filter_by: 'draft:false', expires_at: week })
await writeFile(new URL('config.json', import.meta.url), JSON.stringify({ url, collection, key }, null, 2) + '\n')
console.log(`${articles.length} articles are in ${collection}; config.json holds a key to search them.`)
