// Elements and numbers. Text is always added as text, never as HTML.

export const byId = id => document.getElementById(id)

// make returns an element. A function as an attribute becomes an event listener. null, false and undefined are left out.
export function make (name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children)
}

export function draw (name, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children)
}

function fill (element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (value !== null && value !== false && value !== undefined) element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children.flat().filter(child => child !== null && child !== false && child !== undefined))
  return element
}

// spoken is text for screen readers.
export const spoken = text => make('span', { class: 'spoken' }, text)

// options fills a list to choose from, and chooses a value.
export function options (select, list, value) {
  select.replaceChildren(...list.map(({ value, text, disabled }) => make('option', { value, disabled }, text)))
  select.value = value
}

// busy says whether the page waits for an answer.
export const busy = on => byId('main').setAttribute('aria-busy', on)

// linked turns /readyz?verbose in a text into a link.
export function linked (text) {
  const [before, after] = text.split('/readyz?verbose')
  return after === undefined ? text : [before, make('a', { href: '/readyz?verbose' }, '/readyz?verbose'), after]
}

const whole = new Intl.NumberFormat('en', { useGrouping: true })
export const count = n => whole.format(n).replaceAll(',', '\u202f')
export const counted = (n, one, more = one + 's') => `${count(n)} ${n === 1 ? one : more}`
export const two = x => x.toFixed(2)
export const millis = ms => `${ms >= 99.5 ? count(Math.round(ms)) : ms.toFixed(1)}\u202fms`
