// What keeps people out of a page, as far as it can be measured: audit returns its faults, focused tells where the focus is.
'use strict'

// roles that one can work with and that need a name.
const worked = new Set([
  'button',
  'link',
  'textbox',
  'searchbox',
  'combobox',
  'slider',
  'spinbutton',
  'checkbox',
  'radio',
  'DisclosureTriangle',
  'form',
  'navigation',
  'region',
  'search',
  'complementary',
  'group',
  'radiogroup',
  'image',
  'img',
  'heading',
  'table',
  'listbox'
])

// audit asks the browser for the names that it gives to those who listen, and measures the rest in the page.
async function audit (page, session) {
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  const faults = []
  for (const { role, name, ignored, properties = [] } of nodes) {
    const focusable = properties.some(({ name, value }) => name === 'focusable' && value.value)
    if (!ignored && (worked.has(role?.value) || focusable) && role?.value !== 'RootWebArea' && !name?.value?.trim()) {
      if (role.value === 'group' && !focusable) continue // a details element
      faults.push(`a ${role.value} without a name`)
    }
  }
  const count = role => nodes.filter(node => !node.ignored && node.role?.value === role).length
  for (const role of ['banner', 'main', 'contentinfo', 'search'])
    if (count(role) !== 1) faults.push(`${count(role)} landmarks of role ${role}`)
  if (!nodes.some(node => node.role?.value === 'status')) faults.push('nothing is said of results')
  return [...faults, ...(await page.evaluate(measured))]
}

// measured runs in the page.
function measured () {
  const faults = []
  const told = element =>
    element.localName + (element.id && '#' + element.id) + (typeof element.className === 'string' ? '.' + element.className : '')
  const rgb = text => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number)
    return { r, g, b, a }
  }
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a),
    g: top.g * top.a + below.g * (1 - top.a),
    b: top.b * top.a + below.b * (1 - top.a),
    a: 1
  })
  const luminance = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map(c => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * x + 0.7152 * y + 0.0722 * z
  }
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p)
    return (x + 0.05) / (y + 0.05)
  }
  const ground = element => {
    const layers = []
    for (let e = element; e; e = e.parentElement) layers.push(rgb(getComputedStyle(e).backgroundColor))
    return layers
      .reverse()
      .reduce(
        (below, layer) => over(layer, below),
        matchMedia('(prefers-color-scheme: dark)').matches ? { r: 18, g: 18, b: 18 } : { r: 255, g: 255, b: 255 }
      )
  }
  const visible = element =>
    element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && element.getClientRects().length > 0
  const spoken = element => element.closest('.spoken, .skip')

  // Text against what lies behind it (WCAG 1.4.3).
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const seen = new Set()
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement
    if (
      !walker.currentNode.data.trim() ||
      seen.has(element) ||
      !visible(element) ||
      spoken(element) ||
      ['script', 'noscript', 'option'].includes(element.localName)
    )
      continue
    seen.add(element)
    const style = getComputedStyle(element)
    const size = parseFloat(style.fontSize)
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
    const behind = ground(element)
    const ratio = contrast(over(rgb(element.ownerSVGElement ? style.fill : style.color), behind), behind)
    if (ratio < (large ? 3 : 4.5))
      faults.push(`contrast ${ratio.toFixed(2)} of ${told(element)}: ${walker.currentNode.data.trim().slice(0, 30)}`)
  }
  // The edges of what one works with, and the drawn parts that say something (WCAG 1.4.11).
  for (const element of document.querySelectorAll('input:not([type=range], [type=radio], [type=checkbox]), select')) {
    if (!visible(element)) continue
    const ratio = contrast(
      over(rgb(getComputedStyle(element).borderTopColor), ground(element.parentElement)),
      ground(element.parentElement)
    )
    if (ratio < 3) faults.push(`contrast ${ratio.toFixed(2)} of the edge of ${told(element)}`)
  }
  for (const [selector, property] of [
    ['polyline.folds', 'stroke'],
    ['line.now', 'stroke'],
    ['.bar.over', 'fill'],
    ['.scale .dot', 'fill'],
    ['rect.own', 'fill']
  ]) {
    for (const element of document.querySelectorAll(selector)) {
      if (!visible(element)) continue
      const behind = ground(element.ownerSVGElement)
      const ratio = contrast(over(rgb(getComputedStyle(element)[property]), behind), behind)
      if (ratio < 3) faults.push(`contrast ${ratio.toFixed(2)} of ${selector}`)
    }
  }
  // Targets of at least 24 by 24 (WCAG 2.5.8), but for links in a line.
  for (const element of document.querySelectorAll('button, input, select, summary')) {
    if (!visible(element) || element.matches('[type=radio], .elided')) continue
    const { width, height } = element.matches('[type=checkbox]')
      ? element.parentElement.getBoundingClientRect()
      : element.getBoundingClientRect()
    if (width < 23.5 || height < 23.5)
      faults.push(`${told(element)} is ${width.toFixed(0)} by ${height.toFixed(0)}: ${element.textContent.slice(0, 30)}`)
  }
  // Order of headings, ids, language, reflow.
  let level = 0
  for (const heading of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    if (!visible(heading)) continue
    const next = Number(heading.localName[1])
    if (next > level + 1) faults.push(`${told(heading)} follows a heading of level ${level}: ${heading.textContent.slice(0, 30)}`)
    level = next
  }
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1')
  const ids = [...document.querySelectorAll('[id]')].map(element => element.id)
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) faults.push(`id ${id} twice`)
  for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'for']) {
    for (const element of document.querySelectorAll(`[${name}]`)) {
      for (const id of element.getAttribute(name).split(' '))
        if (!document.getElementById(id)) faults.push(`${told(element)} names ${id}, which is not there`)
    }
  }
  if (!document.documentElement.lang || !document.title) faults.push('no language or no title')
  for (const element of document.querySelectorAll('h3, .snippet, .text'))
    if (element.dir !== 'auto' || element.lang !== '') faults.push(`${told(element)} takes a document's text for ours`)
  const wide = document.documentElement.scrollWidth
  if (wide > innerWidth) faults.push(`the page is ${wide} wide in a window of ${innerWidth}`)
  for (const element of document.querySelectorAll('[style]:not([style=""]), [onclick]'))
    faults.push(`an attribute that the policy forbids: ${told(element)} ${element.getAttribute('style')}`)
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
    for (const element of document.querySelectorAll('*')) {
      const style = getComputedStyle(element)
      if (parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none') faults.push(`${told(element)} moves`)
    }
  }
  return faults
}

// focused runs in the page: what has the focus, and whether one sees that it has.
function focused () {
  const element = document.activeElement
  if (!element || element === document.body) return null
  const first = window.firstFocused === element
  window.firstFocused ??= element
  const marked = element.matches('.switch input') ? element.nextElementSibling : element
  const style = getComputedStyle(marked)
  const { left, top, width, height } = marked.getBoundingClientRect()
  const at = document.elementFromPoint(
    Math.min(Math.max(left + Math.min(width, 60) / 2, 0), innerWidth - 1),
    Math.min(Math.max(top + Math.min(height, 40) / 2, 0), innerHeight - 1)
  )
  return {
    first,
    what: element.id || element.className || element.localName,
    text: (element.getAttribute('aria-label') || element.textContent).trim().slice(0, 40),
    outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    inSight: top + height > 0 && top < innerHeight && left + width > 0 && left < innerWidth,
    covered: !(at && (marked.contains(at) || at.contains(marked)))
  }
}

module.exports = { audit, focused }
