// A page of InstantSearch with Typesense's adapter, as it would be without the sidecar, but for three things: the address; what
// the sidecar is asked for, in additionalSearchParameters; and the versions of a hit, which stand in its member neardup.
/* global instantsearch, TypesenseInstantSearchAdapter */

const { url, collection, key } = await (await fetch('config.json')).json() // setup.js writes it
const { searchBox, stats, hits, pagination, configure } = instantsearch.widgets
const all = document.querySelector('#all')

// settings are the adapter's: of each group one version with the others below it, or all as the engine ranks them.
function settings () {
  const one = {
    neardup_expand: 'source', // the folded versions come with their titles
    neardup_totals: 'collapsed' // "found" counts what is shown, and so does the number of pages
  }
  return {
    server: { apiKey: key, nodes: [{ url }] },
    additionalSearchParameters: {
      query_by: 'title,body', include_fields: 'id,title,host', ...(all.checked ? { neardup: 'off' } : one)
    }
  }
}

const adapter = new TypesenseInstantSearchAdapter(settings())
const search = instantsearch({ indexName: collection, searchClient: adapter.searchClient })

// versions shows how many versions a hit stands for, and which were folded into it.
function versions (hit, html) {
  const { found = 0, exact, hits: folded = [] } = hit._rawTypesenseHit?.neardup ?? {}
  if (found === 0) return ''
  return html`<details>
    <summary>${exact ? '' : 'at least '}${found + 1} versions</summary>
    <ul>${folded.map(({ document, agreement }) =>
      html`<li>${document.title} (${document.host}), agrees by ${Math.floor(agreement * 100)} %</li>`)}</ul>
  </details>`
}

search.addWidgets([
  configure({ hitsPerPage: 5 }),
  searchBox({ container: '#box', placeholder: 'Search for a word, such as ferry' }),
  stats({ container: '#stats', templates: { text: ({ nbHits }) => `${nbHits} found` } }),
  hits({
    container: '#hits',
    templates: {
      item: (hit, { html, components }) => html`<article data-id="${hit.id}">
        <h2>${components.Highlight({ hit, attribute: 'title' })}</h2>
        <p class="host">${hit.host}</p>
        ${versions(hit, html)}
      </article>`,
      empty: () => 'Nothing was found.'
    }
  }),
  pagination({ container: '#pages' })
])
search.on('error', ({ error }) => { document.querySelector('#trouble').textContent = error.message })
search.on('render', () => { if (search.status === 'idle') document.querySelector('#trouble').textContent = '' })
all.addEventListener('change', () => {
  adapter.updateConfiguration(settings())
  search.helper.setPage(0)
  search.refresh()
})
search.start()
