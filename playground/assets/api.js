// The page's requests to the sidecar, and the user's credentials for the engines. Credentials are kept in memory and, if the user
// chooses so, in the session of this tab. They are only sent in the bodies of our own requests.

import { exchange } from './exchange.js'

// Problem is an error for people. Its status is 0 if there was no answer.
export class Problem extends Error {
  constructor (status, message, hint) {
    super(message)
    Object.assign(this, { status, hint })
  }

  get refused () {
    return this.status === 401 || this.status === 403
  }
}

const here = new URL('api/', import.meta.url)

async function ask (what, body, signal) {
  const { reply, answer } = await exchange(new URL(what, here), body, {}, signal)
  if (!reply) throw new Problem(0, 'The sidecar does not answer.', 'Check whether it still runs, then try again.')
  if (answer === undefined) throw new Problem(reply.status, `The sidecar's answer (status ${reply.status}) is not JSON.`, 'Check its log.')
  if (!reply.ok) throw new Problem(reply.status, answer.error ?? `status ${reply.status}`, answer.hint ?? '')
  return answer
}

export const engines = () => ask('engines')
export const indices = (question, signal) => ask('indices', { ...question, ...credentials(question.engine) }, signal)
export const search = (question, signal) => ask('search', { ...question, ...credentials(question.engine) }, signal)
export const queries = (question, signal) => ask('queries', { ...question, ...credentials(question.engine) }, signal)
export const run = (question, signal) => ask('try', { ...question, ...credentials(question.engine) }, signal)
export const report = (question, signal) => ask('report', { ...question, ...credentials(question.engine) }, signal)

const inMemory = new Map()
const storageKey = engine => 'neardup.playground.' + engine

const credentials = engine => {
  const given = known(engine)
  return given ? { credentials: given } : {}
}

// known returns the credentials for an engine, or undefined.
export function known (engine) {
  if (!inMemory.has(engine)) {
    try {
      const kept = JSON.parse(sessionStorage.getItem(storageKey(engine)))
      if (kept) inMemory.set(engine, kept)
    } catch {
      /* the browser stores nothing */
    }
  }
  return inMemory.get(engine)
}

// give sets the credentials for an engine, and keeps them until the tab is closed if the user chooses so.
export function give (engine, given, keep) {
  forget(engine)
  inMemory.set(engine, given)
  try {
    if (keep) sessionStorage.setItem(storageKey(engine), JSON.stringify(given))
  } catch {
    /* then they last as long as the page */
  }
}

export function forget (engine) {
  inMemory.delete(engine)
  try {
    sessionStorage.removeItem(storageKey(engine))
  } catch {
    /* there is nothing to remove */
  }
}

// kept reports whether the tab's session has credentials for an engine.
export function kept (engine) {
  try {
    return sessionStorage.getItem(storageKey(engine)) !== null
  } catch {
    return false
  }
}
