// A list in pages of ten.

import { byId, make } from './dom.js'

const size = 10

export class Pages {
  // item makes the element for a position; the list and its pager have ids that begin with name.
  constructor (name, item) {
    Object.assign(this, { item, page: 0, length: 0, list: byId(name + '-list') })
    this.place = make('span', { class: 'place' })
    this.buttons = [
      ['‹', 'Previous page', -1],
      ['›', 'Next page', 1]
    ].map(([sign, label, step]) =>
      make('button', { type: 'button', 'aria-label': label, click: () => this.turn(this.page + step) }, sign)
    )
    byId(name + '-pager').append(this.buttons[0], this.place, this.buttons[1])
  }

  get last () {
    return Math.max(0, Math.ceil(this.length / size) - 1)
  }

  // show draws the current page of a list of this length.
  show (length) {
    this.length = length
    this.page = Math.min(Math.max(this.page, 0), this.last)
    const from = this.page * size
    const to = Math.min(length, from + size)
    this.list.replaceChildren(...Array.from({ length: to - from }, (_, i) => this.item(from + i)))
    this.list.setAttribute('start', from + 1)
    this.place.textContent = length ? `${from + 1}–${to} of ${length}` : 'none'
    this.buttons.forEach((button, i) => button.setAttribute('aria-disabled', this.page === (i ? this.last : 0)))
  }

  // turn goes to a page and scrolls to its beginning.
  turn (page) {
    if (page < 0 || page > this.last) return
    this.page = page
    this.show(this.length)
    const { top } = this.list.getBoundingClientRect()
    if (top < 0) this.list.parentElement.scrollIntoView({ block: 'start' })
  }

  // turnTo goes to the page with a position.
  turnTo (place) {
    this.turn(Math.floor(place / size))
  }
}
